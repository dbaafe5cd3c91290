//! What two tasks pass to each other to connect, and how a connection reaches the transport.
//!
//! A [`Connector`] works beside the transport, possibly on its own thread: it makes [`Offer`]s,
//! maps what peers offer, and leaves connections in [`Arrivals`], where the transport fetches them.

use super::door::{Door, Memory};
use super::group::Group;
use super::peer::{Life, Peer, Process};
use super::remote::Landmark;
use super::segment::{RingMemory, Segment, Sizes};
use super::window::{self, Part, Window, WindowPart};
use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::base::asymmetric_barrier::Light;
use crate::base::descriptor::Descriptor;
use crate::base::limits;
use crate::base::ring::{Consumer, Producer};
use crate::base::sync::Mutex;
use crate::error::{Error, Result};
use crate::transport::{PeerState, Task};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many descriptors a task passes to another one.
pub const DESCRIPTORS: usize = 3;

/// Connects this task with its peers when the transport needs them. Its connections appear
/// in [`Arrivals`]. What is not defined is of no effect, as where there is no peer to connect with.
pub trait Connector: Send {
    /// The transport has something for the peer, or awaits something from it.
    fn want(&self, _peer: Task) {}

    /// A connection that the peer has confirmed is among the arrivals when this returns, although
    /// the confirmation was not read yet, or the peer has ended since.
    fn settle(&self, _peer: Task) {}

    /// What is known of a peer that this task is not connected with.
    fn absence(&self, peer: Task) -> Absence;

    /// Whether the process that this task is connected with has parted from this task, and
    /// asks for another connection, which it gets when this task has parted from it, too, and
    /// lets it rejoin.
    fn has_parted(&self, _peer: Task) -> bool {
        false
    }

    /// The peer is given up: a connection that waits among the arrivals is dropped,
    /// and none is made.
    fn part(&self, _peer: Task) {}

    /// The peer may rejoin. It gets this epoch.
    fn rejoin(&self, _peer: Task, _epoch: u64) {}

    /// Ends all of this. No task can connect any more.
    fn close(&mut self) {}
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absence {
    /// The peer's state.
    pub state: PeerState,
    /// A clause that follows the peer's name.
    pub why: String,
}

/// What a task passes to its peers, and where it maps theirs.
pub struct Site {
    me: Task,
    group: Arc<Group>,
    /// Of this task in it.
    rank: u32,
    sizes: Sizes,
    /// This task's segment.
    file: OwnedFd,
    event: Arc<Descriptor>,
    window: Arc<Window>,
    arrivals: Arc<Arrivals>,
}

/// The connections that wait for the transport.
#[derive(Default)]
pub struct Arrivals {
    /// There are first contacts: checked whenever no packet has arrived.
    waiting: AtomicBool,
    connections: Mutex<Vec<Connection>>,
}

/// A ring that is offered to a peer for what it will send, and its memory's file.
pub struct Offer {
    ring: RingMemory,
    consumer: Consumer,
    file: OwnedFd,
}

/// What a peer has offered, mapped.
pub struct Accepted {
    producer: Producer,
    ring: RingMemory,
    segment: Segment,
    event: Descriptor,
}

/// What a peer has sent about itself, as far as the transport needs it.
#[derive(Clone, Copy, Debug)]
pub struct Particulars {
    /// Which task.
    pub task: Task,
    /// The task's process; 0 when it cannot be seen from here.
    pub pid: i32,
    /// Where its landmark is, and what it holds.
    pub landmark: Landmark,
    /// The task takes part in asymmetric barriers.
    pub asymmetric: bool,
    /// The epoch that it has sent, where it has let this task rejoin.
    pub epoch: u64,
    /// This task has let it rejoin.
    pub rejoins: bool,
}

/// A connection, ready for use.
pub(super) struct Connection {
    pub(super) about: Particulars,
    pub(super) peer: Peer,
}

impl Site {
    pub(super) fn new(
        me: Task,
        group: Arc<Group>,
        sizes: Sizes,
        file: OwnedFd,
        event: Arc<Descriptor>,
    ) -> Result<Self> {
        let Some(rank) = group.rank(me) else {
            return Err(Error::new(LAPI_ERR_SHM_SETUP, format!("task {me} is not on this host")));
        };
        let places = group.largest;
        let window = Window::reserve(places, sizes.segment, sizes.ring).map_err(|reason| {
            let bytes = window::bytes(places, sizes.segment, sizes.ring);
            let reason = limits::explained(reason);
            let detail = format!("no room for {bytes} bytes of peers' shared memory: {reason}");
            Error::new(LAPI_ERR_SHM_SETUP, detail)
        })?;
        Ok(Self { me, group, rank, sizes, file, event, window, arrivals: Arc::default() })
    }

    pub(super) fn arrivals(&self) -> Arc<Arrivals> {
        self.arrivals.clone()
    }

    /// This task.
    pub fn me(&self) -> Task {
        self.me
    }

    /// Where a part of the peer's memory is mapped; `None`: anywhere.
    fn place(&self, peer: Task, part: Part) -> Option<WindowPart> {
        self.window.place(self.group.rank(peer)?, part)
    }

    /// Makes a ring for what the peer will send.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`, with the system's reason.
    pub fn offer(&self, peer: Task) -> Result<Offer> {
        let (file, ring) = RingMemory::create(self.sizes, self.place(peer, Part::Receive))?;
        Ok(Offer { consumer: ring.consumer(), ring, file })
    }

    /// What is passed to the peer.
    pub fn descriptors<'a>(&'a self, offer: &'a Offer) -> [BorrowedFd<'a>; DESCRIPTORS] {
        [self.file.as_fd(), self.event.as_fd(), offer.file.as_fd()]
    }

    /// Maps what the peer has passed.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`: it cannot be used, and why.
    pub fn accept(&self, peer: Task, passed: Vec<OwnedFd>) -> Result<Accepted> {
        let [segment, event, ring] = <[OwnedFd; DESCRIPTORS]>::try_from(passed).map_err(|passed| {
            let detail = format!("task {peer} has passed {} descriptors, not {DESCRIPTORS}", passed.len());
            Error::new(LAPI_ERR_SHM_SETUP, detail)
        })?;
        let place = self.place(peer, Part::Segment);
        let segment = Segment::open(segment.as_fd(), self.sizes, peer, place)?;
        let place = self.place(peer, Part::Send);
        let ring = RingMemory::open(ring.as_fd(), self.sizes, peer, place)?;
        Ok(Accepted { producer: ring.producer(), ring, segment, event: Descriptor::passed(event) })
    }

    /// Hands a connection to the transport. `life` is a descriptor whose other end is open while
    /// the peer's process lives and is the same program.
    pub fn establish(&self, about: Particulars, offer: Offer, accepted: Accepted, life: Life) {
        let peer = Peer {
            door: Door {
                out: accepted.producer,
                inward: offer.consumer,
                segment: accepted.segment,
                event: accepted.event,
                stuck_at: None,
                awaited: VecDeque::new(),
                heard: 0,
                asked: 0,
                light: Light::new(false),
                rank: self.rank,
                memory: Memory { send: accepted.ring, receive: offer.ring },
            },
            process: Process { life: Some(life), pid: about.pid, landmark: about.landmark },
            quiet: false,
            taken_before: 0,
        };
        self.arrivals.connections.lock().push(Connection { about, peer });
        if !about.rejoins {
            self.arrivals.waiting.store(true, Ordering::Release);
        }
        self.event.signal();
    }

    /// Drops what waits for the transport of this peer.
    pub fn take_back(&self, peer: Task) {
        self.arrivals.connections.lock().retain(|connection| connection.about.task != peer);
    }

    /// Whether a connection with the peer waits for the transport.
    pub fn has_established(&self, peer: Task) -> bool {
        self.arrivals.connections.lock().iter().any(|connection| connection.about.task == peer)
    }
}

impl Arrivals {
    #[inline]
    pub(super) fn has_first_contacts(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// The connections that wait, of peers that `wanted` admits.
    pub(super) fn fetch(&self, mut wanted: impl FnMut(&Particulars) -> bool) -> Vec<Connection> {
        let mut connections = self.connections.lock();
        let (taken, left): (Vec<_>, Vec<_>) =
            connections.drain(..).partition(|connection| wanted(&connection.about));
        *connections = left;
        let first = connections.iter().any(|connection| !connection.about.rejoins);
        self.waiting.store(first, Ordering::Release);
        taken
    }
}
