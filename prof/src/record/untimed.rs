//! Calls that are counted without being timed.
//!
//! Those that are like the timed one before them are a single number until the next timed one.

use super::buffer::{self, Buffer, Site};
use super::{Traffic, count, size_class};
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
        let rhythm = &self.site.rhythm;
        if good
            && let Some(Traffic { peer, bytes }) = traffic
            && u64::from(peer) == rhythm.peer.get()
            && bytes == rhythm.bytes.get()
        {
            rhythm.alike.add(1);
        } else {
            count(self.buffer, self.site, self.call.class(), good, traffic);
        }
    }
}

/// Calls of a place that are counted in its [`super::sampling::Rhythm`] alone.
#[derive(Clone, Copy, Debug)]
pub struct Alike {
    /// How many.
    pub calls: u64,
    /// To or from which task each has moved something.
    pub peer: u32,
    /// How many bytes.
    pub bytes: u64,
}

impl Site {
    /// Those calls.
    pub fn alike(&self) -> Alike {
        let rhythm = &self.rhythm;
        Alike { calls: rhythm.alike.get(), peer: rhythm.peer.get() as u32, bytes: rhythm.bytes.get() }
    }
}

/// Before a timed transfer is counted: counts those that were like the one before where all others are.
#[inline]
pub(super) fn settle(buffer: &Buffer, site: &Site, class: Class, traffic: Option<Traffic>) {
    let Alike { calls, peer, bytes } = site.alike();
    let rhythm = &site.rhythm;
    if calls > 0 {
        rhythm.alike.set(0);
        let size = size_class(bytes);
        site.count.add(calls);
        site.bytes.add(calls.wrapping_mul(bytes));
        site.sizes[size].add(calls);
        if let Some(peer) = buffer.peer(peer) {
            let moves = &peer.moves[class as usize];
            moves.count.add(calls);
            moves.bytes.add(calls.wrapping_mul(bytes));
            peer.sizes[size].add(calls);
        }
    }
    // No task has the number of a call that moves nothing.
    rhythm.peer.set(traffic.map_or(u64::MAX, |traffic| u64::from(traffic.peer)));
    rhythm.bytes.set(traffic.map_or(0, |traffic| traffic.bytes));
}

/// The calls of a thread, by class, that are counted and not yet in its timeline, and their bytes.
pub fn pending(buffer: &Buffer) -> ([u64; Class::MOVING], [u64; Class::MOVING]) {
    let mut sums = ([0; Class::MOVING], [0; Class::MOVING]);
    for (call, site) in buffer.sites() {
        let class = call.class() as usize;
        if class < Class::MOVING {
            // The thread may go on meanwhile.
            let alike = site.alike();
            let bytes = alike.calls.saturating_mul(alike.bytes);
            sums.0[class] += (site.count.get() + alike.calls).saturating_sub(site.rhythm.entered.get());
            sums.1[class] +=
                site.bytes.get().saturating_add(bytes).saturating_sub(site.rhythm.entered_bytes.get());
        }
    }
    sums
}
