//! Calls that are counted without being timed.

use super::buffer::{self, Buffer, Site};
use super::{Traffic, count};
use crate::calls::{Call, Class};

/// A call that is not timed.
#[derive(Debug)]
pub struct Untimed {
    buffer: &'static Buffer,
    site: &'static Site,
    call: Call,
}

/// Before a call: whether it is not to be timed.
#[inline(always)]
pub fn untimed(call: Call, address: usize) -> Option<Untimed> {
    let buffer = buffer::known()?;
    let site = buffer.known_site(address, call)?;
    (site.rhythm.left.get() > 0).then_some(Untimed { buffer, site, call })
}

impl Untimed {
    /// Counts it after it has ended.
    #[inline(always)]
    pub fn ended(self, good: bool, traffic: Option<Traffic>) {
        let left = &self.site.rhythm.left;
        // A handler inside of the call may have called from the same place.
        left.set(left.get().saturating_sub(1));
        // Handlers that ran inside are no part of the next call.
        self.buffer.handlers_inside.set(0);
        count(self.buffer, self.site, self.call.class(), good, traffic);
    }
}

/// The calls of a thread, by class, that are counted and not yet in its timeline, and their bytes.
pub fn pending(buffer: &Buffer) -> ([u64; Class::MOVING], [u64; Class::MOVING]) {
    let mut sums = ([0; Class::MOVING], [0; Class::MOVING]);
    for (call, site) in buffer.sites() {
        let class = call.class() as usize;
        if class < Class::MOVING {
            // The thread may go on meanwhile.
            sums.0[class] += site.count.get().saturating_sub(site.rhythm.entered.get());
            sums.1[class] += site.bytes.get().saturating_sub(site.rhythm.entered_bytes.get());
        }
    }
    sums
}
