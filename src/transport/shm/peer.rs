//! The peers. While this task is connected with a peer it has that peer's segment, the rings between the two, and a
//! descriptor of its process.

use super::ShmTransport;
use super::segment::{RejoinRing, Segment};
use super::wakeup::ring_bell;
use crate::base::ring::{Consumer, Producer, Shortage};
use crate::error::Result;
use crate::transport::{ConnectionView, PeerState, Peers, Task};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, OwnedFd};

pub(super) struct Peer {
    /// Dropped before the memory that they lie in: fields are dropped in order.
    pub(super) out: Producer,
    pub(super) inward: Consumer,
    pub(super) segment: Segment,
    /// The rings' memory, where they do not lie in the segments.
    pub(super) _rings: Option<[RejoinRing; 2]>,
    pub(super) event: OwnedFd,
    pub(super) process: Process,
    /// It knows that this task writes to it.
    pub(super) contacted: bool,
    /// The last packet found no room there.
    pub(super) stuck_at: Option<Shortage>,
}

impl Peer {
    pub(super) fn state(&self) -> PeerState {
        if self.segment.closed() {
            return PeerState::Closed;
        }
        if self.process.has_ended() { PeerState::Dead } else { PeerState::Up }
    }
}

impl Peers for ShmTransport {
    fn state(&self, task: Task) -> PeerState {
        match self.peer(task) {
            Some(peer) => peer.state(),
            None if task == self.me || self.away.awaits(task) => PeerState::Up,
            None => PeerState::Dead,
        }
    }

    #[inline]
    fn is_open(&self, task: Task) -> bool {
        match self.peer(task) {
            Some(peer) => peer.segment.running(),
            None => self.away.awaits(task),
        }
    }

    fn progress(&self, task: Task) -> u64 {
        self.peer(task).map_or(0, |peer| peer.inward.taken().wrapping_add(peer.out.given_back()))
    }

    fn kick(&self, task: Task) {
        if let Some(peer) = self.peer(task) {
            ring_bell(&peer.event);
        }
    }

    #[inline]
    fn set_polling(&mut self, polling: bool, now: u64) {
        self.segment.set_polling(polling, now);
    }

    /// A peer that is absent is to be sent packets: they wait for it.
    fn polls(&self, task: Task) -> bool {
        self.peer(task).is_none_or(|peer| peer.segment.polls())
    }

    fn view(&self, task: Task) -> Option<ConnectionView> {
        let peer = self.peers.get(task as usize)?.as_ref()?;
        let (in_flight, window) = peer.out.filled();
        Some(ConnectionView {
            in_flight,
            window,
            no_room: peer.stuck_at.is_some_and(|then| !peer.out.room_since(then)),
            asleep: peer.segment.doorbell().asleep(),
            arrived: peer.inward.ready(),
        })
    }

    fn part(&mut self, task: Task) {
        self.disconnect(task);
        self.away.part(task);
    }

    fn rejoin(&mut self, task: Task, epoch: u64) -> Result<()> {
        self.part(task);
        self.away.expect(task, epoch)?;
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
}

impl ShmTransport {
    /// Takes nothing from the peer any more and sends it nothing: it counts as dead. Its memory stays until no packet can be
    /// in use.
    #[cold]
    pub(super) fn disconnect(&mut self, task: Task) {
        let Some(peer) = self.peers[task as usize].take() else { return };
        self.left.push(peer);
        self.contacts.retain(|&contact| contact != task);
        self.held.retain(|&held| held != task);
        self.stuck.retain(|&stuck| stuck != task);
        (self.turn, self.streak) = (0, 0);
        if let Some(memory) = &mut self.memory {
            memory.moved(task, None);
        }
    }
}

/// How a peer's process is watched.
pub(super) enum Process {
    /// By this descriptor, which becomes readable when it ends.
    Known(OwnedFd),
    /// It had ended before it could be watched.
    Gone,
    /// Not at all.
    Unknown,
}

impl Process {
    pub(super) fn watch(pid: i32) -> Self {
        match Pid::from_raw(pid).map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            Some(Ok(process)) => Self::Known(process),
            Some(Err(rustix::io::Errno::SRCH)) => Self::Gone,
            // Not allowed, or no descriptor is left: then its death shows only by its silence.
            _ => Self::Unknown,
        }
    }

    fn has_ended(&self) -> bool {
        match self {
            Self::Known(process) => {
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                let mut polled = [PollFd::new(process, PollFlags::IN)];
                rustix::event::poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
            }
            Self::Gone => true,
            Self::Unknown => false,
        }
    }
}
