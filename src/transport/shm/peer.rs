//! One peer, as long as this task is connected with it: its segment, the rings between the two, its process.

use super::segment::{Segment, Strip};
use crate::base::ring::{Consumer, Producer, Shortage};
use crate::transport::PeerState;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;

pub(super) struct Peer {
    /// Dropped before the memory that they lie in: fields are dropped in order.
    pub(super) out: Producer,
    pub(super) inward: Consumer,
    pub(super) segment: Segment,
    /// The rings' memory, where they do not lie in the segments.
    pub(super) _strips: Option<[Strip; 2]>,
    pub(super) event: OwnedFd,
    pub(super) process: Process,
    /// It knows that we write to it.
    pub(super) contacted: bool,
    /// We found no room there.
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
            // Not allowed, or out of descriptors: then its death shows only by its silence.
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
