//! Sleeping and waking: one descriptor over this task's event descriptor and, while armed, the completion queue's.

use super::FabricTransport;
use crate::base::poll::is_event;
use crate::transport::Wakeup;
use rustix::event::epoll;
use std::os::fd::{AsFd, BorrowedFd};

/// How often a thread looks again, when libfabric says that it may not sleep yet.
const LOOKS: usize = 8;

impl Wakeup for FabricTransport {
    fn arm(&mut self) -> bool {
        for _ in 0..LOOKS {
            self.advance();
            let noted = std::mem::take(&mut self.noted);
            if noted || self.has_reports() {
                return false;
            }
            if self.device.is_closed() || (self.watch(true) && self.device.may_sleep()) {
                self.armed = true;
                return true;
            }
        }
        self.watch(false);
        false
    }

    fn disarm(&mut self) {
        self.armed = false;
        self.watch(false);
        // A kick that has made the descriptor readable is over.
        self.advance();
        if is_event(self.event.as_fd()) {
            // Nothing to read means that nothing has woken this task.
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn wake(&self) {
        self.signal();
    }
}

impl FabricTransport {
    /// Makes the event descriptor readable, unless the program has closed it.
    pub(super) fn signal(&self) {
        if is_event(self.event.as_fd()) {
            // It fails only when the count is at its top: then the descriptor is readable already.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }

    /// Watches the completion queue, or not any more. Whether that is so now; a queue without a descriptor is served when it is
    /// due.
    fn watch(&mut self, wanted: bool) -> bool {
        if self.watching != wanted
            && let Some(queue) = self.device.descriptor()
        {
            let flags = epoll::EventFlags::IN;
            let done = if wanted {
                epoll::add(&self.epoll, queue, epoll::EventData::new_u64(1), flags)
            } else {
                epoll::delete(&self.epoll, queue)
            };
            if done.is_ok() {
                self.watching = wanted;
            }
            return done.is_ok();
        }
        true
    }
}
