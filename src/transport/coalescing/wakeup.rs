//! Sleeping, and the state of the peers.

use super::Coalescing;
use crate::error::Result;
use crate::transport::forward::forward;
use crate::transport::{ConnectionView, PeerState, Peers, Task, Transport, Wakeup};

impl<T: Transport> Wakeup for Coalescing<T> {
    forward!(disarm, event_fd, wake);

    fn arm(&mut self) -> bool {
        self.outgoing.send(&mut self.inner);
        !self.incoming.has_some() && self.inner.arm()
    }
}

impl<T: Transport> Peers for Coalescing<T> {
    forward!(absence, parted, connect, progress, kick, set_polling, polls, rejoined);

    /// A peer from which there are packets has not left yet.
    fn state(&self, peer: Task) -> PeerState {
        if self.incoming.has_from(peer) { PeerState::Up } else { self.inner.state(peer) }
    }

    fn is_open(&self, peer: Task) -> bool {
        self.incoming.has_from(peer) || self.inner.is_open(peer)
    }

    fn view(&self, peer: Task) -> Option<ConnectionView> {
        let view = self.inner.view(peer)?;
        Some(ConnectionView { arrived: view.arrived || self.incoming.has_from(peer), ..view })
    }

    fn part(&mut self, peer: Task) {
        self.outgoing.forget(peer);
        self.incoming.forget(peer);
        self.inner.part(peer);
    }

    fn rejoin(&mut self, peer: Task, epoch: u64) -> Result<()> {
        self.inner.rejoin(peer, epoch)?;
        self.outgoing.forget(peer);
        self.incoming.forget(peer);
        self.incoming.hold(peer, false);
        Ok(())
    }
}
