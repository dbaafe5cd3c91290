//! Sleeping and waking: one descriptor over this task's event and, while armed, the completion
//! queue's descriptor.

use super::FabricTransport;
use crate::transport::Wakeup;
use std::os::fd::{AsFd, BorrowedFd};

/// How often a thread looks again, when libfabric says that it may not sleep yet.
const LOOKS: usize = 8;

impl Wakeup for FabricTransport {
    fn arm(&mut self) -> bool {
        for _ in 0..LOOKS {
            self.advance();
            let noted = self.sleeper.take_noted();
            if noted || self.has_reports() {
                return false;
            }
            if self.device.is_closed() || (self.watch(true) && self.device.may_sleep()) {
                self.sleeper.armed = true;
                return true;
            }
        }
        self.watch(false);
        false
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

impl FabricTransport {
    /// Watches the completion queue, or not any more. Whether that is so now; a queue without a
    /// descriptor is served when it is due.
    fn watch(&mut self, wanted: bool) -> bool {
        self.sleeper.watch(self.device.descriptor(), wanted)
    }
}
