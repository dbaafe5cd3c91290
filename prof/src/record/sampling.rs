//! Which calls are counted without being timed: reading the clock twice costs more than counting.
//!
//! Only those of a place whose calls have all been short for a while. One in a period is timed, and
//! stands for those since the last one that was. Counts and bytes are exact; the time of such a
//! place is an estimate. A call that turns out to be long is timed all the same
//! ([`crate::long_calls`]).

use super::{Count, Traffic};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A call of fewer ticks is short: about a microsecond.
const SHORT: u64 = 1 << 12;
/// After a call of more ticks each call of the place is timed again: about ten microseconds.
const LONG: u64 = 1 << 15;
/// After this number of short calls, one in a period is timed.
const CALM: u64 = 64;

static PERIOD: AtomicU64 = AtomicU64::new(1);
static WAITS_NOTED: AtomicBool = AtomicBool::new(false);

/// One of `period` calls is timed.
pub fn set_period(period: u64) {
    PERIOD.store(period.max(1), Relaxed);
}

/// No task has this number.
const NOTHING: u64 = u64::MAX;

/// From now on a call that waits for long is noted. Before, each is timed: none is
/// known to be short.
pub fn waits_are_noted() {
    WAITS_NOTED.store(true, Relaxed);
}

#[inline]
pub(super) fn waits_noted() -> bool {
    WAITS_NOTED.load(Relaxed)
}

/// The state of a place.
#[derive(Debug)]
pub struct Rhythm {
    /// How many calls follow that are not timed.
    pub(super) left: Count,
    /// How many were to follow after the last timed call.
    planned: Count,
    /// How many short calls have been timed since a long one, at most [`CALM`].
    calm: Count,
    /// How long the last short one took.
    short: Count,
    /// How many calls are in the timeline.
    pub(super) entered: Count,
    /// How many of their bytes.
    pub(super) entered_bytes: Count,
    /// What the last timed call has moved, and to or from which task; [`NOTHING`] when it
    /// moves nothing.
    peer: Count,
    bytes: Count,
    /// How many calls after it are counted elsewhere. All others have moved as much to or from
    /// the same task.
    pub(super) others: Count,
}

/// Calls that a timed one stands for, itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// How many.
    pub calls: u64,
    /// What they have moved.
    pub bytes: u64,
    /// What those are taken to have taken that were not timed.
    pub estimate: u64,
    /// The estimate less what handlers are taken to have run inside of those calls.
    pub alone: u64,
}

/// How a call was timed.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// How long it took.
    pub ticks: u64,
    /// How long handlers ran inside of it.
    pub inside: u64,
    /// The call was not to be timed, and was long.
    pub noted: bool,
}

/// Where parts of it lie in it, for instructions ([`super::repeated`]).
#[cfg(target_arch = "x86_64")]
impl Rhythm {
    pub(super) const PEER: usize = std::mem::offset_of!(Rhythm, peer);
    pub(super) const BYTES: usize = std::mem::offset_of!(Rhythm, bytes);
    pub(super) const LEFT: usize = std::mem::offset_of!(Rhythm, left);
}

impl Rhythm {
    /// After a call has been timed and counted: what it stands for. `calls` and `bytes` are those
    /// of the place. `each`: the next call is to be timed, too.
    pub(super) fn timed(&self, (calls, bytes): (u64, u64), timed: Timed, each: bool) -> Batch {
        let Timed { ticks, inside, noted } = timed;
        let new = calls.wrapping_sub(self.entered.get());
        let moved = bytes.wrapping_sub(self.entered_bytes.get());
        self.entered.set(calls);
        self.entered_bytes.set(bytes);
        let skips = self.calm(ticks) && !each;
        let planned = if skips { PERIOD.load(Relaxed) - 1 } else { 0 };
        self.left.set(planned);
        self.planned.set(planned);
        self.others.set(0);
        // A long call is an exception, for which nothing speaks that the others took as long.
        let exception = noted || ticks > LONG;
        let (other, alone) = match exception {
            true => (self.short.get(), self.short.get()),
            false => (ticks, ticks.saturating_sub(inside)),
        };
        let others = new.saturating_sub(1);
        let [estimate, alone] = [other, alone].map(|each| others.saturating_mul(each));
        Batch { calls: new, bytes: moved, estimate, alone }
    }

    /// How many calls after the last timed one are like it, and are counted here alone.
    #[inline]
    pub(super) fn alike(&self) -> u64 {
        // A report may read them between the changes that a call makes.
        self.planned.get().saturating_sub(self.left.get()).saturating_sub(self.others.get())
    }

    /// Whether a call moves the same as the last timed one, to or from the same task.
    #[inline]
    pub(super) fn like_the_last(&self, traffic: Option<Traffic>) -> bool {
        let (peer, bytes) = traffic.map_or((NOTHING, 0), |traffic| (u64::from(traffic.peer), traffic.bytes));
        (self.peer.get(), self.bytes.get()) == (peer, bytes)
    }

    /// What that has moved.
    pub(super) fn last(&self) -> Option<Traffic> {
        let peer = u32::try_from(self.peer.get()).ok()?;
        Some(Traffic { peer, bytes: self.bytes.get() })
    }

    /// A call is the last timed one.
    #[inline]
    pub(super) fn remember(&self, traffic: Option<Traffic>) {
        self.peer.set(traffic.map_or(NOTHING, |traffic| u64::from(traffic.peer)));
        self.bytes.set(traffic.map_or(0, |traffic| traffic.bytes));
    }

    /// Notes how long a call took, and returns whether the calls of the place have been
    /// short for a while.
    #[inline]
    fn calm(&self, ticks: u64) -> bool {
        let calm = self.calm.get();
        if ticks < SHORT {
            self.short.set(ticks);
            if calm < CALM {
                self.calm.set(calm + 1);
            }
        } else if ticks > LONG {
            self.calm.set(0);
        }
        self.calm.get() == CALM
    }
}

#[cfg(test)]
mod tests {
    use super::{Batch, CALM, LONG, Rhythm, SHORT, Timed, set_period};

    fn took(ticks: u64) -> Timed {
        Timed { ticks, inside: 0, noted: false }
    }

    #[test]
    fn a_place_is_timed_in_full_until_it_is_calm_and_after_a_long_call() {
        set_period(17);
        // SAFETY: it consists of atomics, for which zeroes are valid.
        let rhythm: Rhythm = unsafe { std::mem::zeroed() };
        for call in 1..=CALM {
            assert_eq!(rhythm.left.get(), 0);
            let batch = rhythm.timed((call, 8 * call), took(500), false);
            assert_eq!(batch, Batch { calls: 1, bytes: 8, estimate: 0, alone: 0 });
        }
        assert_eq!(rhythm.left.get(), 16);
        // 16 were not timed; then one was.
        let timed = Timed { ticks: 600, inside: 50, noted: false };
        let batch = rhythm.timed((CALM + 17, 8 * (CALM + 17)), timed, false);
        assert_eq!(batch, Batch { calls: 17, bytes: 8 * 17, estimate: 16 * 600, alone: 16 * 550 });
        // One of middle length changes nothing.
        let batch = rhythm.timed((CALM + 34, 8 * (CALM + 34)), took(SHORT + 1), false);
        assert_eq!((batch.estimate, rhythm.left.get()), (16 * (SHORT + 1), 16));
        // A long one does not stand for the others.
        let batch = rhythm.timed((CALM + 51, 8 * (CALM + 51)), took(LONG + 1), false);
        assert_eq!((batch.estimate, rhythm.left.get()), (16 * 600, 0));
        // Nor does one that was noted as long.
        let noted = Timed { ticks: 2 * SHORT, inside: 0, noted: true };
        let batch = rhythm.timed((CALM + 60, 8 * (CALM + 60)), noted, false);
        assert_eq!((batch.calls, batch.estimate), (9, 8 * 600));
        // When each is to be timed, none is left out.
        for at in 0..2 * CALM {
            rhythm.timed((200 + at, 0), took(1), true);
        }
        assert_eq!(rhythm.left.get(), 0);
    }
}
