//! Remote access. A small write that follows something else to the same peer at once is refused, so
//! that it is sent as a packet together with others.

use super::Coalescing;
use super::outgoing::LONGEST;
use crate::base::clock::ticks;
use crate::transport::{Exposure, Key, Piece, Reach, RemoteAccess, Started, Task, Transfer, Transport};
use std::io;

impl<T: Transport> RemoteAccess for Coalescing<T> {
    fn reach(&mut self, peer: Task) -> Reach {
        self.inner.reach(peer)
    }

    unsafe fn expose(&mut self, peer: Task, memory: Piece, exposure: Exposure) -> io::Result<Key> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.expose(peer, memory, exposure) }
    }

    #[inline]
    unsafe fn access(&mut self, peer: Task, transfer: Transfer<'_>) -> io::Result<Started> {
        let coalesces = self.outgoing.coalesces();
        let Transfer::Write { copy, .. } = transfer else {
            // SAFETY: the caller's promise.
            return unsafe { self.inner.access(peer, transfer) };
        };
        if coalesces && copy.len <= LONGEST && self.outgoing.follows(peer, ticks()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // SAFETY: the caller's promise.
        let started = unsafe { self.inner.access(peer, transfer) };
        if coalesces && started.is_ok() {
            self.outgoing.note_sent(peer, ticks());
        }
        started
    }
}
