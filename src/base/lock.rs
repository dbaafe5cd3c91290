//! A lock that can be handed on, for a context.
//!
//! A lock library that keeps the threads that sleep in one table of the process cannot be used here: a forked child
//! inherits that table with threads in it that the child does not have, in memory that the child's own threads are given
//! anew. The standard library's has no such table, but no way to hand the lock on either. Here a lock is one word, on which
//! the kernel lets threads sleep (futex), and nothing else.
//!
//! The algorithm is that of Drepper, *Futexes Are Tricky* (2011), mutex 3, with a way to hand the lock on: an owner that
//! takes it again at once would otherwise be faster than any sleeper, for ever.

use rustix::event::Timespec;
use rustix::thread::futex::{self, Flags};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Nobody holds it.
const FREE: u32 = 0;
/// Somebody does, and nobody sleeps.
const HELD: u32 = 1;
/// Held, and somebody may sleep.
const WANTED: u32 = 2;
/// Held, and somebody may sleep who was woken before and came too late.
const OVERDUE: u32 = 3;
/// Free, but for a thread that was just woken: others stand back a moment.
const HANDED: u32 = 4;

/// How often a thread looks again before it sleeps.
const SPINS: u32 = 60;
/// How long others stand back for the thread that was woken. It was running a moment ago, or has been woken now; should it
/// take longer, whoever comes first has the lock.
const COURTESY: Duration = Duration::from_millis(2);

/// A lock of one word.
#[derive(Debug)]
pub struct RawLock(AtomicU32);

impl RawLock {
    /// A free one.
    pub const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Takes the lock, waiting for it. Who takes the word out of FREE or HANDED is alone in doing so (compare-and-swap), and
    /// acquires what the last owner has released with its store or swap.
    #[inline]
    pub fn lock(&self) {
        if !self.try_lock() {
            self.lock_slowly(false, None);
        }
    }

    /// The same, but waiting no longer than that; `false` when others have kept it all the time. Who gives up may leave the
    /// lock marked as wanted, or be woken for nothing: others then wait for it as if it were slow to come.
    pub fn lock_within(&self, at_most: Duration) -> bool {
        self.try_lock() || self.lock_slowly(false, Some(Instant::now() + at_most))
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread must hold it.
    #[inline]
    pub unsafe fn unlock(&self) {
        if self.0.compare_exchange(HELD, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            self.unlock_and_wake();
        }
    }

    /// Lets another thread have the lock for a moment, if one sleeps for it; costs one load otherwise.
    ///
    /// # Safety
    /// The calling thread must hold it.
    #[inline]
    pub unsafe fn bump(&self) {
        if self.0.load(Ordering::Relaxed) != HELD {
            self.hand_on();
            self.lock_slowly(true, None);
        }
    }

    #[cold]
    fn unlock_and_wake(&self) {
        // Who sleeps now and has been passed over gets it; otherwise it is free for all while the sleeper gets up.
        if self.0.load(Ordering::Relaxed) == OVERDUE {
            return self.hand_on();
        }
        self.0.swap(FREE, Ordering::Release);
        self.wake_one();
    }

    /// Gives the lock away, to a sleeper if there is one.
    fn hand_on(&self) {
        self.0.store(HANDED, Ordering::Release);
        if !self.wake_one() {
            // Whoever wanted it is not asleep yet, or not any more; it looks at the word before it sleeps.
            let _ = self.0.compare_exchange(HANDED, FREE, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    fn wake_one(&self) -> bool {
        futex::wake(&self.0, Flags::PRIVATE, 1).is_ok_and(|woken| woken != 0)
    }

    /// `polite`: a thread that was woken goes first.
    #[cold]
    fn lock_slowly(&self, polite: bool, until: Option<Instant>) -> bool {
        for _ in 0..SPINS {
            if !polite && self.try_lock() {
                return true;
            }
            if self.0.load(Ordering::Relaxed) != HELD {
                break;
            }
            std::hint::spin_loop();
        }
        // `mark` says how urgent it is; `invited`: this thread need not stand back. Who has slept marks the lock as wanted
        // when it gets it: others may still sleep, and only its unlocking can wake them. Who has not may leave that to
        // the one that was woken last, which comes and marks it.
        let (mut mark, mut invited, mut has_slept) = (WANTED, false, false);
        loop {
            let seen = self.0.load(Ordering::Relaxed);
            match seen {
                HANDED if !invited => {
                    // Also when the time is over: then nobody came for it.
                    invited = sleep(&self.0, HANDED, Some(COURTESY)) != Wake::Signal;
                    has_slept = true;
                }
                FREE | HANDED => {
                    let taken = if has_slept { WANTED } else { HELD };
                    if self.0.compare_exchange(seen, taken, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                        return true;
                    }
                }
                _ => {
                    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
                    if left.is_some_and(|left| left.is_zero()) {
                        return false;
                    }
                    let wanted = seen.max(mark);
                    let marked = seen == wanted
                        || self
                            .0
                            .compare_exchange(seen, wanted, Ordering::Relaxed, Ordering::Relaxed)
                            .is_ok();
                    if marked && sleep(&self.0, wanted, left) == Wake::Woken {
                        (mark, invited, has_slept) = (OVERDUE, true, true);
                    }
                }
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Wake {
    /// Woken, or the time is over.
    Woken,
    /// The word had another value.
    Changed,
    /// A signal's handler has run.
    Signal,
}

fn sleep(word: &AtomicU32, value: u32, at_most: Option<Duration>) -> Wake {
    let limit = at_most
        .map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) });
    match futex::wait(word, Flags::PRIVATE, value, limit.as_ref()) {
        Err(rustix::io::Errno::INTR) => Wake::Signal,
        Err(rustix::io::Errno::AGAIN) => Wake::Changed,
        _ => Wake::Woken,
    }
}

impl Default for RawLock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::thread;

    /// Two numbers that change together.
    struct Pair {
        lock: RawLock,
        numbers: [AtomicU64; 2],
    }

    impl Pair {
        fn new() -> Self {
            Self { lock: RawLock::new(), numbers: Default::default() }
        }

        /// Not atomic on purpose: two at the same time would lose a step.
        fn step(&self, which: usize) {
            let number = self.numbers[which].load(Ordering::Relaxed);
            self.numbers[which].store(number + 1, Ordering::Relaxed);
        }

        fn unlock(&self) {
            // SAFETY: each test unlocks what it has locked.
            unsafe { self.lock.unlock() }
        }

        fn bump(&self) {
            // SAFETY: as above.
            unsafe { self.lock.bump() }
        }
    }

    #[test]
    fn nobody_is_in_at_the_same_time() {
        let pair: &Pair = Box::leak(Box::new(Pair::new()));
        thread::scope(|scope| {
            for number in 0..6 {
                scope.spawn(move || {
                    for round in 0..20_000 {
                        pair.lock.lock();
                        pair.step(0);
                        if round % 16 == number {
                            pair.bump();
                        }
                        pair.step(1);
                        pair.unlock();
                    }
                });
            }
        });
        assert_eq!(pair.numbers.each_ref().map(|number| number.load(Ordering::Relaxed)), [120_000; 2]);
        assert!(pair.lock.try_lock(), "it is free at the end");
    }

    /// One thread holds the lock nearly always, whether it bumps or unlocks; another one must get it all the same.
    #[test]
    fn who_takes_it_again_at_once_keeps_nobody_out() {
        for bumps in [false, true] {
            // Not on the stack, where the next round's would take their place: what orders that stands in std.
            let pair: &Pair = Box::leak(Box::new(Pair::new()));
            let stop: &AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
            thread::scope(|scope| {
                scope.spawn(move || {
                    pair.lock.lock();
                    while !stop.load(Ordering::Relaxed) {
                        (0..100).for_each(|_| std::hint::spin_loop());
                        if bumps {
                            pair.bump();
                        } else {
                            pair.unlock();
                            pair.lock.lock();
                        }
                    }
                    pair.unlock();
                });
                for _ in 0..200 {
                    pair.lock.lock();
                    pair.step(0);
                    pair.unlock();
                    thread::sleep(Duration::from_micros(50));
                }
                stop.store(true, Ordering::Relaxed);
            });
            assert_eq!(pair.numbers[0].load(Ordering::Relaxed), 200);
        }
    }
}
