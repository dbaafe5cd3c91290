//! The transport inside one process: many contexts, joined by queues in ordinary memory.
//!
//! It serves tests and simulations, of which many run in one process and some in one thread. It is
//! simple rather than fast: each task has one inbox behind one lock, and everything that decides
//! about a wake-up (a packet put in, room made, a task gone, arming, disarming) happens under that
//! lock, so no wake-up is lost.
//!
//! Every directed pair has its own bounded lane in the receiver's inbox. A packet takes its place
//! from the send until its release. [`recv`](crate::transport::Endpoint::recv) serves the lanes
//! that have packets in turn.
//!
//! A task that is dropped without [`close`](crate::transport::Endpoint::close), or killed by
//! [`NetworkHandle::kill`], is dead for its peers. A task that closes or dies wakes all others, so
//! that they look again.

mod endpoint;
mod network;
mod peer;
mod remote;
mod wakeup;

use crate::transport::parcel::Parcel;
use crate::transport::{Outgoing, PeerState, Piece, Task, Ticket, Wakeup};
use network::Network;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How the tasks of a [`network`] are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemOptions {
    /// The longest body of one packet, in bytes.
    pub max_body: usize,
    /// How many packets of one sender wait at one receiver, at most. At least 1.
    pub capacity: usize,
    /// Packets that may be taken are: their bodies are read when the peer receives them.
    pub take: bool,
    /// One packet in this number is lost at first, and sent again after [`RESEND`]; 0: none.
    pub lose: u32,
    /// Offer [`RemoteAccess`](crate::transport::RemoteAccess). It copies inside the process, so the
    /// addresses given to it must be valid here: it cannot check them, but it refuses a null one.
    pub remote: bool,
    /// A copy without a key is made by a task that its peers see polling, however long it takes.
    pub seen: bool,
    /// Remote accesses are made when the task finds no packet the next time, and reported then:
    /// many are pending at a time.
    pub pending: bool,
    /// Memory is reached by keys: an access without the key of a present registration, or beyond
    /// its memory, fails.
    pub keyed: bool,
    /// With keys: each task has a key of all memory of each peer.
    pub standing: bool,
    /// How many registrations of each task succeed; all after that fail as if a limit
    /// had been reached.
    pub registrations: u64,
    /// How many accesses by key of each task succeed; all after that fail.
    pub accesses: u64,
}

/// When a lost packet is sent again.
const RESEND: Duration = Duration::from_micros(300);

impl Default for MemOptions {
    fn default() -> Self {
        Self {
            max_body: 8192,
            capacity: 64,
            take: false,
            lose: 0,
            remote: false,
            seen: false,
            pending: false,
            keyed: false,
            standing: false,
            registrations: u64::MAX,
            accesses: u64::MAX,
        }
    }
}

/// Joins `tasks` contexts of this process: element `i` is the end of task `i`.
pub fn network(tasks: u32, options: MemOptions) -> Vec<MemTransport> {
    assert!(options.capacity > 0, "a lane without room carries nothing");
    let network = Arc::new(Network::new(tasks, options));
    (0..tasks).map(|task| MemTransport::new(task, &network)).collect()
}

/// One task's end of a [`network`].
pub struct MemTransport {
    task: Task,
    network: Arc<Network>,
    /// The packet that was handed out and not yet given back, and the number it was
    /// handed out under.
    out: Option<Parcel>,
    serial: u64,
    /// Packets that were lost, and those behind them to the same peer: when they are sent
    /// again, and where.
    unsent: VecDeque<(Instant, Task, Letter)>,
    /// Packets offered so far.
    offered: u32,
    /// Taken packets that were not reported yet, and their peers.
    lent: BTreeMap<Ticket, Task>,
    /// Remote accesses that were started, and those that were made and not reported yet.
    accesses: VecDeque<remote::Pending>,
    /// Registrations asked for so far.
    registered: u64,
    /// Accesses by key made so far.
    accessed: u64,
    made: VecDeque<remote::Made>,
    /// The peers that are not connected with this task; `true`: the peer may rejoin.
    absent: BTreeMap<Task, bool>,
    /// Peers from which nothing is taken now.
    held: BTreeSet<Task>,
    /// How often peers had been restarted when this task was connected with them; 0 for a peer
    /// without an entry.
    lives: BTreeMap<Task, u64>,
}

/// A packet on its way, of which the second piece may still be in its sender's memory.
struct Letter {
    parcel: Parcel,
    lent: Option<(Ticket, Piece)>,
}

// SAFETY: a lent piece is read by one thread at a time, and until it is reported its sender does
// not change it.
unsafe impl Send for Letter {}

impl Letter {
    /// # Safety
    /// The pieces of `packet` are readable during the call; with a `ticket` its second piece is
    /// until [`Self::fetch`].
    unsafe fn new(src: Task, packet: &Outgoing<'_>, words: Vec<u64>, ticket: Option<Ticket>) -> Self {
        let lent = ticket.zip(packet.lendable());
        let second = if lent.is_some() { Piece::EMPTY.into() } else { packet.second };
        // SAFETY: the caller's promise.
        let parcel = unsafe { Parcel::gather(src, &Outgoing { second, ..*packet }, words) };
        Self { parcel, lent }
    }

    /// Copies what is still in its sender's memory, which is free then: the ticket under
    /// which it was lent.
    fn fetch(&mut self) -> Option<Ticket> {
        let (ticket, second) = self.lent.take()?;
        let own = self.parcel.inbound(0);
        // SAFETY: the head of the parcel, which is replaced below only.
        let head = unsafe { std::slice::from_raw_parts(own.head, own.head_len) };
        let first = Piece { ptr: own.body, len: own.body_len };
        let packet = Outgoing { head, first, second: second.into(), copy_limit: usize::MAX };
        // SAFETY: the first piece is the parcel's own; the second one is readable, as promised.
        self.parcel = unsafe { Parcel::gather(self.parcel.src, &packet, Vec::new()) };
        Some(ticket)
    }
}

impl MemTransport {
    fn new(task: Task, network: &Arc<Network>) -> Self {
        Self {
            task,
            network: network.clone(),
            out: None,
            serial: 0,
            unsent: VecDeque::new(),
            offered: 0,
            lent: BTreeMap::new(),
            accesses: VecDeque::new(),
            registered: 0,
            accessed: 0,
            made: VecDeque::new(),
            absent: BTreeMap::new(),
            held: BTreeSet::new(),
            lives: BTreeMap::new(),
        }
    }

    /// A handle of the whole network, for tests: it can kill tasks.
    pub fn handle(&self) -> NetworkHandle {
        NetworkHandle(self.network.clone())
    }
}

/// Acts on a network from outside of its tasks.
#[derive(Clone)]
pub struct NetworkHandle(Arc<Network>);

impl NetworkHandle {
    /// Ends `task` as if its process had been killed: what waits in its inbox is gone, it sends and
    /// receives nothing any more, its peers see [`PeerState::Dead`]. What it sent before still
    /// arrives. Has no effect on a task that has closed or died before.
    pub fn kill(&self, task: Task) {
        self.0.depart(task, PeerState::Dead);
    }

    /// The last number of packets that a task wanted to be acknowledged together; 0: none.
    pub fn acknowledges_every(&self, task: Task) -> u16 {
        self.0.end(task).acknowledges_every.load(Ordering::Relaxed)
    }

    /// How many registrations are present.
    pub fn registrations(&self) -> usize {
        self.0.registrations.lock().len()
    }

    /// How many of them are for accesses that are not to be striped.
    pub fn registrations_for_one_rail(&self) -> usize {
        self.0.registrations.lock().values().filter(|registration| registration.one_rail).count()
    }

    /// Restarts the task `task`, which has left: it rejoins all tasks that let it. Its former end
    /// must have been dropped.
    pub fn restart(&self, task: Task, epoch: u64) -> MemTransport {
        let end = self.0.end(task);
        let mut inbox = end.inbox.lock();
        assert_ne!(end.state(), PeerState::Up, "a task that has not left");
        inbox.lanes.clear();
        inbox.ready.clear();
        // A peer that has not noticed the death is not connected with the new process.
        end.life.fetch_add(1, Ordering::AcqRel);
        end.state.store(PeerState::Up as u8, Ordering::Release);
        drop(inbox);
        let mut transport = MemTransport::new(task, &self.0);
        for peer in (0..self.0.ends.len() as Task).filter(|&peer| peer != task) {
            transport.part(peer);
            transport.await_rejoin(peer, epoch);
        }
        transport
    }
}

impl Drop for MemTransport {
    fn drop(&mut self) {
        self.disarm();
        self.network.free_memory_of(self.task);
        self.network.depart(self.task, PeerState::Dead);
    }
}

#[cfg(test)]
mod tests;
