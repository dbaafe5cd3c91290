//! What a wrapper of a transport in tests passes on to the transport inside.

/// Writes these methods of a side of the contract, or all of a side by its name, as calls of the
/// same methods of `self.inner()` or, where they change something, `self.inner_mut()`.
macro_rules! forward {
    (Endpoint) => {
        $crate::transport::testing::forward::forward!(
            limits, try_send, door, recv, look, release, report, want, due, tally, close
        );
    };
    (Wakeup) => {
        $crate::transport::testing::forward::forward!(arm, disarm, event_fd);
    };
    (Peers) => {
        $crate::transport::testing::forward::forward!(standing, is_open, view, withdraw, rejoin);
    };
    (RemoteAccess) => {
        $crate::transport::testing::forward::forward!(reach, expose, access);
    };
    (try_send) => {
        unsafe fn try_send(
            &mut self,
            peer: $crate::transport::Task,
            packet: &$crate::transport::Outgoing<'_>,
        ) -> $crate::transport::SendOutcome {
            // SAFETY: the caller's promise.
            unsafe { self.inner_mut().try_send(peer, packet) }
        }
    };
    (door) => {
        #[inline]
        fn door(&mut self, peer: $crate::transport::Task) -> Option<&mut $crate::transport::Door> {
            self.inner_mut().door(peer)
        }
    };
    (limits) => {
        fn limits(&self, peer: $crate::transport::Task) -> $crate::transport::Limits {
            self.inner().limits(peer)
        }
    };
    (recv) => {
        fn recv(&mut self) -> Option<$crate::transport::Inbound> {
            self.inner_mut().recv()
        }
    };
    (look) => {
        fn look(&mut self, look: $crate::transport::Look) -> $crate::transport::Seen<'_> {
            self.inner_mut().look(look)
        }
    };
    (report) => {
        fn report(&mut self) -> Option<$crate::transport::Report> {
            self.inner_mut().report()
        }
    };
    (want) => {
        fn want(&mut self, what: $crate::transport::Want) {
            self.inner_mut().want(what)
        }
    };
    (release) => {
        fn release(&mut self, packet: $crate::transport::Inbound) {
            self.inner_mut().release(packet)
        }
    };
    (due) => {
        fn due(&self) -> Option<std::time::Instant> {
            self.inner().due()
        }
    };
    (tally) => {
        fn tally(&self) -> $crate::transport::Tally {
            self.inner().tally()
        }
    };
    (close) => {
        fn close(&mut self) {
            self.inner_mut().close()
        }
    };
    (arm) => {
        fn arm(&mut self) -> bool {
            self.inner_mut().arm()
        }
    };
    (disarm) => {
        fn disarm(&mut self) {
            self.inner_mut().disarm()
        }
    };
    (event_fd) => {
        fn event_fd(&self) -> std::os::fd::BorrowedFd<'_> {
            self.inner().event_fd()
        }
    };
    (standing) => {
        fn standing(&self, peer: $crate::transport::Task) -> $crate::transport::PeerStanding {
            self.inner().standing(peer)
        }
    };
    (is_open) => {
        #[inline]
        fn is_open(&self, peer: $crate::transport::Task) -> bool {
            self.inner().is_open(peer)
        }
    };
    (view) => {
        fn view(&self, peer: $crate::transport::Task) -> $crate::transport::View {
            self.inner().view(peer)
        }
    };
    (withdraw) => {
        fn withdraw(&mut self, peer: $crate::transport::Task, what: $crate::transport::Withdrawal) {
            self.inner_mut().withdraw(peer, what)
        }
    };
    (rejoin) => {
        fn rejoin(&mut self, peer: $crate::transport::Task, epoch: u64) -> $crate::error::Result<()> {
            self.inner_mut().rejoin(peer, epoch)
        }
    };
    (reach) => {
        fn reach(&mut self, peer: $crate::transport::Task) -> $crate::transport::Reach {
            self.inner_mut().reach(peer)
        }
    };
    (access) => {
        unsafe fn access(
            &mut self,
            peer: $crate::transport::Task,
            transfer: $crate::transport::Transfer<'_>,
        ) -> std::io::Result<$crate::transport::Started> {
            // SAFETY: the caller's promise.
            unsafe { self.inner_mut().access(peer, transfer) }
        }
    };
    (expose) => {
        unsafe fn expose(
            &mut self,
            peer: $crate::transport::Task,
            memory: $crate::transport::Piece,
            exposure: $crate::transport::Exposure,
        ) -> std::io::Result<$crate::transport::Key> {
            // SAFETY: the caller's promise.
            unsafe { self.inner_mut().expose(peer, memory, exposure) }
        }
    };
    ($first:ident, $($others:ident),+ $(,)?) => {
        $crate::transport::testing::forward::forward!($first);
        $($crate::transport::testing::forward::forward!($others);)+
    };
}

pub(crate) use forward;
