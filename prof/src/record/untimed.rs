//! Calls that are counted without being timed.
//!
//! Those that are like the timed one before them are a single number until the next timed one.

use super::buffer::{self, Buffer, Site};
use super::{Before, Seen, Traffic, count, record_noted, repeatable, size_class};
use crate::calls::{Call, Class};
use openlapi::base::clock::ticks;
use std::sync::atomic::Ordering::Relaxed;

/// A call that is not timed.
#[derive(Debug)]
pub struct Untimed {
    buffer: &'static Buffer,
    site: &'static Site,
    call: Call,
    /// What is noted of the call around the handler that this thread is in.
    around: u64,
    /// What this thread was in before.
    before: Option<Before>,
}

/// Before a call: whether it is not to be timed.
#[inline(always)]
pub fn untimed(call: Call, address: usize) -> Option<Untimed> {
    let buffer = buffer::known()?;
    let site = buffer.known_site(address, call)?;
    if site.rhythm.left.get() == 0 {
        return None;
    }
    let around = buffer.long_since.get();
    if around != 0 {
        buffer.long_since.set(0);
    }
    // No other call waits.
    let before = (call.class() == Class::Wait).then(|| buffer.open.enter(call, address, 0));
    Some(Untimed { buffer, site, call, around, before })
}

impl Untimed {
    /// One that is in no handler.
    pub(super) fn outermost(buffer: &'static Buffer, site: &'static Site, call: Call) -> Self {
        Self { buffer, site, call, around: 0, before: None }
    }

    /// Counts it after it has ended.
    #[inline(always)]
    pub fn ended(self, good: bool, traffic: Option<Traffic>) {
        // Each store that is not made counts: a processor that sends many of them to another one
        // waits for room for the next.
        let since = self.buffer.long_since.get();
        if let Some(before) = self.before {
            self.buffer.open.leave(before);
        }
        if self.around != 0 {
            self.buffer.long_since.set(self.around);
        }
        if since != 0 {
            let site = self.site.address.load(Relaxed);
            return record_noted(Seen { call: self.call, site, start: since, end: ticks(), good, traffic });
        }
        // Handlers that ran inside are no part of the next call.
        if self.buffer.handlers_inside.get() != 0 {
            self.buffer.handlers_inside.set(0);
        }
        let rhythm = &self.site.rhythm;
        let left = rhythm.left.get();
        // A handler inside of the call may have called from the same place.
        if left != 0 {
            rhythm.left.set(left - 1);
            if good && rhythm.like_the_last(traffic) {
                if self.call == Call::LAPI_Put {
                    repeatable::allow(self.site, self.around == 0);
                }
                return;
            }
            rhythm.others.add(1);
        }
        count(self.buffer, self.site, self.call.class(), good, traffic);
    }
}

/// Calls of a place that are counted in its [`super::sampling::Rhythm`] alone.
#[derive(Clone, Copy, Debug)]
pub struct Alike {
    /// How many.
    pub calls: u64,
    /// What each has moved.
    pub traffic: Option<Traffic>,
}

impl Site {
    /// Those calls.
    pub fn alike(&self) -> Alike {
        Alike { calls: self.rhythm.alike(), traffic: self.rhythm.last() }
    }
}

/// Before a timed call is counted: counts those that were like the one before where all others are.
#[inline]
pub(super) fn settle(buffer: &Buffer, site: &Site, class: Class, traffic: Option<Traffic>) {
    let alike = site.alike();
    if alike.calls > 0 {
        site.rhythm.others.add(alike.calls);
        site.count.add(alike.calls);
        if let Some(Traffic { peer, bytes }) = alike.traffic {
            let size = size_class(bytes);
            site.bytes.add(alike.calls.wrapping_mul(bytes));
            site.sizes[size].add(alike.calls);
            if let Some(peer) = buffer.peer(peer) {
                let moves = &peer.moves[class as usize];
                moves.count.add(alike.calls);
                moves.bytes.add(alike.calls.wrapping_mul(bytes));
                peer.sizes[size].add(alike.calls);
            }
        }
    }
    site.rhythm.remember(traffic);
}

/// The calls of a thread, by class, that are counted and not yet in its timeline, and their bytes.
pub fn pending(buffer: &Buffer) -> ([u64; Class::COUNT], [u64; Class::MOVING]) {
    let mut sums = ([0; Class::COUNT], [0; Class::MOVING]);
    for (call, site) in buffer.sites().filter(|(call, _)| call.may_go_untimed()) {
        let class = call.class() as usize;
        // The thread may go on meanwhile.
        let alike = site.alike();
        sums.0[class] += (site.count.get() + alike.calls).saturating_sub(site.rhythm.entered.get());
        if class < Class::MOVING {
            let bytes = alike.calls.saturating_mul(alike.traffic.map_or(0, |traffic| traffic.bytes));
            sums.1[class] +=
                site.bytes.get().saturating_add(bytes).saturating_sub(site.rhythm.entered_bytes.get());
        }
    }
    sums
}
