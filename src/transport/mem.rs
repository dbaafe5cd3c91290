//! The transport inside one process: many contexts, joined by queues in ordinary memory.
//!
//! It serves tests and simulations, of which many run in one process and some in one thread. It is written to be
//! plainly right rather than fast: each task has one inbox behind one lock, and everything that decides about a
//! wake-up (a packet put in, room made, a task gone, arming, disarming) happens under that lock, so none is lost.
//!
//! Every directed pair has its own bounded lane in the receiver's inbox. A packet takes its place from the send
//! until its release. [`Transport::recv`] goes round over the lanes that have something.
//!
//! A task that is dropped without [`Transport::close`], or killed by [`MemFabricHandle::kill`], is dead for its
//! peers. Whoever leaves, in whichever way, wakes all others, so that they look again.

mod attach;

use attach::MemAttach;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::base::sync::Mutex;
use rustix::event::{EventfdFlags, eventfd};

use super::parcel::Parcel;
use super::{Attach, Inbound, Limits, Outgoing, PeerState, SendError, Task, Transport};

/// How the tasks of a [`fabric`] are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemOptions {
    /// The longest body of one packet, in bytes.
    pub max_body: usize,
    /// How many packets of one sender wait at one receiver, at most. At least 1.
    pub capacity: usize,
    /// Offer an [`Attach`]. It copies inside the process, so the addresses given to it must be valid here: it
    /// cannot find out by itself, other than that a null address is refused.
    pub attach: bool,
}

impl Default for MemOptions {
    fn default() -> Self {
        Self { max_body: 8192, capacity: 64, attach: false }
    }
}

/// Joins `tasks` contexts of this process: element `i` is the end of task `i`.
pub fn fabric(tasks: u32, options: MemOptions) -> Vec<MemTransport> {
    assert!(options.capacity > 0, "a lane without room carries nothing");
    let fabric = Arc::new(Fabric {
        options,
        ends: (0..tasks).map(|_| End::new()).collect(),
        departures: AtomicU64::new(0),
        sleepers: AtomicUsize::new(0),
        returns: Mutex::default(),
    });
    (0..tasks).map(|task| MemTransport::new(task, &fabric)).collect()
}

/// One task's end of a [`fabric`].
pub struct MemTransport {
    task: Task,
    fabric: Arc<Fabric>,
    /// The packet that was handed out and not yet given back, and the number it was handed out under.
    out: Option<Parcel>,
    serial: u64,
    attach: Option<MemAttach>,
    /// Who is not connected with this task, and may come back if so marked.
    away: BTreeMap<Task, bool>,
    /// How often peers had been started anew when this task was connected with them; who is missing: never.
    lives: BTreeMap<Task, u64>,
    /// Peers from which nothing is taken now.
    held: BTreeSet<Task>,
}

impl MemTransport {
    fn new(task: Task, fabric: &Arc<Fabric>) -> Self {
        let attach = fabric.options.attach.then(|| MemAttach(fabric.clone()));
        Self {
            task,
            fabric: fabric.clone(),
            out: None,
            serial: 0,
            attach,
            away: BTreeMap::new(),
            held: BTreeSet::new(),
            lives: BTreeMap::new(),
        }
    }

    /// A hold on the whole fabric, for tests: it can kill tasks.
    pub fn handle(&self) -> MemFabricHandle {
        MemFabricHandle(self.fabric.clone())
    }
}

/// Acts on a fabric from outside of its tasks.
#[derive(Clone)]
pub struct MemFabricHandle(Arc<Fabric>);

impl MemFabricHandle {
    /// Ends `task` as if its process had been killed: what waits in its inbox is gone, it sends and receives
    /// nothing any more, its peers see [`PeerState::Dead`]. What it sent before still arrives. Nothing happens
    /// to a task that has closed or died before.
    pub fn kill(&self, task: Task) {
        self.0.depart(task, PeerState::Dead);
    }

    /// Starts the task `task`, which has left, anew: it comes back to all that let it. The end before must have been
    /// dropped.
    pub fn restart(&self, task: Task, greeting: u64) -> MemTransport {
        let end = self.0.end(task);
        let mut inbox = end.inbox.lock();
        assert_ne!(end.state(), PeerState::Up, "a task that has not left");
        inbox.lanes.clear();
        inbox.ready.clear();
        // Who has not noticed the death is not connected with the new one.
        end.life.fetch_add(1, Ordering::AcqRel);
        end.state.store(PeerState::Up as u8, Ordering::Release);
        drop(inbox);
        let mut transport = MemTransport::new(task, &self.0);
        for peer in (0..self.0.ends.len() as Task).filter(|&peer| peer != task) {
            transport.part(peer);
            transport.await_return(peer, greeting);
        }
        transport
    }
}

impl Transport for MemTransport {
    fn name(&self) -> &'static str {
        "mem"
    }

    fn limits(&self) -> Limits {
        Limits { max_body: self.fabric.options.max_body, ordered: true }
    }

    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> Result<(), SendError> {
        assert_ne!(peer, self.task, "a transport carries nothing from a task to itself");
        assert!(packet.body_len() <= self.fabric.options.max_body, "a body beyond the limit");
        if let Some(&awaited) = self.away.get(&peer) {
            return Err(if awaited { SendError::NoRoom } else { SendError::PeerGone });
        }
        let end = self.fabric.end(peer);
        let mut inbox = end.inbox.lock();
        if !self.knows(peer)
            || end.state() != PeerState::Up
            || self.fabric.end(self.task).state() != PeerState::Up
        {
            return Err(SendError::PeerGone);
        }
        if self.fabric.returns.lock().contains_key(&(self.task, peer)) {
            // It has not taken note yet that we are back.
            return Err(SendError::NoRoom);
        }
        let Inbox { lanes, ready, spare, .. } = &mut *inbox;
        let lane = lanes.entry(self.task).or_default();
        if lane.taken == self.fabric.options.capacity {
            lane.wanted = true;
            return Err(SendError::NoRoom);
        }
        lane.wanted = false;
        lane.taken += 1;
        // SAFETY: the pieces are readable during the call, as the caller promised.
        let parcel = unsafe { Parcel::gather(self.task, packet, spare.pop().unwrap_or_default()) };
        lane.queue.push_back(parcel);
        if lane.queue.len() == 1 {
            ready.push_back(self.task);
        }
        end.call(&mut inbox);
        Ok(())
    }

    fn recv(&mut self) -> Option<Inbound> {
        assert!(self.out.is_none(), "the packet before has not been released");
        let mut inbox = self.fabric.end(self.task).inbox.lock();
        let parcel = loop {
            let at = inbox.ready.iter().position(|src| !self.held.contains(src))?;
            let src = inbox.ready.remove(at)?;
            if self.away.contains_key(&src) {
                // It does not know that we have parted.
                inbox.lanes.remove(&src);
                continue;
            }
            let lane = inbox.lanes.get_mut(&src).expect("a ready lane exists");
            let parcel = lane.queue.pop_front().expect("a ready lane has a packet");
            if !lane.queue.is_empty() {
                inbox.ready.push_back(src);
            }
            break parcel;
        };
        drop(inbox);
        self.serial += 1;
        Some(self.out.insert(parcel).inbound(self.serial))
    }

    fn hold(&mut self, peer: Task, held: bool) {
        if held {
            self.held.insert(peer);
        } else {
            self.held.remove(&peer);
        }
    }

    fn release(&mut self, packet: Inbound) {
        let parcel = self.out.take().expect("a packet is released once");
        assert_eq!(packet.token, self.serial, "the packet released is the one handed out last");
        let mut inbox = self.fabric.end(self.task).inbox.lock();
        // A task that was killed meanwhile has no lanes any more.
        let Some(lane) = inbox.lanes.get_mut(&parcel.src) else { return };
        // The lane of one that was parted from, and has come back, is a new one.
        lane.taken = lane.taken.saturating_sub(1);
        lane.released += 1;
        let wanted = std::mem::take(&mut lane.wanted);
        let src = parcel.src;
        inbox.spare.push(parcel.into_words());
        drop(inbox);
        if wanted {
            self.fabric.tell_of_room(src);
        }
    }

    fn arm(&mut self) -> bool {
        let fabric = &*self.fabric;
        let mut inbox = fabric.end(self.task).inbox.lock();
        if inbox.sleep == Sleep::Awake {
            // SeqCst: either we see a departure here, or who departs sees the sleeper in `depart`.
            fabric.sleepers.fetch_add(1, Ordering::SeqCst);
        }
        let departures = fabric.departures.load(Ordering::SeqCst);
        let gone = std::mem::replace(&mut inbox.departures, departures) != departures;
        let told = std::mem::take(&mut inbox.told);
        if gone || told || inbox.ready.iter().any(|src| !self.held.contains(src)) {
            inbox.sleep = Sleep::Awake;
            fabric.sleepers.fetch_sub(1, Ordering::SeqCst);
            return false;
        }
        inbox.sleep = Sleep::Armed;
        true
    }

    fn disarm(&mut self) {
        let end = self.fabric.end(self.task);
        // Under the lock: who signals an armed task holds it, so nothing is written after it was emptied.
        let mut inbox = end.inbox.lock();
        if std::mem::take(&mut inbox.sleep) != Sleep::Awake {
            self.fabric.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
        end.drain();
        // The descriptor of a killed task stays readable: it has nothing to wait for.
        if end.state() == PeerState::Dead {
            end.signal();
        }
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.fabric.end(self.task).event().as_fd()
    }

    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        let (fabric, task) = (self.fabric.clone(), self.task);
        Box::new(move || fabric.end(task).signal())
    }

    fn poke(&self, peer: Task) {
        self.fabric.end(peer).signal();
    }

    fn set_attentive(&mut self, attentive: bool) {
        self.fabric.end(self.task).attentive.store(attentive, Ordering::Relaxed);
    }

    fn attentive(&self, peer: Task) -> bool {
        self.fabric.end(peer).attentive.load(Ordering::Relaxed)
    }

    fn peer_state(&self, peer: Task) -> PeerState {
        match self.away.get(&peer) {
            Some(true) => PeerState::Up,
            Some(false) => PeerState::Dead,
            None if !self.knows(peer) => PeerState::Dead,
            None => self.fabric.end(peer).state(),
        }
    }

    fn pulse(&self, peer: Task) -> u64 {
        let released = |at: Task, from: Task| {
            self.fabric.end(at).inbox.lock().lanes.get(&from).map_or(0, |lane| lane.released)
        };
        released(self.task, peer).wrapping_add(released(peer, self.task))
    }

    fn attach(&self) -> Option<&dyn Attach> {
        self.attach.as_ref().map(|attach| attach as &dyn Attach)
    }

    fn part(&mut self, peer: Task) {
        self.held.remove(&peer);
        self.away.insert(peer, false);
        self.fabric.returns.lock().retain(|(from, to), _| (*from, *to) != (self.task, peer));
        self.fabric.empty(peer, self.task);
    }

    fn rejoin(&mut self, peer: Task, greeting: u64) -> crate::error::Result<()> {
        self.part(peer);
        self.await_return(peer, greeting);
        Ok(())
    }

    fn rejoined(&mut self) -> Option<(Task, u64)> {
        let mut returns = self.fabric.returns.lock();
        for (&peer, _) in self.away.iter().filter(|(_, awaited)| **awaited) {
            if let Some(&Return { greeting, life, both: true }) = returns.get(&(peer, self.task)) {
                returns.remove(&(peer, self.task));
                drop(returns);
                self.away.remove(&peer);
                self.lives.insert(peer, life);
                self.fabric.tell_of_room(peer);
                return Some((peer, greeting));
            }
        }
        None
    }

    fn close(&mut self) {
        self.fabric.depart(self.task, PeerState::Closed);
    }
}

impl MemTransport {
    /// Whether the peer is the process that this task was connected with.
    fn knows(&self, peer: Task) -> bool {
        self.fabric.end(peer).life.load(Ordering::Acquire)
            == self.lives.get(&peer).copied().unwrap_or_default()
    }

    /// This task lets `peer` come back. Whoever of the two says so last connects them: nothing is under way then.
    fn await_return(&mut self, peer: Task, greeting: u64) {
        self.away.insert(peer, true);
        let mut returns = self.fabric.returns.lock();
        let both = returns.get_mut(&(peer, self.task)).is_some_and(|other| {
            other.both = true;
            true
        });
        let life = self.fabric.end(self.task).life.load(Ordering::Acquire);
        returns.insert((self.task, peer), Return { greeting, life, both });
        if both {
            self.fabric.empty(peer, self.task);
            self.fabric.empty(self.task, peer);
        }
    }
}

impl Drop for MemTransport {
    fn drop(&mut self) {
        self.disarm();
        self.fabric.depart(self.task, PeerState::Dead);
    }
}

struct Fabric {
    options: MemOptions,
    ends: Vec<End>,
    /// How many tasks have left, in whichever way.
    departures: AtomicU64,
    /// How many tasks are armed: while none is, a departure need not look for them among thousands.
    sleepers: AtomicUsize,
    /// Who lets whom come back, until the other has taken note.
    returns: Mutex<BTreeMap<(Task, Task), Return>>,
}

/// One task's word that another one may come back.
struct Return {
    greeting: u64,
    /// How often it had been started anew.
    life: u64,
    /// The other has said the same: they are connected.
    both: bool,
}

impl Fabric {
    /// Forgets what `from` has sent to `to`.
    fn empty(&self, from: Task, to: Task) {
        let mut inbox = self.end(to).inbox.lock();
        inbox.lanes.remove(&from);
        inbox.ready.retain(|&ready| ready != from);
    }

    fn end(&self, task: Task) -> &End {
        &self.ends[task as usize]
    }

    /// There is room again where `task` was refused: it wakes, or does not fall asleep.
    fn tell_of_room(&self, task: Task) {
        let end = self.end(task);
        let mut inbox = end.inbox.lock();
        inbox.told |= inbox.sleep == Sleep::Awake;
        end.call(&mut inbox);
    }

    fn depart(&self, task: Task, how: PeerState) {
        let end = self.end(task);
        let mut inbox = end.inbox.lock();
        if end.state() != PeerState::Up {
            return;
        }
        end.state.store(how as u8, Ordering::Release);
        if how == PeerState::Dead {
            inbox.lanes.clear();
            inbox.ready.clear();
            end.signal();
        }
        drop(inbox);
        // SeqCst: as in `arm`.
        self.departures.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.ends.iter().for_each(|end| end.call(&mut end.inbox.lock()));
        }
    }
}

/// What the others see of a task.
struct End {
    inbox: Mutex<Inbox>,
    /// A [`PeerState`]. Written under the lock of `inbox`, so that a sender who holds it knows.
    state: AtomicU8,
    /// How often the task was started anew.
    life: AtomicU64,
    attentive: AtomicBool,
    /// Made when it is first needed: tasks that are stepped by one thread need none, and there may be thousands.
    event: OnceLock<OwnedFd>,
}

impl End {
    fn new() -> Self {
        Self {
            inbox: Mutex::default(),
            state: AtomicU8::new(PeerState::Up as u8),
            life: AtomicU64::new(0),
            attentive: AtomicBool::new(false),
            event: OnceLock::new(),
        }
    }

    fn state(&self) -> PeerState {
        match self.state.load(Ordering::Acquire) {
            0 => PeerState::Up,
            1 => PeerState::Closed,
            _ => PeerState::Dead,
        }
    }

    /// Wakes the task if it is armed, and has not been called yet.
    fn call(&self, inbox: &mut Inbox) {
        if inbox.sleep == Sleep::Armed {
            inbox.sleep = Sleep::Called;
            self.signal();
        }
    }

    fn event(&self) -> &OwnedFd {
        self.event.get_or_init(|| {
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .expect("an event descriptor for a task (see ulimit -n)")
        })
    }

    fn signal(&self) {
        // It fails only when the count is at its top: then the descriptor is readable already.
        let _ = rustix::io::write(self.event(), &1u64.to_ne_bytes());
    }

    fn drain(&self) {
        if let Some(event) = self.event.get() {
            // It fails only when there is nothing to read.
            let _ = rustix::io::read(event, &mut [0u8; 8]);
        }
    }
}

const _: () = assert!(PeerState::Up as u8 == 0 && PeerState::Closed as u8 == 1 && PeerState::Dead as u8 == 2);

#[derive(Default)]
struct Inbox {
    /// The lane of each sender that has ever sent here.
    lanes: BTreeMap<Task, Lane>,
    /// The senders whose lanes have something, in the order of their turns.
    ready: VecDeque<Task>,
    /// Memory of released packets.
    spare: Vec<Vec<u64>>,
    sleep: Sleep,
    /// There was news (see [`Fabric::tell_of_room`]) while the task was awake and perhaps about to sleep.
    told: bool,
    /// How many departures the task knew of when it was last armed.
    departures: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Sleep {
    #[default]
    Awake,
    /// Armed: the next event must make the descriptor readable.
    Armed,
    /// Armed, and the descriptor has been made readable.
    Called,
}

#[derive(Default)]
struct Lane {
    queue: VecDeque<Parcel>,
    /// Places in use: packets in the queue, and the one that is handed out.
    taken: usize,
    /// How many packets were given back.
    released: u64,
    /// The sender was refused and waits for room.
    wanted: bool,
}

#[cfg(test)]
mod tests;
