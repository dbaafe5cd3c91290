//! Sleeping and waking: one descriptor over this task's event descriptor and, while armed, the device's.

use super::UdpTransport;
use crate::base::poll::is_event;
use crate::transport::Wakeup;
use rustix::event::epoll;
use std::os::fd::{AsFd, BorrowedFd};

impl Wakeup for UdpTransport {
    fn arm(&mut self) -> bool {
        self.acknowledge();
        self.advance();
        if std::mem::take(&mut self.noted) || self.has_reports() {
            return false;
        }
        self.armed = self.device.is_none() || self.watch(true);
        self.armed
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

impl UdpTransport {
    /// Makes the event descriptor readable, unless the program has closed it.
    pub(super) fn signal(&self) {
        if is_event(self.event.as_fd()) {
            // It fails only when the count is at its top: then the descriptor is readable already.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }

    /// Watches the device, or not any more. Whether that is so now.
    pub(super) fn watch(&mut self, wanted: bool) -> bool {
        if self.watching != wanted
            && let Some(device) = &self.device
        {
            let flags = epoll::EventFlags::IN;
            let done = if wanted {
                epoll::add(&self.epoll, device.event_fd(), epoll::EventData::new_u64(1), flags)
            } else {
                epoll::delete(&self.epoll, device.event_fd())
            };
            if done.is_ok() {
                self.watching = wanted;
            }
            return done.is_ok();
        }
        true
    }
}
