//! Sleeping, and the state of the peers.

use super::Coalescing;
use crate::error::Result;
use crate::transport::{ConnectionView, PeerStanding, Peers, Task, Transport, View, Wakeup, Withdrawal};
use std::os::fd::BorrowedFd;

impl<T: Transport> Wakeup for Coalescing<T> {
    fn arm(&mut self) -> bool {
        self.outgoing.send(&mut self.inner);
        !self.incoming.has_some() && self.inner.arm()
    }

    fn disarm(&mut self) {
        self.inner.disarm();
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.inner.event_fd()
    }
}

impl<T: Transport> Peers for Coalescing<T> {
    fn standing(&self, peer: Task) -> PeerStanding {
        self.inner.standing(peer)
    }

    #[inline]
    fn is_open(&self, peer: Task) -> bool {
        self.inner.is_open(peer)
    }

    /// Packets of a bundle count one by one: the handlers of a long one may take a while.
    fn view(&self, peer: Task) -> View {
        let View { progress, polls, connection } = self.inner.view(peer);
        let arrived = self.incoming.has_from(peer);
        View {
            progress: progress.wrapping_add(self.incoming.handed_out_of(peer)),
            polls,
            connection: connection.map(|seen| ConnectionView { arrived: seen.arrived || arrived, ..seen }),
        }
    }

    /// What waits leaves before: to recall may take long, and what was sent to the peer before has
    /// left. Without room it is given up: it would block what waits for others.
    fn withdraw(&mut self, peer: Task, what: Withdrawal) {
        if what == Withdrawal::Traffic || what == Withdrawal::Connection {
            self.outgoing.send(&mut self.inner);
            self.outgoing.forget(peer);
        }
        if what == Withdrawal::Connection {
            self.incoming.forget(peer);
        }
        self.inner.withdraw(peer, what);
    }

    fn rejoin(&mut self, peer: Task, epoch: u64) -> Result<()> {
        self.inner.rejoin(peer, epoch)?;
        self.outgoing.forget(peer);
        self.incoming.forget(peer);
        self.incoming.hold(peer, false);
        Ok(())
    }
}
