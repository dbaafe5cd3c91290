//! What a wrapper of a transport passes on to the transport inside.

/// Writes these methods of [`super::Endpoint`], [`super::Wakeup`] or [`super::Peers`], as calls of
/// the same methods of `self.inner()` or, where they change something, `self.inner_mut()`.
macro_rules! forward {
    (properties) => {
        fn properties(&self) -> $crate::transport::Properties {
            self.inner().properties()
        }
    };
    (limits) => {
        fn limits(&self, peer: $crate::transport::Task) -> $crate::transport::Limits {
            self.inner().limits(peer)
        }
    };
    (completed) => {
        fn completed(&mut self) -> Option<$crate::transport::Ticket> {
            self.inner_mut().completed()
        }
    };
    (recall) => {
        fn recall(&mut self, peer: $crate::transport::Task) {
            self.inner_mut().recall(peer)
        }
    };
    (recv) => {
        fn recv(&mut self) -> Option<$crate::transport::Inbound> {
            self.inner_mut().recv()
        }
    };
    (hold) => {
        fn hold(&mut self, peer: $crate::transport::Task, held: bool) {
            self.inner_mut().hold(peer, held)
        }
    };
    (release) => {
        fn release(&mut self, packet: $crate::transport::Inbound) {
            self.inner_mut().release(packet)
        }
    };
    (flush) => {
        fn flush(&mut self) {
            self.inner_mut().flush()
        }
    };
    (due) => {
        fn due(&self) -> Option<std::time::Instant> {
            self.inner().due()
        }
    };
    (serve) => {
        fn serve(&mut self) {
            self.inner_mut().serve()
        }
    };
    (settled) => {
        fn settled(&self) -> bool {
            self.inner().settled()
        }
    };
    (acknowledge_every) => {
        fn acknowledge_every(&mut self, datagrams: u16) {
            self.inner_mut().acknowledge_every(datagrams)
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
    (wake) => {
        fn wake(&self) {
            self.inner().wake()
        }
    };
    (standing) => {
        fn standing(&self, peer: $crate::transport::Task) -> $crate::transport::PeerStanding {
            self.inner().standing(peer)
        }
    };
    (want) => {
        fn want(&mut self, peer: $crate::transport::Task, what: $crate::transport::Want) {
            self.inner_mut().want(peer, what)
        }
    };
    (is_open) => {
        #[inline]
        fn is_open(&self, peer: $crate::transport::Task) -> bool {
            self.inner().is_open(peer)
        }
    };
    (set_polling) => {
        fn set_polling(&mut self, polling: bool, now: u64) {
            self.inner_mut().set_polling(polling, now)
        }
    };
    (polls) => {
        fn polls(&self, peer: $crate::transport::Task) -> bool {
            self.inner().polls(peer)
        }
    };
    (view) => {
        fn view(&self, peer: $crate::transport::Task) -> $crate::transport::View {
            self.inner().view(peer)
        }
    };
    (part) => {
        fn part(&mut self, peer: $crate::transport::Task) {
            self.inner_mut().part(peer)
        }
    };
    (rejoin) => {
        fn rejoin(&mut self, peer: $crate::transport::Task, epoch: u64) -> $crate::error::Result<()> {
            self.inner_mut().rejoin(peer, epoch)
        }
    };
    (rejoined) => {
        fn rejoined(&mut self) -> Option<($crate::transport::Task, u64)> {
            self.inner_mut().rejoined()
        }
    };
    (reach) => {
        fn reach(&mut self, peer: $crate::transport::Task) -> $crate::transport::Reach {
            self.inner_mut().reach(peer)
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
    (standing_key) => {
        fn standing_key(&mut self, peer: $crate::transport::Task) -> Option<$crate::transport::Key> {
            self.inner_mut().standing_key(peer)
        }
    };
    (withdraw) => {
        fn withdraw(&mut self, peer: $crate::transport::Task, key: $crate::transport::Key) {
            self.inner_mut().withdraw(peer, key)
        }
    };
    (start) => {
        unsafe fn start(
            &mut self,
            access: $crate::transport::Access,
            peer: $crate::transport::Task,
            key: Option<$crate::transport::Key>,
            copies: &[$crate::transport::Copy],
        ) -> std::io::Result<$crate::transport::Started> {
            // SAFETY: the caller's promise.
            unsafe { self.inner_mut().start(access, peer, key, copies) }
        }
    };
    (write) => {
        unsafe fn write(
            &mut self,
            peer: $crate::transport::Task,
            copy: $crate::transport::Copy,
            cookie: u64,
            copied: bool,
        ) -> bool {
            // SAFETY: the caller's promise.
            unsafe { self.inner_mut().write(peer, copy, cookie, copied) }
        }
    };
    (ended_write) => {
        fn ended_write(&mut self) -> Option<$crate::transport::EndedWrite> {
            self.inner_mut().ended_write()
        }
    };
    (unreported_writes) => {
        fn unreported_writes(&mut self) -> usize {
            self.inner_mut().unreported_writes()
        }
    };
    (poll) => {
        fn poll(&mut self) -> Option<($crate::transport::AccessId, std::io::Result<()>)> {
            self.inner_mut().poll()
        }
    };
    (count_fetched) => {
        fn count_fetched(&mut self, peer: $crate::transport::Task, bytes: u64) {
            self.inner_mut().count_fetched(peer, bytes)
        }
    };
    ($first:ident, $($others:ident),+) => {
        $crate::transport::forward::forward!($first);
        $($crate::transport::forward::forward!($others);)+
    };
}

pub(crate) use forward;
