//! Shared memory between the tasks of one machine.
//!
//! Each task owns a segment with one single-producer ring for each peer ([`segment`], [`crate::base::ring`]). A task
//! sends by writing into its ring in the peer's segment, and wakes the peer, by an event descriptor, only when that
//! says that it sleeps. Long messages may also be copied across address spaces ([`attach`]).

pub mod attach;
pub mod segment;

use super::{Attach, Inbound, Limits, Outgoing, PeerState, SendError, Task, Transport};
use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::base::fence::{self, Light};
use crate::base::ring::{Consumer, Producer, Room};
use crate::error::{Error, Result};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use segment::Segment;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Packets taken from one peer before the next one's turn.
const STREAK: u32 = 8;

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

struct Peer {
    /// Dropped before the segment that it lies in: fields are dropped in order.
    out: Producer,
    inward: Consumer,
    segment: Segment,
    event: OwnedFd,
    process: Process,
    /// It knows that we write to it.
    contacted: bool,
    /// We found no room there, when it had given back so much.
    stuck_at: Option<u64>,
}

/// How a peer's process is watched.
enum Process {
    /// By this descriptor, which becomes readable when it ends.
    Known(OwnedFd),
    /// It had ended before it could be watched.
    Gone,
    /// Not at all.
    Unknown,
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
    /// Peers without room.
    stuck: Vec<Task>,
    light: Light,
    max_body: usize,
    attach: Option<Box<dyn Attach>>,
    event: OwnedFd,
    /// Dropped after the peers' consumers, which lie in it.
    segment: Segment,
}

impl ShmTransport {
    /// Joins the tasks that have met: `parts` has what each of them has passed, by task, and nothing for `me`.
    /// `asymmetric` when all of them can take part in asymmetric barriers.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`, with the task whose memory could not be used.
    pub fn join(
        me: Task,
        own: Own,
        parts: Vec<Option<PeerParts>>,
        asymmetric: bool,
        attach: Option<Box<dyn Attach>>,
    ) -> Result<Self> {
        let tasks = parts.len() as u32;
        let mut peers = Vec::with_capacity(parts.len());
        for (task, parts) in parts.into_iter().enumerate() {
            let task = task as Task;
            let Some(parts) = parts else {
                peers.push(None);
                continue;
            };
            let segment = Segment::open(parts.file.as_fd(), tasks, task)?;
            let process = match Pid::from_raw(parts.pid).map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
                Some(Ok(process)) => Process::Known(process),
                Some(Err(rustix::io::Errno::SRCH)) => Process::Gone,
                // Not allowed, or out of descriptors: then its death shows only by its silence.
                _ => Process::Unknown,
            };
            peers.push(Some(Peer {
                out: segment.producer(me),
                inward: own.segment.consumer(task),
                segment,
                event: parts.event,
                process,
                contacted: false,
                stuck_at: None,
            }));
        }
        Ok(Self {
            me,
            peers,
            contacts: Vec::new(),
            known: vec![0; (tasks as usize).div_ceil(64)],
            turn: 0,
            streak: 0,
            stuck: Vec::new(),
            light: Light::new(asymmetric),
            max_body: segment::geometry(tasks).data / 16,
            attach,
            event: own.event,
            segment: own.segment,
        })
    }

    fn peer(&self, task: Task) -> &Peer {
        self.peers[task as usize].as_ref().expect("a packet to oneself never gets here")
    }

    /// Takes note of peers that have written to us for the first time.
    #[cold]
    fn meet_new(&mut self) {
        for (word, known) in self.known.iter_mut().enumerate() {
            let mut new = self.segment.contacts(word) & !*known;
            *known |= new;
            while new != 0 {
                let task = word as Task * 64 + new.trailing_zeros();
                new &= new - 1;
                if task != self.me && self.peers.get(task as usize).is_some_and(Option::is_some) {
                    self.contacts.push(task);
                }
            }
        }
    }

    #[inline]
    fn new_contacts(&self) -> bool {
        self.known.iter().enumerate().any(|(word, known)| self.segment.contacts(word) != *known)
    }

    #[inline]
    fn take(&mut self) -> Option<Inbound> {
        let count = self.contacts.len();
        // Once around, and once more to those whose streak was over.
        for _ in 0..=count {
            let Some(&src) = self.contacts.get(self.turn) else {
                self.turn = 0;
                if count == 0 {
                    return None;
                }
                continue;
            };
            if self.streak < STREAK {
                if let Some(packet) = self.peers[src as usize].as_ref().and_then(|peer| peer.inward.peek()) {
                    self.streak += 1;
                    return Some(Inbound {
                        src,
                        head: packet.head.as_ptr(),
                        head_len: packet.head_len,
                        body: packet.body.as_ptr(),
                        body_len: packet.body_len,
                        token: 0,
                    });
                }
            }
            if self.streak >= STREAK && self.new_contacts() {
                self.meet_new();
            }
            self.streak = 0;
            self.turn = if self.turn + 1 < count { self.turn + 1 } else { 0 };
        }
        None
    }

    /// Whether a peer that was full has room since.
    fn room_again(&self) -> bool {
        self.stuck.iter().any(|&task| {
            let peer = self.peer(task);
            peer.stuck_at.is_some_and(|then| peer.out.given_back() != then) || !peer.segment.running()
        })
    }

    fn no_room(&mut self, task: Task) {
        let Some(peer) = self.peers[task as usize].as_mut() else { return };
        peer.out.want_room();
        // What the failing attempt knew, not what is known by now: room that came in between counts as new.
        if peer.stuck_at.replace(peer.out.known_back()).is_none() {
            self.stuck.push(task);
        }
    }
}

/// Makes an event descriptor readable. Fails only when it has been so 2^64 times already.
fn ring_bell(event: &OwnedFd) {
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}

impl Transport for ShmTransport {
    fn name(&self) -> &'static str {
        "shm"
    }

    fn limits(&self) -> Limits {
        Limits { max_body: self.max_body, ordered: true }
    }

    #[inline]
    unsafe fn try_send(&mut self, task: Task, packet: &Outgoing<'_>) -> std::result::Result<(), SendError> {
        let light = self.light;
        let me = self.me;
        let peer = self.peers[task as usize].as_mut().expect("a packet to oneself never gets here");
        if !peer.segment.running() {
            if peer.stuck_at.take().is_some() {
                self.stuck.retain(|&stuck| stuck != task);
            }
            return Err(SendError::PeerGone);
        }
        // SAFETY: the caller's promise.
        if unsafe { peer.out.push(packet.head, packet.first, packet.second) }.is_err() {
            self.no_room(task);
            return Err(SendError::NoRoom);
        }
        if !peer.contacted {
            peer.contacted = true;
            peer.segment.contact(me);
        }
        light.fence();
        if peer.segment.asleep() && peer.segment.must_wake() {
            ring_bell(&peer.event);
        }
        if peer.stuck_at.take().is_some() {
            self.stuck.retain(|&stuck| stuck != task);
        }
        Ok(())
    }

    #[inline]
    fn recv(&mut self) -> Option<Inbound> {
        if let Some(packet) = self.take() {
            return Some(packet);
        }
        if self.new_contacts() {
            self.meet_new();
            return self.take();
        }
        None
    }

    #[inline]
    fn release(&mut self, packet: Inbound) {
        let light = self.light;
        let Some(peer) = self.peers[packet.src as usize].as_mut() else { return };
        if peer.inward.release(packet.body_len) == Room::Wanted {
            light.fence();
            if peer.segment.asleep() && peer.segment.must_wake() {
                ring_bell(&peer.event);
            }
        }
    }

    fn arm(&mut self) -> bool {
        self.segment.set_asleep(true);
        fence::heavy();
        let busy = self.new_contacts()
            || self.contacts.iter().any(|&task| self.peer(task).inward.ready())
            || self.room_again();
        if busy {
            self.segment.set_asleep(false);
        }
        !busy
    }

    fn disarm(&mut self) {
        self.segment.set_asleep(false);
        // Nothing to read means that nobody has rung.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    fn wake(&self) {
        ring_bell(&self.event);
    }

    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        let event = self.event.try_clone();
        Box::new(move || event.iter().for_each(ring_bell))
    }

    fn poke(&self, task: Task) {
        ring_bell(&self.peer(task).event);
    }

    #[inline]
    fn set_attentive(&mut self, attentive: bool) {
        self.segment.set_attentive(attentive);
    }

    fn last_look(&self) -> Option<u64> {
        Some(self.segment.last_look())
    }

    fn attentive(&self, task: Task) -> bool {
        self.peer(task).segment.attentive()
    }

    #[inline]
    fn open(&self, task: Task) -> bool {
        self.peer(task).segment.running()
    }

    fn peer_state(&self, task: Task) -> PeerState {
        if task == self.me {
            return PeerState::Up;
        }
        let peer = self.peer(task);
        if peer.segment.closed() {
            return PeerState::Closed;
        }
        let ended = match &peer.process {
            Process::Known(process) => {
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                let mut polled = [PollFd::new(process, PollFlags::IN)];
                rustix::event::poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
            }
            Process::Gone => true,
            Process::Unknown => false,
        };
        if ended { PeerState::Dead } else { PeerState::Up }
    }

    fn attach(&self) -> Option<&dyn Attach> {
        self.attach.as_deref()
    }

    fn note_fetched(&self, task: Task, bytes: u64) {
        self.peer(task).segment.note_fetched(bytes);
    }

    fn fetched(&self) -> u64 {
        self.segment.fetched()
    }

    fn close(&mut self) {
        self.segment.close();
        for peer in self.peers.iter().flatten() {
            if peer.contacted {
                ring_bell(&peer.event);
            }
        }
    }
}

#[cfg(test)]
mod tests;
