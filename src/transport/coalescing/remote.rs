//! Remote access. A small write that follows something else to the same peer at once is refused, so
//! that it is sent as a packet together with others.

use super::Coalescing;
use super::outgoing::LONGEST;
use crate::base::clock::ticks;
use crate::transport::forward::forward;
use crate::transport::{Copy, RemoteAccess, Task, Transport};

impl<T: Transport> RemoteAccess for Coalescing<T> {
    forward!(
        reach,
        expose,
        standing_key,
        withdraw,
        start,
        ended_write,
        unreported_writes,
        poll,
        count_fetched
    );

    #[inline]
    unsafe fn write(&mut self, peer: Task, copy: Copy, cookie: u64, copied: bool) -> bool {
        let coalesces = self.outgoing.coalesces();
        if coalesces && copy.len <= LONGEST && self.outgoing.follows(peer, ticks()) {
            return false;
        }
        // SAFETY: the caller's promise.
        let started = unsafe { self.inner.write(peer, copy, cookie, copied) };
        if coalesces && started {
            self.outgoing.note_sent(peer, ticks());
        }
        started
    }
}
