//! Shared memory between the tasks of one machine.
//!
//! Each task owns a segment with one single-producer ring for each peer ([`segment`], [`crate::base::ring`]). A task
//! sends by writing into its ring in the peer's segment, and wakes the peer, by an event descriptor, only when the peer
//! sleeps. Long messages may also be copied across address spaces ([`remote`]).

mod away;
mod endpoint;
#[cfg(one_mapping)]
mod one_mapping;
mod peer;
pub mod remote;
pub mod segment;
mod wakeup;

use super::{Endpoint, NO_EPOCH, Task};
use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::base::asymmetric_barrier::{Heavy, Light};
use crate::base::ring::Geometry;
use crate::error::{Error, Result};
use crate::wire::reunion::{Reunion, Search};
use away::{Away, Returned};
use peer::{Peer, Process};
use remote::CrossMemory;
use rustix::event::{EventfdFlags, eventfd};
use segment::{RejoinRing, Segment};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a task needs before it meets its peers.
pub struct Own {
    /// Its segment's file, to be passed to the peers.
    pub file: OwnedFd,
    /// Its event descriptor, to be passed to the peers.
    pub event: OwnedFd,
    segment: Segment,
}

impl Own {
    /// Makes the segment and the descriptor of a task in a job of `tasks`.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`, with what the system said.
    pub fn create(tasks: u32) -> Result<Self> {
        let (file, segment) = Segment::create(tasks)?;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|reason| Error::new(LAPI_ERR_SHM_SETUP, format!("no event descriptor: {reason}")))?;
        Ok(Self { file, event, segment })
    }
}

/// What a peer has passed.
pub struct PeerParts {
    /// Its process.
    pub pid: i32,
    /// Its segment's file.
    pub file: OwnedFd,
    /// Its event descriptor.
    pub event: OwnedFd,
}

/// One task's end of shared memory.
pub struct ShmTransport {
    me: Task,
    peers: Vec<Option<Peer>>,
    /// The peers that have written to us, and the bits by which we know.
    contacts: Vec<Task>,
    known: Vec<u64>,
    /// Whose turn it is, by its place in `contacts`, and for how many packets it has been.
    turn: usize,
    streak: u32,
    /// Peers from which nothing is taken now, though they have written to us.
    held: Vec<Task>,
    /// Peers without room.
    stuck: Vec<Task>,
    light: Light,
    heavy: Heavy,
    geometry: Geometry,
    memory: Option<CrossMemory>,
    event: OwnedFd,
    away: Away,
    /// Peers that this task has parted from, whose memory may still be in use: until the next packet is asked for.
    left: Vec<Peer>,
    /// Dropped after the peers' consumers, which lie in it.
    segment: Segment,
}

/// An end that is dropped without an orderly end, as when LAPI_Init fails after the tasks have met, must not leave its peers
/// waiting.
impl Drop for ShmTransport {
    fn drop(&mut self) {
        self.close();
    }
}

impl ShmTransport {
    /// A task that has not met its peers yet. `asymmetric` when it can take part in asymmetric barriers; `reunion` by
    /// which peers that were lost are found again.
    pub fn new(me: Task, tasks: u32, own: Own, asymmetric: bool, reunion: Option<Box<dyn Reunion>>) -> Self {
        Self {
            me,
            peers: std::iter::repeat_with(|| None).take(tasks as usize).collect(),
            contacts: Vec::new(),
            known: vec![0; (tasks as usize).div_ceil(64)],
            turn: 0,
            streak: 0,
            held: Vec::new(),
            stuck: Vec::new(),
            light: Light::new(asymmetric),
            heavy: Heavy::new(asymmetric),
            geometry: segment::geometry(tasks),
            memory: None,
            event: own.event,
            away: Away::new(tasks, own.file, asymmetric, reunion),
            left: Vec::new(),
            segment: own.segment,
        }
    }

    /// What is passed to the peers: its segment's file and its event descriptor.
    pub fn own(&self) -> [BorrowedFd<'_>; 2] {
        [self.away.file(), self.event.as_fd()]
    }

    /// Joins the tasks that have met: `parts` has what each of them has passed, by task, and nothing for `me`.
    /// `asymmetric` when all of them can take part in asymmetric barriers.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`, with the task whose memory could not be used.
    pub fn join(
        &mut self,
        parts: Vec<Option<PeerParts>>,
        asymmetric: bool,
        memory: Option<CrossMemory>,
    ) -> Result<()> {
        let tasks = self.peers.len() as u32;
        (self.light, self.heavy) = (Light::new(asymmetric), Heavy::new(asymmetric));
        self.memory = memory;
        self.away.all_met(asymmetric);
        for (task, parts) in parts.into_iter().enumerate() {
            let Some(parts) = parts else { continue };
            let segment = Segment::open(parts.file.as_fd(), tasks, task as Task)?;
            self.peers[task] = Some(Peer {
                out: segment.producer(self.me),
                inward: self.segment.consumer(task as Task),
                segment,
                _rings: None,
                event: parts.event,
                process: Process::watch(parts.pid),
                contacted: false,
                stuck_at: None,
            });
        }
        Ok(())
    }

    /// Comes back to a job that runs already, where others let it: calls at all lobbies that are open. It is back when one
    /// is there that has been in the job before: another one that has come back itself knows nothing of the job.
    pub fn come_back(&mut self, memory: impl FnOnce() -> Option<CrossMemory>) -> Search {
        for task in (0..self.peers.len() as Task).filter(|&task| task != self.me) {
            if self.peers[task as usize].is_none() {
                self.away.seek(task);
            }
        }
        self.away.call_all(self.event.as_fd());
        if self.memory.is_none() {
            self.memory = memory();
        }
        self.connect_all();
        if self.away.back.iter().all(|&(_, epoch)| epoch == NO_EPOCH) {
            return if self.away.has_called() { Search::Called } else { Search::Nowhere };
        }
        // Others that come back meanwhile: who opens second finds the first. Without a socket the first calls of those that are
        // resumed later are missed, and rejoining says so.
        let _ = self.away.open();
        self.away.call_all(self.event.as_fd());
        Search::Back
    }

    /// Connects with those that have come back; not while a packet of a peer that has left may be in use, which would be
    /// given back to the new one.
    fn connect_all(&mut self) {
        if !self.left.is_empty() {
            return;
        }
        while let Some(returned) = self.away.returned(self.event.as_fd()) {
            // What it has passed cannot be used: it is not there, until the engine expects it anew.
            let _ = self.connect(returned);
        }
    }

    fn connect(&mut self, returned: Returned) -> Result<()> {
        let Returned { task, pid, words, segment, event, ring, inlet } = returned;
        let tasks = self.peers.len() as u32;
        let ring = RejoinRing::open(ring.as_fd(), tasks, task)?;
        self.peers[task as usize] = Some(Peer {
            out: ring.producer(),
            inward: inlet.consumer,
            segment: Segment::open(segment.as_fd(), tasks, task)?,
            _rings: Some([ring, inlet.ring]),
            event,
            process: Process::watch(pid),
            contacted: false,
            stuck_at: None,
        });
        if let Some(memory) = &mut self.memory {
            memory.moved(task, Some((pid, words.landmark)));
        }
        if !words.asymmetric {
            // It sleeps without the asymmetric barrier. Others may still send to this task by it, so that `heavy` stays.
            self.light = Light::new(false);
        }
        // It need not tell us that it writes here.
        self.segment.contact(task);
        self.known[task as usize / 64] |= 1 << (task % 64);
        self.contacts.push(task);
        self.away.back.push_back((task, words.epoch));
        Ok(())
    }

    /// A peer that this task is connected with.
    fn peer(&self, task: Task) -> Option<&Peer> {
        self.peers[task as usize].as_ref()
    }
}

#[cfg(test)]
mod tests;
