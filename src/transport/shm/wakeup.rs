//! Sleeping and waking by event descriptors.

use super::ShmTransport;
use crate::transport::Wakeup;
use std::os::fd::{AsFd, BorrowedFd};

impl Wakeup for ShmTransport {
    fn arm(&mut self) -> bool {
        for peer in self.stuck.iter().filter_map(|&task| self.peer(task)) {
            peer.door.out.ask_for_room();
        }
        let armed = self.segment.doorbell().prepare_sleep(self.heavy, || {
            self.arrivals.has_first_contacts()
                || self
                    .polled
                    .tasks()
                    .iter()
                    .filter_map(|&task| self.peer(task))
                    .any(|peer| peer.door.inward.ready())
                || self.has_announcements()
                || self.room_again()
        });
        if !armed {
            self.forget_room();
        }
        armed
    }

    fn disarm(&mut self) {
        self.segment.doorbell().cancel();
        self.event.drain();
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl ShmTransport {
    /// Whether a peer whose ring was full has made room since.
    fn room_again(&self) -> bool {
        self.stuck.iter().filter_map(|&task| self.peer(task)).any(|peer| peer.door.has_changed())
    }

    /// Whoever was kept from sleeping by room now sends all that waits, and what finds none is
    /// noted again. What was given up instead, for want of memory, keeps no task awake.
    #[cold]
    fn forget_room(&mut self) {
        let Self { stuck, peers, .. } = self;
        stuck.retain(|&task| {
            let changed = peers.get_mut(task).filter(|peer| peer.door.has_changed());
            let waits = changed.is_none();
            if let Some(peer) = changed {
                peer.door.stuck_at = None;
            }
            waits
        });
    }
}
