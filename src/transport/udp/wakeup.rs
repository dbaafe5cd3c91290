//! Sleeping and waking: one descriptor over this task's event and, while armed, the
//! device's descriptor.

use super::UdpTransport;
use crate::transport::Wakeup;
use crate::transport::sleeper::Sleeper;
use std::os::fd::{AsFd, BorrowedFd};

/// Whether a thread sleeps, and what wakes it.
pub(super) struct Sleep {
    /// Something has happened since the task was last armed that a sleeper waits for.
    noted: bool,
    armed: bool,
    sleeper: Sleeper,
}

impl Sleep {
    pub(super) fn new(sleeper: Sleeper) -> Self {
        Self { noted: false, armed: false, sleeper }
    }

    /// Something has happened that a sleeper waits for, if `something`.
    pub(super) fn note(&mut self, something: bool) {
        self.noted |= something;
    }

    /// Wakes a thread that sleeps.
    pub(super) fn signal(&self) {
        self.sleeper.signal();
    }
}

impl Wakeup for UdpTransport {
    fn arm(&mut self) -> bool {
        self.acknowledge();
        self.advance();
        if std::mem::take(&mut self.sleep.noted) || self.arrivals.has_packets() {
            return false;
        }
        self.sleep.armed = self.watch(true);
        self.sleep.armed
    }

    fn disarm(&mut self) {
        self.sleep.armed = false;
        self.watch(false);
        // A kick that has made the descriptor readable is over.
        self.advance();
        self.sleep.sleeper.clear();
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.sleep.sleeper.as_fd()
    }
}

impl UdpTransport {
    /// Watches the device, or not any more. Whether that is so now; a task that has closed its
    /// device sleeps without.
    pub(super) fn watch(&mut self, wanted: bool) -> bool {
        self.sleep.sleeper.watch(self.outlet.descriptor(), wanted)
    }

    /// Wakes a thread that sleeps, if it waits for something that has happened.
    #[inline]
    pub(super) fn notify(&mut self) {
        if self.sleep.armed && (self.sleep.noted || self.arrivals.has_packets()) {
            self.sleep.sleeper.signal();
        }
    }
}
