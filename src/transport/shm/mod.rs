//! Shared memory between the tasks of one machine.
//!
//! Each task owns a segment with a few words about itself ([`segment`]). Two tasks that need
//! each other connect ([`connection`]): each makes a single-producer ring
//! ([`crate::base::ring`]) for what the other sends. A task sends by writing into its ring, and
//! wakes the peer, by an event descriptor, only when the peer sleeps. Long messages may also be
//! copied across address spaces ([`remote`]).

pub mod connection;
mod door;
mod endpoint;
mod group;
#[cfg(test)]
#[path = "tests/in_process.rs"]
pub(crate) mod in_process;
#[cfg(one_mapping)]
mod one_mapping;
mod peer;
mod polled;
pub mod remote;
pub mod segment;
mod wakeup;
mod window;

use super::{NO_EPOCH, PeerState, Task};
use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::base::asymmetric_barrier::{Heavy, Light};
use crate::base::descriptor::Descriptor;
use crate::base::machine::page;
use crate::base::ring::Geometry;
use crate::base::slots::Slots;
use crate::error::{Error, Result};
use connection::{Absence, Arrivals, Connection, Connector, Site};
pub use door::Door;
pub use group::Group;
use peer::{Life, Peer};
use polled::Polled;
use remote::CrossMemory;
use segment::{Segment, Sizes};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// One task's end of shared memory.
pub struct ShmTransport {
    me: Task,
    group: Arc<Group>,
    peers: Slots<Peer>,
    /// The peers whose rings this task polls.
    polled: Polled,
    /// Peers from which nothing is taken now.
    held: Vec<Task>,
    /// Peers whose rings were full.
    stuck: Vec<Task>,
    light: Light,
    heavy: Heavy,
    geometry: Geometry,
    memory: Option<CrossMemory>,
    event: Arc<Descriptor>,
    arrivals: Arc<Arrivals>,
    connector: Box<dyn Connector>,
    /// The peers that this task has parted from and is not connected with.
    absent: BTreeMap<Task, Absent>,
    /// The peers that the connector was asked to connect with: it keeps trying, and is asked once.
    asked: BTreeSet<Task>,
    /// Peers with an epoch that were not named yet.
    back: VecDeque<(Task, u64)>,
    /// Peers that this task has parted from, whose memory may still be in use: until the next
    /// packet is asked for.
    left: Vec<Peer>,
    /// The channels to peers that this task has parted from: open, they say that its process lives.
    parted: BTreeMap<Task, Life>,
    closed: bool,
    segment: Segment,
}

/// A peer that this task has parted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absent {
    /// The peer may not rejoin.
    Parted,
    /// The peer may rejoin.
    Rejoining,
}

/// What a task needs before it can connect.
pub struct Own {
    me: Task,
    group: Arc<Group>,
    event: Arc<Descriptor>,
    segment: Segment,
    arrivals: Arc<Arrivals>,
}

impl Own {
    /// Makes the segment and the event descriptor of a task of this group, and keeps addresses free
    /// for its peers.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`: some host has too many tasks, or the system's reason.
    pub fn create(me: Task, group: Group) -> Result<(Self, Site)> {
        Self::with_pages(me, group, page())
    }

    /// A task whose peers have pages of `page` bytes, as it has: a power of two and a multiple of
    /// the machine's. Otherwise as [`Self::create`].
    fn with_pages(me: Task, group: Group, page: usize) -> Result<(Self, Site)> {
        let sizes = Sizes::of(group.largest, page);
        let (file, segment) = Segment::with_sizes(group.largest, sizes)?;
        let event = Descriptor::event()
            .map_err(|reason| Error::new(LAPI_ERR_SHM_SETUP, format!("no event descriptor: {reason}")))?;
        let event = Arc::new(event);
        let group = Arc::new(group);
        let site = Site::new(me, group.clone(), sizes, file, event.clone())?;
        Ok((Self { me, group, event, segment, arrivals: site.arrivals() }, site))
    }
}

impl ShmTransport {
    /// A task that is not connected with any peer yet. `asymmetric` when it can take part in
    /// asymmetric barriers; `connector` works with the [`Site`] that was made with `own`.
    pub fn new(
        own: Own,
        asymmetric: bool,
        memory: Option<CrossMemory>,
        connector: Box<dyn Connector>,
    ) -> Self {
        Self {
            me: own.me,
            peers: Slots::new(own.group.job),
            polled: Polled::default(),
            held: Vec::new(),
            stuck: Vec::new(),
            light: Light::new(asymmetric),
            heavy: Heavy::new(asymmetric),
            geometry: segment::geometry(own.group.largest),
            group: own.group,
            memory,
            event: own.event,
            arrivals: own.arrivals,
            connector,
            absent: BTreeMap::new(),
            asked: BTreeSet::new(),
            back: VecDeque::new(),
            left: Vec::new(),
            parted: BTreeMap::new(),
            closed: false,
            segment: own.segment,
        }
    }

    /// The only task of a job: nothing reaches it but what it sends itself, which no transport
    /// carries.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`, with the system's reason.
    pub fn alone() -> Result<Self> {
        let (own, _) = Own::create(0, Group::all(1))?;
        Ok(Self::new(own, false, None, Box::new(NoConnector)))
    }

    /// Fetches the first contacts that wait. May be called while a packet is in use: none of these
    /// peers was connected before.
    #[cold]
    fn fetch_first_contacts(&mut self) {
        let (absent, left) = (&self.absent, &self.left);
        // A packet of a peer that has left is given back under the peer's number.
        let connections = self
            .arrivals
            .fetch(|about| !about.rejoins && (left.is_empty() || !absent.contains_key(&about.task)));
        connections.into_iter().for_each(|connection| self.connect(connection));
    }

    /// Fetches the peers that this task has let rejoin; not while a packet of their former
    /// connections may be in use.
    fn fetch_rejoined(&mut self) {
        if self.left.is_empty() {
            let connections = self.arrivals.fetch(|about| about.rejoins);
            connections.into_iter().for_each(|connection| self.connect(connection));
        }
    }

    fn connect(&mut self, connection: Connection) {
        let Connection { about, mut peer } = connection;
        let task = about.task;
        if self.closed || self.peers.get(task).is_some() || self.absent.get(&task) == Some(&Absent::Parted) {
            return;
        }
        self.absent.remove(&task);
        self.asked.remove(&task);
        self.parted.remove(&task);
        peer.door.light = self.light;
        self.peers.put(task, peer);
        if let Some(memory) = &mut self.memory {
            memory.moved(task, Some((about.pid, about.landmark)));
        }
        if !about.asymmetric {
            // It sleeps without the asymmetric barrier. Others may still send to this task by it,
            // so that `heavy` stays.
            self.light = Light::new(false);
            self.peers.update(|peer| peer.door.light = Light::new(false));
        }
        self.polled.add(task);
        if about.rejoins || about.epoch != NO_EPOCH {
            self.back.push_back((task, about.epoch));
        }
    }

    /// A peer that this task is connected with.
    fn peer(&self, task: Task) -> Option<&Peer> {
        self.peers.get(task)
    }
}

/// The connector of a job of one task.
struct NoConnector;

impl Connector for NoConnector {
    fn absence(&self, _peer: Task) -> Absence {
        Absence { state: PeerState::Dead, why: "is not a task of this job".to_owned() }
    }
}

impl Drop for ShmTransport {
    /// A task that ends without a message, as after a LAPI_Init that fails, must not be waited for.
    fn drop(&mut self) {
        crate::transport::Endpoint::close(self);
    }
}

#[cfg(test)]
mod tests;
