//! Remote access. A small write in the middle of a stream is refused, so that it is sent as a packet together with others.

use super::Coalescing;
use super::outgoing::LONGEST;
use crate::base::clock::ticks;
use crate::transport::{
    Access, AccessId, Copy, EndedWrite, Key, Piece, Reach, RemoteAccess, Started, Task, Transport,
};
use std::io;

impl<T: Transport> Coalescing<T> {
    /// Whether a write of this length is to be a packet, which the caller sends then.
    #[inline]
    fn prefers_packet(&mut self, peer: Task, len: usize) -> bool {
        let prefers = self.outgoing.coalesces() && len <= LONGEST && self.outgoing.streams_to(peer, ticks());
        if prefers {
            self.outgoing.count_later();
        }
        prefers
    }

    fn access<R>(&mut self, nothing: R, access: impl FnOnce(&mut dyn RemoteAccess) -> R) -> R {
        self.outgoing.judge();
        let result = self.inner.remote().map_or(nothing, access);
        self.outgoing.touch();
        result
    }
}

impl<T: Transport> RemoteAccess for Coalescing<T> {
    fn reach(&mut self, peer: Task) -> Reach {
        self.access(Reach::None, |inner| inner.reach(peer))
    }

    unsafe fn register(&mut self, peer: Task, memory: Piece, access: Access) -> io::Result<Key> {
        // SAFETY: the caller's promise.
        self.access(Err(io::ErrorKind::Unsupported.into()), |inner| unsafe {
            inner.register(peer, memory, access)
        })
    }

    unsafe fn register_for_one_rail(&mut self, peer: Task, memory: Piece, access: Access) -> io::Result<Key> {
        let unsupported = Err(io::ErrorKind::Unsupported.into());
        // SAFETY: the caller's promise.
        self.access(unsupported, |inner| unsafe { inner.register_for_one_rail(peer, memory, access) })
    }

    fn has_standing_keys(&mut self) -> bool {
        self.access(false, |inner| inner.has_standing_keys())
    }

    fn standing_key(&mut self, peer: Task) -> Option<Key> {
        self.access(None, |inner| inner.standing_key(peer))
    }

    fn deregister(&mut self, peer: Task, key: Key) {
        self.access((), |inner| inner.deregister(peer, key));
    }

    unsafe fn start(
        &mut self,
        access: Access,
        peer: Task,
        key: Option<Key>,
        copies: &[Copy],
    ) -> io::Result<Started> {
        let unsupported = Err(io::ErrorKind::Unsupported.into());
        // SAFETY: the caller's promise.
        self.access(unsupported, |inner| unsafe { inner.start(access, peer, key, copies) })
    }

    unsafe fn start_write(&mut self, peer: Task, copy: Copy, cookie: u64) -> bool {
        if self.prefers_packet(peer, copy.len) {
            return false;
        }
        // SAFETY: the caller's promise.
        let started = self.access(false, |inner| unsafe { inner.start_write(peer, copy, cookie) });
        self.outgoing.note_sent(started);
        started
    }

    unsafe fn write_copied(&mut self, peer: Task, copy: Copy, cookie: u64) -> bool {
        if self.prefers_packet(peer, copy.len) {
            return false;
        }
        // SAFETY: the caller's promise.
        let started = self.access(false, |inner| unsafe { inner.write_copied(peer, copy, cookie) });
        self.outgoing.note_sent(started);
        started
    }

    fn ended_write(&mut self) -> Option<EndedWrite> {
        self.access(None, |inner| inner.ended_write())
    }

    fn unreported_writes(&mut self) -> usize {
        self.access(0, |inner| inner.unreported_writes())
    }

    fn poll(&mut self) -> Option<(AccessId, io::Result<()>)> {
        self.access(None, |inner| inner.poll())
    }

    fn count_fetched(&mut self, peer: Task, bytes: u64) {
        self.access((), |inner| inner.count_fetched(peer, bytes));
    }

    fn fetched(&mut self) -> u64 {
        self.access(0, |inner| inner.fetched())
    }
}
