//! Sleeping and waking: one descriptor over this task's event, those of the rails and, while armed,
//! that of the links' state.

use super::{Rail, Rails};
use crate::transport::Wakeup;
use std::os::fd::{AsFd, BorrowedFd};

impl<T: Rail> Wakeup for Rails<T> {
    fn arm(&mut self) -> bool {
        self.advance();
        self.flush_all();
        if self.sleeper.take_noted() || self.has_reports() {
            return false;
        }
        // One that refuses has something to report. To try again here would lose a wake-up, which
        // disarming takes away.
        for at in 0..self.rails.len() {
            if !self.rails[at].arm() {
                self.rails[..at].iter_mut().for_each(|rail| rail.disarm());
                return false;
            }
        }
        self.sleeper.watch(self.links.descriptor(), true);
        self.sleeper.armed = true;
        true
    }

    fn disarm(&mut self) {
        self.sleeper.armed = false;
        self.sleeper.watch(self.links.descriptor(), false);
        self.sleeper.clear();
        self.rails.iter_mut().for_each(|rail| rail.disarm());
        self.advance();
        self.flush_all();
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.sleeper.as_fd()
    }
}

impl<T: Rail> Rails<T> {
    /// Whether something is to be taken. Peers that have rejoined are not: a task that asks for
    /// them only after it has slept would never sleep.
    fn has_reports(&self) -> bool {
        !self.ready.is_empty() || self.striping.has_reports()
    }

    /// Wakes a thread that sleeps, if it waits for something that has happened.
    #[inline]
    pub(super) fn notify(&mut self) {
        if self.sleeper.must_signal() || self.sleeper.armed && self.has_reports() {
            self.sleeper.signal();
        }
    }
}
