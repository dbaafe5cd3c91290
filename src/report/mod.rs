//! What each thread of a context waits for, for a user who asks why nothing moves: plain values, made by [`look`] from a core
//! whose lock is held, and rendered by `text`. A job without reports pays nothing for it.

mod look;
mod text;
pub mod thread;

pub use look::look;

use crate::engine::context::active_handler::Run;
use crate::engine::context::completion_queue::RunningHandler;
use crate::engine::context::waiters::Waiter;
use crate::proto::outbox::Traffic;
use crate::transport::{ConnectionView, PeerState, Task};
use std::time::Duration;

/// How many of one kind are listed; the rest is counted.
pub const LISTED: usize = 16;

/// Some of many.
#[derive(Clone, Debug)]
pub struct Few<T> {
    /// The first of them.
    pub list: Vec<T>,
    /// The number of all.
    pub count: usize,
}

impl<T> Few<T> {
    fn of(all: impl Iterator<Item = T>) -> Self {
        let mut some = Self { list: Vec::new(), count: 0 };
        for one in all {
            some.count += 1;
            if some.list.len() < LISTED {
                some.list.push(one);
            }
        }
        some
    }
}

/// One context.
#[derive(Clone, Debug)]
pub struct Report {
    /// This task, and how many there are.
    pub me: Task,
    /// How many tasks the job has.
    pub tasks: u32,
    /// The transport's name.
    pub transport: &'static str,
    /// The threads that wait and have begun to sleep.
    pub waits: Vec<Wait>,
    /// How many threads wait and have not slept yet.
    pub polling: u32,
    /// The thread that is in a round of the dispatcher, or 0. Since the lock was free, it runs the error handler.
    pub dispatcher: usize,
    /// Operations that wait for a reply.
    pub operations: Few<Operation>,
    /// How many collective operations were entered; the round of the present one and the tasks whose packets it waits for.
    pub collective: (u32, Option<(u16, Vec<Task>)>),
    /// The peers with something to report.
    pub peers: Few<Peer>,
    /// Copies across address spaces: peer, bytes copied, bytes in all.
    pub copies: Few<(Task, usize, usize)>,
    /// Messages being assembled.
    pub assemblies: Few<Assembling>,
    /// Packets kept until the first one of their message arrives, by sender.
    pub early: Few<(Task, usize)>,
    /// Senders of messages that a header handler has refused for now; they are offered again.
    pub dropped: Few<Task>,
    /// Messages of this task to itself that wait for a handler to return.
    pub to_self: usize,
    /// Peers that were lost.
    pub lost: Vec<Task>,
    /// Packets sent and received so far.
    pub packets: (u64, u64),
}

/// A thread that waits.
#[derive(Clone, Debug)]
pub struct Wait {
    /// Which thread, for what, since when.
    pub waiter: Waiter,
    /// The counter's value, when it waits for a counter.
    pub value: Option<i32>,
    /// The tasks that must do something before the wait can end, as far as this task can know.
    pub awaited: Vec<Task>,
    /// When it is one that this task is not connected with: why, as a clause.
    pub absence: Option<String>,
}

/// An operation that waits for a reply.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The task that must reply.
    pub peer: Task,
    /// What it is.
    pub kind: Kind,
    /// When it was first seen; 0: just now.
    pub seen: u32,
}

/// The kind of an operation, and its progress.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A put or active message that is out; its completion counter.
    Completion(usize),
    /// An active message whose data the target fetches: its bytes, and whether the target has fetched them.
    Rendezvous(usize, bool),
    /// A get: bytes arrived, and in all.
    Get(u64, u64),
    /// A read-modify-write.
    Rmw,
}

/// A message being assembled.
#[derive(Clone, Debug)]
pub struct Assembling {
    /// Its sender.
    pub src: Task,
    /// Its number.
    pub id: u32,
    /// Bytes that have arrived.
    pub arrived: u64,
    /// Bytes in all.
    pub total: u64,
}

/// A peer.
#[derive(Clone, Debug)]
pub struct Peer {
    /// What is on its way to it.
    pub traffic: Traffic,
    /// What is known of it.
    pub state: PeerState,
    /// Whether it polls for packets.
    pub polls: bool,
    /// The state of its ring.
    pub view: Option<ConnectionView>,
    /// Why this task is not connected with it, as a clause.
    pub absence: Option<String>,
}

/// Why a context's lock cannot be taken.
#[derive(Clone, Debug)]
pub struct Locked {
    /// The thread that holds it (see [`crate::base::known_threads::this_thread`]); 0: one after another.
    pub owner: usize,
    /// The handler that runs in it.
    pub run: Option<Run>,
    /// The program holds it by itself (the manual's chapter 12).
    pub by_program: bool,
    /// For how long at least this has been the case.
    pub at_least: Duration,
}

/// Completion handlers of a context.
#[derive(Clone, Debug)]
pub struct Handlers {
    /// How many are queued.
    pub queued: usize,
    /// Those that run.
    pub running: Vec<RunningHandler>,
}
