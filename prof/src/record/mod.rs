//! The records of a running program: each thread has a buffer that only this thread writes.
//!
//! Every number is an atomic that one thread writes and a report reads at any time: plain loads and
//! stores, no locked instruction, no lock. A thread's first call makes its buffer. Buffers are
//! never freed; a later thread uses the buffer of one that has ended.

mod buffer;
mod events;
mod open;
pub mod repeatable;
pub mod repeated;
mod sampling;
mod timeline;
mod untimed;

pub use buffer::{Buffer, all, fork_child, known, mine, prepare, reserve, threads};
use buffer::{Moves, Site};
pub use events::{EVENTS, NO_PEER};
pub use open::{Before, Current};
use sampling::{Batch, Timed};
pub use sampling::{set_period, waits_are_noted};
pub use timeline::{BINS, Stay, Timeline};
use untimed::settle;
pub use untimed::{Alike, pending, untimed};

use crate::calls::{Call, Class};
use crate::identity;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of size classes: 0, 1, 2 to 3, 4 to 7 and so on.
pub const SIZES: usize = 48;

/// A number that one thread changes and others read.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to it; for the one thread that may.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    /// Subtracts from it; for the one thread that may.
    #[inline]
    pub fn subtract(&self, less: u64) {
        self.add(less.wrapping_neg());
    }

    /// Raises it to `value` if it is below; for the one thread that may.
    #[inline]
    pub fn at_least(&self, value: u64) {
        if self.0.load(Relaxed) < value {
            self.0.store(value, Relaxed);
        }
    }

    /// Changes it; for the one thread that may.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Returns its value, and sets it to 0.
    #[inline]
    pub fn take(&self) -> u64 {
        let value = self.get();
        self.set(0);
        value
    }

    /// What it is.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The place of a size in a histogram.
#[inline]
pub fn size_class(bytes: u64) -> usize {
    ((u64::BITS - bytes.leading_zeros()) as usize).min(SIZES - 1)
}

/// What a call moves.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// The other task.
    pub peer: u32,
    /// How much: user header and data.
    pub bytes: u64,
}

/// The record of one call or handler.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Which call.
    pub call: Call,
    /// From where it was called; of a handler, its own address.
    pub site: usize,
    /// When it began, in ticks.
    pub start: u64,
    /// When it ended, in ticks.
    pub end: u64,
    /// Whether it returned LAPI_SUCCESS.
    pub good: bool,
    /// What it moved; for a header handler, what has arrived and from which task.
    pub traffic: Option<Traffic>,
}

/// What a thread had run in the call, and in the handler around it, when a handler began
/// inside of the call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Around {
    handlers: u64,
    calls: u64,
    open: Before,
}

/// Before a call that is timed, and began at `start`.
#[inline]
pub fn call_begins(call: Call, site: usize, start: u64) -> Before {
    mine().map_or_else(Before::default, |buffer| buffer.open.enter(call, site, start))
}

/// Before a handler runs in this thread, which began at `start`.
#[inline]
pub fn handler_begins(call: Call, handler: usize, start: u64) -> Around {
    mine().map_or_else(Around::default, |buffer| Around {
        handlers: buffer.handlers_inside.take(),
        calls: buffer.calls_inside.take(),
        open: buffer.open.enter(call, handler, start),
    })
}

/// Records a handler that has ended in this thread.
pub fn record_handler(seen: Seen, around: Around) {
    let Some(buffer) = mine() else { return };
    buffer.open.leave(around.open);
    let inside = buffer.calls_inside.take();
    enter(buffer, &seen, inside, false);
    buffer.calls_inside.add(around.calls);
    buffer.handlers_inside.take();
    buffer.handlers_inside.add(around.handlers.wrapping_add(seen.ticks()));
}

/// Records a call that has ended in this thread, with what [`call_begins`] has returned.
pub fn record(seen: Seen, before: Before) {
    if let Some(buffer) = mine() {
        buffer.open.leave(before);
        end(buffer, seen, false);
    }
}

/// Records a call that was not to be timed, and was long.
#[cold]
fn record_noted(seen: Seen) {
    if let Some(buffer) = mine() {
        end(buffer, seen, true);
    }
}

#[inline(always)]
fn end(buffer: &'static Buffer, seen: Seen, noted: bool) {
    // Handlers run inside of calls; in threads of LAPI's own, outside of all, and then calls are
    // made inside of handlers only.
    let inside = buffer.handlers_inside.take();
    buffer.calls_inside.add(seen.ticks());
    if buffer.long_since.get() >= seen.start {
        // What was noted was noted of this call, and not of one around it.
        buffer.long_since.set(0);
    }
    enter(buffer, &seen, inside, noted);
}

impl Seen {
    #[inline]
    fn ticks(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

// In the functions above, so that a call of LAPI makes one call here.
#[inline(always)]
fn enter(buffer: &'static Buffer, seen: &Seen, inside: u64, noted: bool) {
    let ticks = seen.ticks();
    let site = buffer.site(seen.site, seen.call);
    let class = seen.call.class();
    if seen.call.may_go_untimed() {
        repeatable::end_of_batch(buffer, site);
        settle(buffer, site, class, seen.traffic);
    }
    let moves = count(buffer, site, class, seen.good, seen.traffic);
    site.longest.at_least(ticks);
    let batch = if seen.call.may_go_untimed() {
        let each = match class {
            // The arrows of the trace need each active message, for the target has each run
            // of the handler.
            Class::Am => EVENTS.have_room(&buffer.claim),
            Class::Wait => !sampling::waits_noted(),
            _ => false,
        };
        site.rhythm.timed((site.count.get(), site.bytes.get()), Timed { ticks, inside, noted }, each)
    } else {
        Batch { calls: 1, bytes: 0, estimate: 0, alone: 0 }
    };
    site.ticks.add(ticks.wrapping_add(batch.estimate));
    if let Some(moves) = moves {
        moves.ticks.add(ticks.wrapping_add(batch.estimate));
    }
    // A call before the first LAPI_Init, when the clock has not begun, is counted but not entered
    // in the timeline.
    let origin = identity::origin();
    if origin != 0 {
        let begin = seen.start.saturating_sub(origin);
        let stay = Stay { begin, end: begin + ticks, inside };
        buffer.timeline.add(stay, class, batch);
    }
    EVENTS.add(&buffer.claim, buffer.number(), seen, batch.calls);
}

/// Counts a call that has ended, and returns the entry of what it has moved to or from which task.
#[inline(always)]
fn count(
    buffer: &'static Buffer,
    site: &Site,
    class: Class,
    good: bool,
    traffic: Option<Traffic>,
) -> Option<&'static Moves> {
    site.count.add(1);
    if !good {
        site.errors.add(1);
        return None;
    }
    let traffic = traffic?;
    let size = size_class(traffic.bytes);
    site.bytes.add(traffic.bytes);
    site.sizes[size].add(1);
    if class as usize >= Class::MOVING {
        return None;
    }
    let peer = buffer.peer(traffic.peer)?;
    let moves = &peer.moves[class as usize];
    moves.count.add(1);
    moves.bytes.add(traffic.bytes);
    peer.sizes[size].add(1);
    Some(moves)
}

/// Takes a call back that [`settle`] has counted. What stands for it in the timeline and among the
/// events keeps standing for it.
fn uncount(buffer: &'static Buffer, site: &Site, class: Class, traffic: Traffic) {
    let Traffic { peer, bytes } = traffic;
    let size = size_class(bytes);
    site.count.subtract(1);
    site.bytes.subtract(bytes);
    site.sizes[size].subtract(1);
    if let Some(peer) = buffer.peer(peer) {
        let moves = &peer.moves[class as usize];
        moves.count.subtract(1);
        moves.bytes.subtract(bytes);
        peer.sizes[size].subtract(1);
    }
}

#[cfg(test)]
mod tests {
    use super::{SIZES, size_class};

    #[test]
    fn sizes_fall_between_powers_of_two() {
        for (bytes, class) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (1023, 10), (1024, 11)]
        {
            assert_eq!(size_class(bytes), class, "{bytes}");
        }
        assert_eq!(size_class(u64::MAX), SIZES - 1);
    }
}
