//! The peers. While this task is connected with a peer it has that peer's segment, the rings
//! between the two, and the channel by which they have connected, whose other end is open for as
//! long as the peer's process lives and runs the same program.

use super::door::Door;
use super::remote::Landmark;
use super::{Absent, ShmTransport};
use crate::error::Result;
use crate::transport::{ConnectionView, HAS_PURGED, PeerStanding, PeerState, Peers, Task, View, Withdrawal};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::os::fd::AsFd;

pub(super) struct Peer {
    pub(super) door: Door,
    pub(super) process: Process,
    /// This task does not poll the peer's ring: the peer announces its next packet.
    pub(super) quiet: bool,
    /// How many packets had been taken from it when that was last compared.
    pub(super) taken_before: u64,
}

impl Peer {
    /// `has_parted` is asked when the channel is cut, which a process that lives has done itself.
    fn standing(&self, has_parted: impl FnOnce() -> bool) -> PeerStanding {
        let is_cut = self.process.is_cut();
        let has_parted = is_cut && has_parted();
        let state = match () {
            () if self.door.segment.closed() => PeerState::Closed,
            () if has_parted || is_cut && !self.process.stands() => PeerState::Dead,
            () => PeerState::Up,
        };
        PeerStanding { state, absence: has_parted.then(|| HAS_PURGED.to_owned()), has_parted }
    }
}

impl Peers for ShmTransport {
    fn standing(&self, task: Task) -> PeerStanding {
        match self.peer(task) {
            Some(peer) => peer.standing(|| self.connector.has_parted(task)),
            None if task == self.me => PeerStanding::UP,
            None => {
                let known = self.connector.absence(task);
                let state = match self.absent.get(&task) {
                    Some(Absent::Parted) => PeerState::Dead,
                    Some(Absent::Rejoining) => PeerState::Up,
                    None => known.state,
                };
                PeerStanding { state, absence: Some(known.why), has_parted: false }
            }
        }
    }

    #[inline]
    fn is_open(&self, task: Task) -> bool {
        match self.peer(task) {
            Some(peer) => peer.door.segment.running(),
            None => self.absent.get(&task) != Some(&Absent::Parted),
        }
    }

    fn view(&self, task: Task) -> View {
        let Some(peer) = self.peers.get(task) else { return View::NONE };
        let (in_flight, window) = peer.door.out.filled();
        let packets = peer.door.inward.taken().wrapping_add(peer.door.out.given_back());
        View {
            progress: packets.wrapping_add(peer.door.memory.receive.signals().count()),
            polls: peer.door.segment.polls(),
            connection: Some(ConnectionView {
                in_flight,
                window,
                no_room: peer.door.stuck_at.is_some_and(|then| !peer.door.out.room_since(then)),
                asleep: peer.door.segment.doorbell().asleep(),
                arrived: peer.door.inward.ready() || peer.door.has_report(),
            }),
        }
    }

    fn withdraw(&mut self, task: Task, what: Withdrawal) {
        match what {
            Withdrawal::Connection => self.part(task),
            // Nothing is reached by keys.
            Withdrawal::Key(_) => {}
            // What waited for room is given up: room is no reason to wake up any more.
            Withdrawal::Traffic => {
                if let Some(peer) = self.peers.get_mut(task) {
                    peer.door.stuck_at = None;
                }
                self.stuck.retain(|&stuck| stuck != task);
            }
        }
    }

    fn rejoin(&mut self, task: Task, epoch: u64) -> Result<()> {
        self.part(task);
        self.absent.insert(task, Absent::Rejoining);
        self.connector.rejoin(task, epoch);
        Ok(())
    }
}

impl ShmTransport {
    /// Cuts the connection with the peer, which may not rejoin.
    pub(super) fn part(&mut self, task: Task) {
        if task == self.me {
            return;
        }
        self.asked.remove(&task);
        self.connector.part(task);
        self.disconnect(task);
        self.back.retain(|&(back, _)| back != task);
        self.absent.insert(task, Absent::Parted);
    }

    /// Asks the connector for a connection with the peer, unless it was asked before. A packet that
    /// waits is offered in every round of the dispatcher, and the connector is behind a lock that
    /// its own thread needs.
    #[cold]
    pub(super) fn ask_to_connect(&mut self, task: Task) {
        if self.asked.insert(task) {
            self.connector.want(task);
        }
    }

    /// Takes nothing from the peer any more and sends it nothing: it counts as dead. The peer
    /// starts no access to this task's memory any more. Its own memory stays until no packet
    /// can be in use.
    #[cold]
    pub(super) fn disconnect(&mut self, task: Task) {
        let Some(mut peer) = self.peers.take(task) else { return };
        if let Some(life) = peer.process.part() {
            self.parted.insert(task, life);
        }
        self.polled.remove(task, peer.quiet);
        self.hear_all();
        self.left.push(peer);
        self.held.retain(|&held| held != task);
        self.stuck.retain(|&stuck| stuck != task);
        if let Some(memory) = &mut self.memory {
            memory.moved(task, None);
        }
    }
}

/// A descriptor whose other end closes when the peer's process ends or becomes another program.
pub type Life = Box<dyn AsFd + Send>;

/// A peer's process.
pub(super) struct Process {
    /// None once this task has parted from it.
    pub(super) life: Option<Life>,
    pub(super) pid: i32,
    pub(super) landmark: Landmark,
}

/// What the channel to a peer shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Channel {
    Open,
    /// The peer has parted from this task, and its process lives and is the same program.
    Parted,
    /// The other end is closed.
    Closed,
    /// The program has closed its end here.
    Unknown,
}

impl Process {
    /// Whether the other end of the channel is closed: the process has ended, has become another
    /// program, has closed its descriptors, or has parted from this task. Also when this program
    /// has closed its own end.
    fn is_cut(&self) -> bool {
        self.channel() != Channel::Open
    }

    /// Whether its memory is not to be accessed: it has ended, has become another program, or has
    /// parted from this task.
    pub(super) fn has_left(&self) -> bool {
        match self.channel() {
            Channel::Open => false,
            Channel::Parted | Channel::Closed => true,
            Channel::Unknown => !self.stands(),
        }
    }

    fn channel(&self) -> Channel {
        let Some(life) = &self.life else { return Channel::Closed };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut polled = [PollFd::from_borrowed_fd(life.as_fd(), PollFlags::RDHUP)];
        match rustix::event::poll(&mut polled, Some(&now)) {
            Ok(1..) if polled[0].revents().contains(PollFlags::NVAL) => Channel::Unknown,
            Ok(1..) if polled[0].revents().contains(PollFlags::HUP) => Channel::Closed,
            Ok(1..) => Channel::Parted,
            _ => Channel::Open,
        }
    }

    /// Whether the process has not ended, nor become another program. One that has closed all its
    /// descriptors is known by its memory alone, where the kernel lets it be read.
    fn stands(&self) -> bool {
        self.channel() == Channel::Parted || self.landmark.stands_in(self.pid)
    }

    /// Ends what this task says to the peer. The channel, if the peer's process still lives.
    fn part(&mut self) -> Option<Life> {
        let is_alone = matches!(self.channel(), Channel::Closed | Channel::Unknown);
        let life = self.life.take().filter(|_| !is_alone)?;
        let _ = rustix::net::shutdown(&life, rustix::net::Shutdown::Write);
        Some(life)
    }
}
