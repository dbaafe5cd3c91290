//! What a context holds at one moment, as plain values, for a user who asks why nothing moves. They
//! are made from a core whose lock is held; `report` renders them as text.

use crate::base::clock::{moment, since};
use crate::engine::context::incoming::Then;
use crate::engine::context::waiters::Waiter;
use crate::engine::context::{Core, Held};
use crate::memory::counter;
use crate::proto::ops::{Op, Pending};
use crate::proto::outbox::Traffic;
use crate::transport::{self, ConnectionView, PeerStanding, PeerState, Task, View};
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

    fn map<S>(self, one: impl Fn(T) -> S) -> Few<S> {
        Few { list: self.list.into_iter().map(one).collect(), count: self.count }
    }
}

/// What a context holds.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// This task.
    pub me: Task,
    /// How many tasks the job has.
    pub tasks: u32,
    /// The transport's name.
    pub transport: &'static str,
    /// The threads that wait and have begun to sleep.
    pub waits: Vec<Wait>,
    /// How many threads wait and have not slept yet.
    pub polling: u32,
    /// The thread that is in a round of the dispatcher, or 0. Since the lock was free, it runs the
    /// error handler.
    pub dispatcher: usize,
    /// Operations that wait for a reply.
    pub operations: Few<String>,
    /// How many collective operations were entered; the round of the present one and the tasks
    /// whose packets it waits for.
    pub collective: (u32, Option<(u16, Vec<Task>)>),
    /// The peers with traffic, or for which a call waits.
    pub peers: Few<Peer>,
    /// Copies across address spaces: peer, bytes copied, bytes in all.
    pub copies: Few<(Task, usize, usize)>,
    /// Messages being assembled.
    pub assemblies: Few<String>,
    /// Packets kept until the first one of their message arrives, by sender.
    pub early: Few<(Task, usize)>,
    /// Senders of messages that a header handler has refused for now; they are offered again.
    pub dropped: Few<Task>,
    /// Messages of this task to itself that wait for a handler to return.
    pub to_self: usize,
    /// Peers that were lost.
    pub lost: Vec<Task>,
    /// How often threads of the program have polled.
    pub polls: u64,
    /// Packets sent and received so far.
    pub packets: (u64, u64),
    /// Bytes of data sent and received so far.
    pub bytes: (u64, u64),
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

/// The wait of LAPI_Term for completion handlers, as a report names it.
pub const SETTLING: &str = "LAPI_Term for completion handlers to return";

/// What the context holds. Changes nothing but the notes of what was seen when.
pub fn snapshot(held: &mut Held<'_>) -> Snapshot {
    let dispatcher = held.context().activity.thread();
    let core = held.core();
    let now = moment();
    let listed = core.waiters.listed.len();
    let waits = core.waiters.listed.iter().chain(&core.waiters.settling);
    let waits = waits.map(|waiter| wait(core, waiter)).collect::<Vec<_>>();
    let peers = Few::of(peers(core, &waits).into_iter());
    let early = core.inbox.kept().filter(|(_, count)| *count != 0);
    let (entered, round) = core.collectives.entered();
    let snapshot = Snapshot {
        me: core.options.me,
        tasks: core.options.tasks,
        transport: transport::name(&*core.transport, core.options.me, core.options.tasks),
        polling: core.waiters.waiting().saturating_sub(listed as u32),
        waits,
        dispatcher,
        operations: Few::of(core.ops.iter()).map(|pending| operation(core, pending)),
        collective: (entered, round.map(|round| (round, core.collectives.awaited().collect()))),
        peers,
        copies: Few::of(
            core.copies
                .iter()
                .chain(core.copies.awaiting_parts())
                .map(|copy| (copy.peer, copy.copied, copy.len())),
        ),
        assemblies: Few::of(core.inbox.assemblies()).map(|(src, id, assembly)| {
            let (arrived, total) = (assembly.arrived, assembly.total);
            format!("from task {src}, number {id}: {arrived} of {total} bytes have arrived")
        }),
        early: Few::of(early),
        dropped: Few::of(core.senders_of_kept()),
        to_self: core.to_self(),
        lost: core.membership.lost().collect(),
        polls: core.waiters.activity,
        packets: core.stats.packets(),
        bytes: core.stats.bytes(),
    };
    core.ops.mark(now);
    core.outbox.mark(now);
    snapshot
}

/// Threads that wait in this context have been named in a report: no other report follows until
/// something moves.
pub fn note_reported(held: &mut Held<'_>) {
    let core = held.core();
    if !core.waiters.listed.is_empty() {
        core.waiters.stall_detector.note_reported(core.stats.moved(), moment());
    }
}

fn wait(core: &Core, waiter: &Waiter) -> Wait {
    // SAFETY: the thread waits for this counter, so it exists: the thread takes the lock, which is
    // held, before it continues.
    let value = waiter.awaited.counter.map(|(address, _)| unsafe { counter::get(address) });
    let awaited = awaited(core, waiter);
    let absence = match awaited[..] {
        [one] => core.transport.standing(one).absence,
        _ => None,
    };
    Wait { waiter: *waiter, value, awaited, absence }
}

/// The tasks that must do something before this wait can end, as far as it can be known here: for a
/// counter, those of the operations under way that raise it; for a fence, those that have not
/// confirmed; in a collective operation, those whose packets are next.
fn awaited(core: &Core, waiter: &Waiter) -> Vec<Task> {
    let mut tasks: Vec<Task> = match waiter.awaited.counter {
        Some((address, _)) => {
            let raises = |pending: &&Pending| {
                pending.counters().iter().any(|&cntr| core.watched.address(cntr) == address)
            };
            let copies = core
                .copies
                .iter()
                .filter(|copy| copy.abandoned().is_some_and(|done| done.org_cntr == address));
            let incoming = core.inbox.assemblies().filter(|(.., assembly)| match &assembly.then {
                Then::Deliver(delivery) => delivery.tgt_cntr == address as u64,
                Then::Describe(incoming) => incoming.tgt_cntr == address as u64,
            });
            let operations = core.ops.iter().filter(raises).map(|pending| pending.peer);
            operations
                .chain(core.outbox.raising(address))
                .chain(copies.map(|copy| copy.peer))
                .chain(incoming.map(|(src, ..)| src))
                .collect()
        }
        None if waiter.awaited.call == SETTLING => Vec::new(),
        None if waiter.awaited.call == "LAPI_Term" => core.outbox.waiting_for().collect(),
        None if core.collectives.busy() && waiter.awaited.call != "LAPI_Fence" => {
            core.collectives.awaited().collect()
        }
        None => {
            let fenced = core.ops.iter().filter(|pending| pending.fenced()).map(|pending| pending.peer);
            fenced.chain(core.outbox.unconfirmed().iter().copied()).chain(core.outbox.waiting_for()).collect()
        }
    };
    tasks.sort_unstable();
    tasks.dedup();
    tasks
}

/// A length of time: `12.3 s`.
pub fn seconds(time: Duration) -> String {
    format!("{}.{} s", time.as_secs(), time.subsec_millis() / 100)
}

/// How long ago something was first seen; 0: just now.
pub(super) fn age(seen: u32) -> String {
    if seen == 0 { "not seen before".into() } else { format!("at least {} old", seconds(since(seen))) }
}

/// An operation that waits for a reply, as a report writes it.
fn operation(core: &Core, pending: &Pending) -> String {
    let what = match &pending.op {
        Op::Completion { cmpl_cntr } | Op::Write { cmpl_cntr, .. } => {
            match core.watched.address(*cmpl_cntr) {
                0 => "put or message, to be confirmed".to_owned(),
                counter => format!("put or message, to raise the completion counter at {counter:#x}"),
            }
        }
        Op::Rendezvous { done, fetched: false, .. } => {
            format!("message of {} bytes that the target fetches", done.bytes)
        }
        Op::Rendezvous { done, .. } => {
            format!("message of {} bytes that the target has fetched, to be confirmed", done.bytes)
        }
        Op::Get { len, arrived, .. } => format!("get: {arrived} of {len} bytes have arrived"),
        Op::Rmw { .. } => "read-modify-write".to_owned(),
    };
    format!("with task {}: {what}; {}", pending.peer, age(core.ops.seen(pending)))
}

/// The peers to report: something waits at this side or at theirs, or a call waits for them.
fn peers(core: &Core, waits: &[Wait]) -> Vec<Peer> {
    let mut wanted: Vec<Task> = core.ops.peers().chain(core.collectives.awaited()).collect();
    wanted.extend(waits.iter().flat_map(|wait| &wait.awaited));
    wanted.extend(core.outbox.waiting_for());
    wanted.extend(core.outbox.unconfirmed());
    wanted.sort_unstable();
    wanted.dedup();
    let lanes: Vec<Traffic> = core.outbox.traffic().collect();
    let others = (0..core.options.tasks).filter(|&peer| peer != core.options.me);
    others
        .filter_map(|peer| {
            let View { polls, connection: view, .. } = core.transport.view(peer);
            let busy = view.is_some_and(|view| view.no_room || view.arrived);
            if !busy && wanted.binary_search(&peer).is_err() {
                return None;
            }
            let lane = lanes.binary_search_by_key(&peer, |lane| lane.peer).ok().map(|at| lanes[at].clone());
            let traffic = lane.unwrap_or(Traffic { peer, ..Traffic::default() });
            let PeerStanding { state, absence, .. } = core.transport.standing(peer);
            Some(Peer { traffic, state, polls, view, absence })
        })
        .take(LISTED * 64)
        .collect()
}
