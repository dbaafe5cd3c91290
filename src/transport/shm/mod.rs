//! Shared memory between the tasks of one machine.
//!
//! Each task owns a segment with one single-producer ring for each peer ([`segment`], [`crate::base::ring`]). A task
//! sends by writing into its ring in the peer's segment, and wakes the peer, by an event descriptor, only when that
//! says that it sleeps. Long messages may also be copied across address spaces ([`attach`]).

pub mod attach;
mod away;
#[cfg(one_mapping)]
mod one_mapping;
mod peer;
pub mod segment;

use super::{Attach, Glance, Inbound, Limits, Outgoing, PeerState, STRANGER, SendError, Task, Transport};
use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::base::fence::Light;
use crate::base::ring::Room;
use crate::error::{Error, Result};
use crate::wire::reunion::{Reunion, Search};
use away::{Away, Returned};
use peer::{Peer, Process};
use rustix::event::{EventfdFlags, eventfd};
use segment::{Segment, Strip};
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
    max_body: usize,
    attach: Option<Box<dyn Attach>>,
    event: OwnedFd,
    away: Away,
    /// Peers that this task has parted from, whose memory may still be in use: until the next packet is asked for.
    left: Vec<Peer>,
    /// Dropped after the peers' consumers, which lie in it.
    segment: Segment,
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
            max_body: segment::geometry(tasks).data / 16,
            attach: None,
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
        attach: Option<Box<dyn Attach>>,
    ) -> Result<()> {
        let tasks = self.peers.len() as u32;
        self.light = Light::new(asymmetric);
        self.attach = attach;
        self.away.all_met();
        for (task, parts) in parts.into_iter().enumerate() {
            let Some(parts) = parts else { continue };
            let segment = Segment::open(parts.file.as_fd(), tasks, task as Task)?;
            self.peers[task] = Some(Peer {
                out: segment.producer(self.me),
                inward: self.segment.consumer(task as Task),
                segment,
                _strips: None,
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
    pub fn come_back(&mut self, attach: impl FnOnce() -> Option<Box<dyn Attach>>) -> Search {
        for task in (0..self.peers.len() as Task).filter(|&task| task != self.me) {
            if self.peers[task as usize].is_none() {
                self.away.seek(task);
            }
        }
        self.away.call_all(self.event.as_fd());
        if self.attach.is_none() {
            self.attach = attach();
        }
        self.connect_all();
        if self.away.back.iter().all(|&(_, greeting)| greeting == STRANGER) {
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
        let Returned { task, pid, words, segment, event, strip, inlet } = returned;
        let tasks = self.peers.len() as u32;
        let strip = Strip::open(strip.as_fd(), tasks, task)?;
        self.peers[task as usize] = Some(Peer {
            out: strip.producer(),
            inward: inlet.consumer,
            segment: Segment::open(segment.as_fd(), tasks, task)?,
            _strips: Some([strip, inlet.strip]),
            event,
            process: Process::watch(pid),
            contacted: false,
            stuck_at: None,
        });
        if let Some(attach) = self.attach.as_deref_mut() {
            attach.moved(task, Some((pid, words.landmark)));
        }
        if !words.asymmetric {
            self.light = Light::new(false);
        }
        // It need not tell us that it writes here.
        self.segment.contact(task);
        self.known[task as usize / 64] |= 1 << (task % 64);
        self.contacts.push(task);
        self.away.back.push_back((task, words.greeting));
        Ok(())
    }

    /// A peer that is there.
    fn peer(&self, task: Task) -> Option<&Peer> {
        self.peers[task as usize].as_ref()
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
        self.stuck.iter().filter_map(|&task| self.peer(task)).any(|peer| {
            peer.stuck_at.is_some_and(|then| peer.out.room_since(then)) || !peer.segment.running()
        })
    }

    fn no_room(&mut self, task: Task) {
        let Some(peer) = self.peers[task as usize].as_mut() else { return };
        if peer.stuck_at.replace(peer.out.want_room()).is_none() {
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
        let Some(peer) = self.peers[task as usize].as_mut() else {
            return Err(if self.away.awaits(task) { SendError::NoRoom } else { SendError::PeerGone });
        };
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
        if peer.segment.doorbell().must_ring(light) {
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
        if !self.left.is_empty() {
            self.left.clear();
        }
        if self.new_contacts() {
            self.meet_new();
            return self.take();
        }
        None
    }

    fn hold(&mut self, peer: Task, held: bool) {
        let (from, to) =
            if held { (&mut self.contacts, &mut self.held) } else { (&mut self.held, &mut self.contacts) };
        if let Some(at) = from.iter().position(|&task| task == peer) {
            to.push(from.remove(at));
            (self.turn, self.streak) = (0, 0);
        }
    }

    #[inline]
    fn release(&mut self, packet: Inbound) {
        let light = self.light;
        let Some(peer) = self.peers[packet.src as usize].as_mut() else { return };
        if peer.inward.release(packet.body_len, light) == Room::Wanted
            && peer.segment.doorbell().must_ring(light)
        {
            ring_bell(&peer.event);
        }
    }

    fn arm(&mut self) -> bool {
        self.segment.doorbell().lie_down(|| {
            self.new_contacts()
                || self.contacts.iter().filter_map(|&task| self.peer(task)).any(|peer| peer.inward.ready())
                || self.room_again()
        })
    }

    fn disarm(&mut self) {
        self.segment.doorbell().get_up();
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
        if let Some(peer) = self.peer(task) {
            ring_bell(&peer.event);
        }
    }

    #[inline]
    fn set_attentive(&mut self, attentive: bool) {
        self.segment.set_attentive(attentive);
    }

    fn last_look(&self) -> Option<u64> {
        Some(self.segment.last_look())
    }

    /// A peer that is away is to be sent packets: they wait for it.
    fn attentive(&self, task: Task) -> bool {
        self.peer(task).is_none_or(|peer| peer.segment.attentive())
    }

    #[inline]
    fn open(&self, task: Task) -> bool {
        match self.peer(task) {
            Some(peer) => peer.segment.running(),
            None => self.away.awaits(task),
        }
    }

    fn peer_state(&self, task: Task) -> PeerState {
        match self.peer(task) {
            Some(peer) => peer.state(),
            None if task == self.me || self.away.awaits(task) => PeerState::Up,
            None => PeerState::Dead,
        }
    }

    fn pulse(&self, task: Task) -> u64 {
        self.peer(task).map_or(0, |peer| peer.inward.taken().wrapping_add(peer.out.given_back()))
    }

    fn glance(&self, task: Task) -> Option<Glance> {
        let peer = self.peers.get(task as usize)?.as_ref()?;
        let (unread, slots) = peer.out.filled();
        let stuck = peer.stuck_at.is_some_and(|then| !peer.out.room_since(then));
        Some(Glance {
            unread,
            slots,
            stuck,
            asleep: peer.segment.doorbell().asleep(),
            arrived: peer.inward.ready(),
        })
    }

    fn attach(&self) -> Option<&dyn Attach> {
        self.attach.as_deref()
    }

    fn note_fetched(&self, task: Task, bytes: u64) {
        if let Some(peer) = self.peer(task) {
            peer.segment.note_fetched(bytes);
        }
    }

    fn fetched(&self) -> u64 {
        self.segment.fetched()
    }

    fn part(&mut self, task: Task) {
        if let Some(peer) = self.peers[task as usize].take() {
            self.left.push(peer);
            self.contacts.retain(|&contact| contact != task);
            self.held.retain(|&held| held != task);
            self.stuck.retain(|&stuck| stuck != task);
            (self.turn, self.streak) = (0, 0);
            if let Some(attach) = self.attach.as_deref_mut() {
                attach.moved(task, None);
            }
        }
        self.away.part(task);
    }

    fn rejoin(&mut self, task: Task, greeting: u64) -> Result<()> {
        self.part(task);
        self.away.expect(task, greeting)?;
        self.connect_all();
        if self.away.awaits(task) {
            self.away.call(task, self.event.as_fd());
        }
        Ok(())
    }

    fn rejoined(&mut self) -> Option<(Task, u64)> {
        if self.away.awaits_any() {
            self.connect_all();
            let _ = self.away.open();
            self.away.call_all(self.event.as_fd());
        }
        self.away.back.pop_front()
    }

    fn close(&mut self) {
        self.away.close();
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
