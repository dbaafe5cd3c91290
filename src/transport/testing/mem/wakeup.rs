//! Sleeping and waking, under the lock of the inbox.

use super::MemTransport;
use super::network::Sleep;
use crate::transport::{PeerState, Wakeup};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

impl Wakeup for MemTransport {
    fn arm(&mut self) -> bool {
        let network = &*self.network;
        let mut inbox = network.end(self.task).inbox.lock();
        if inbox.sleep == Sleep::Awake {
            // SeqCst: either the departure is seen here, or the departing task sees the
            // sleeper in `depart`.
            network.sleepers.fetch_add(1, Ordering::SeqCst);
        }
        let departures = network.departures.load(Ordering::SeqCst);
        let gone = std::mem::replace(&mut inbox.departures, departures) != departures;
        let noted = std::mem::take(&mut inbox.noted);
        let reported = !inbox.completed.is_empty() || !self.accesses.is_empty() || !self.made.is_empty();
        if gone || noted || reported || inbox.ready.iter().any(|src| !self.held.contains(src)) {
            inbox.sleep = Sleep::Awake;
            network.sleepers.fetch_sub(1, Ordering::SeqCst);
            return false;
        }
        inbox.sleep = Sleep::Armed;
        true
    }

    fn disarm(&mut self) {
        let end = self.network.end(self.task);
        // Under the lock: a task that signals an armed one holds it, so nothing is written after
        // it was emptied.
        let mut inbox = end.inbox.lock();
        if std::mem::take(&mut inbox.sleep) != Sleep::Awake {
            self.network.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
        end.drain();
        // The descriptor of a killed task stays readable: it has nothing to wait for.
        if end.state() == PeerState::Dead {
            end.signal();
        }
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.network.end(self.task).event().as_fd()
    }
}
