//! Remote access. A small write that follows something else to the same peer at once is refused, so that it is sent as a packet together with others.

use super::Coalescing;
use super::outgoing::LONGEST;
use crate::base::clock::ticks;
use crate::transport::{
    Access, AccessId, Copy, EndedWrite, Key, Piece, Reach, RemoteAccess, Started, Task, Transport,
};
use std::io;

impl<T: Transport> Coalescing<T> {
    /// Starts a write, unless it is to be a packet, which the caller sends then.
    #[inline]
    fn write(&mut self, peer: Task, len: usize, start: impl FnOnce(&mut dyn RemoteAccess) -> bool) -> bool {
        let coalesces = self.outgoing.coalesces();
        if coalesces && len <= LONGEST && self.outgoing.follows(peer, ticks()) {
            return false;
        }
        let started = self.inner.remote().is_some_and(start);
        if coalesces && started {
            self.outgoing.note_sent(peer, ticks());
        }
        started
    }
}

impl<T: Transport> RemoteAccess for Coalescing<T> {
    fn reach(&mut self, peer: Task) -> Reach {
        self.inner.remote().map_or(Reach::None, |inner| inner.reach(peer))
    }

    unsafe fn register(&mut self, peer: Task, memory: Piece, access: Access) -> io::Result<Key> {
        let inner = self.inner.remote().ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: the caller's promise.
        unsafe { inner.register(peer, memory, access) }
    }

    unsafe fn register_for_one_rail(&mut self, peer: Task, memory: Piece, access: Access) -> io::Result<Key> {
        let inner = self.inner.remote().ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: the caller's promise.
        unsafe { inner.register_for_one_rail(peer, memory, access) }
    }

    fn has_standing_keys(&mut self) -> bool {
        self.inner.remote().is_some_and(|inner| inner.has_standing_keys())
    }

    fn standing_key(&mut self, peer: Task) -> Option<Key> {
        self.inner.remote()?.standing_key(peer)
    }

    fn deregister(&mut self, peer: Task, key: Key) {
        if let Some(inner) = self.inner.remote() {
            inner.deregister(peer, key);
        }
    }

    unsafe fn start(
        &mut self,
        access: Access,
        peer: Task,
        key: Option<Key>,
        copies: &[Copy],
    ) -> io::Result<Started> {
        let inner = self.inner.remote().ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: the caller's promise.
        unsafe { inner.start(access, peer, key, copies) }
    }

    unsafe fn start_write(&mut self, peer: Task, copy: Copy, cookie: u64) -> bool {
        // SAFETY: the caller's promise.
        self.write(peer, copy.len, |inner| unsafe { inner.start_write(peer, copy, cookie) })
    }

    unsafe fn write_copied(&mut self, peer: Task, copy: Copy, cookie: u64) -> bool {
        // SAFETY: the caller's promise.
        self.write(peer, copy.len, |inner| unsafe { inner.write_copied(peer, copy, cookie) })
    }

    fn ended_write(&mut self) -> Option<EndedWrite> {
        self.inner.remote()?.ended_write()
    }

    fn unreported_writes(&mut self) -> usize {
        self.inner.remote().map_or(0, |inner| inner.unreported_writes())
    }

    fn poll(&mut self) -> Option<(AccessId, io::Result<()>)> {
        self.inner.remote()?.poll()
    }

    fn count_fetched(&mut self, peer: Task, bytes: u64) {
        if let Some(inner) = self.inner.remote() {
            inner.count_fetched(peer, bytes);
        }
    }

    fn fetched(&mut self) -> u64 {
        self.inner.remote().map_or(0, |inner| inner.fetched())
    }
}
