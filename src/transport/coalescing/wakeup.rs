//! Sleeping, and the state of the peers.

use super::Coalescing;
use crate::error::Result;
use crate::transport::forward::forward;
use crate::transport::{ConnectionView, Peers, Task, Transport, View, Wakeup};

impl<T: Transport> Wakeup for Coalescing<T> {
    forward!(disarm, event_fd, wake);

    fn arm(&mut self) -> bool {
        self.outgoing.send(&mut self.inner);
        !self.incoming.has_some() && self.inner.arm()
    }
}

impl<T: Transport> Peers for Coalescing<T> {
    forward!(standing, want, is_open, set_polling, polls, rejoined);

    /// Packets of a bundle count one by one: the handlers of a long one may take a while.
    fn view(&self, peer: Task) -> View {
        let View { progress, connection } = self.inner.view(peer);
        let arrived = self.incoming.has_from(peer);
        View {
            progress: progress.wrapping_add(self.incoming.handed_out_of(peer)),
            connection: connection.map(|seen| ConnectionView { arrived: seen.arrived || arrived, ..seen }),
        }
    }

    fn part(&mut self, peer: Task) {
        self.outgoing.send(&mut self.inner);
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
