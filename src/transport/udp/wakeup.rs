//! Sleeping and waking: one descriptor over this task's event and, while armed, the
//! device's descriptor.

use super::UdpTransport;
use crate::transport::Wakeup;
use std::os::fd::{AsFd, BorrowedFd};

impl Wakeup for UdpTransport {
    fn arm(&mut self) -> bool {
        self.acknowledge();
        self.advance();
        if std::mem::take(&mut self.noted) || self.has_reports() {
            return false;
        }
        self.armed = self.watch(true);
        self.armed
    }

    fn disarm(&mut self) {
        self.armed = false;
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
        self.sleeper.watch(self.device.as_deref().map(|device| device.event_fd()), wanted)
    }
}
