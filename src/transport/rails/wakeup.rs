//! Sleeping and waking: one descriptor over those of the rails and, while armed, of
//! the links' state.

use super::{Rail, Rails};
use crate::transport::{Wakeup, Want};
use rustix::event::epoll;
use std::os::fd::{AsFd, BorrowedFd};

impl<T: Rail> Wakeup for Rails<T> {
    fn arm(&mut self) -> bool {
        self.advance();
        self.flush_all();
        if std::mem::take(&mut self.noted) || self.has_reports() {
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
        self.watch(true);
        self.armed = true;
        true
    }

    fn disarm(&mut self) {
        self.armed = false;
        self.watch(false);
        self.rails.iter_mut().for_each(|rail| rail.disarm());
        self.advance();
        self.flush_all();
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl<T: Rail> Rails<T> {
    fn watch(&mut self, wanted: bool) {
        if self.watching == wanted {
            return;
        }
        let Some(links) = self.links.descriptor() else { return };
        let done = if wanted {
            epoll::add(&self.epoll, links, epoll::EventData::new_u64(1), epoll::EventFlags::IN)
        } else {
            epoll::delete(&self.epoll, links)
        };
        if done.is_ok() {
            self.watching = wanted;
        }
    }

    /// Whether something is to be taken. Peers that have rejoined are not: a task that asks for
    /// them only after it has slept would never sleep.
    fn has_reports(&self) -> bool {
        !self.ready.is_empty() || self.striping.has_reports()
    }

    /// Wakes a thread that sleeps, if it waits for something that has happened.
    #[inline]
    pub(super) fn notify(&mut self) {
        if self.armed && (self.noted || self.has_reports()) {
            self.rails[0].want(Want::Wake);
        }
    }
}
