//! Sleeping and waking: one descriptor over this task's event and, while armed, the
//! device's descriptor.

use super::UdpTransport;
use crate::transport::Wakeup;
use std::os::fd::{AsFd, BorrowedFd};

impl Wakeup for UdpTransport {
    fn arm(&mut self) -> bool {
        self.acknowledge();
        self.advance();
        if self.sleeper.take_noted() || self.arrivals.has_packets() {
            return false;
        }
        let armed = self.watch(true);
        self.sleeper.armed = armed;
        armed
    }

    fn disarm(&mut self) {
        self.sleeper.armed = false;
        self.watch(false);
        // A kick that has made the descriptor readable is over.
        self.advance();
        self.sleeper.clear();
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.sleeper.as_fd()
    }
}

impl UdpTransport {
    /// Watches the device, or not any more. Whether that is so now; a task that has closed its
    /// device sleeps without.
    pub(super) fn watch(&mut self, wanted: bool) -> bool {
        self.sleeper.watch(self.outlet.descriptor(), wanted)
    }

    /// Wakes a thread that sleeps, if it waits for something that has happened.
    #[inline]
    pub(super) fn notify(&mut self) {
        if self.sleeper.must_signal() || self.sleeper.armed && self.arrivals.has_packets() {
            self.sleeper.signal();
        }
    }
}
