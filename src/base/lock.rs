//! A lock that can be handed on, for a context.
//!
//! A lock library that keeps sleeping threads in one table of the process cannot be used here: a
//! forked child inherits that table with threads in it that the child does not have, in memory that
//! the C library gives to the child's own threads. The standard library's lock has no such table,
//! but no way to hand the lock on either. This lock is one word, on which the kernel lets threads
//! sleep (futex), and nothing else.
//!
//! The algorithm is that of Drepper, *Futexes Are Tricky* (2011), mutex 3, with a way to hand
//! the lock on: an owner that takes it again at once would otherwise be faster than any
//! sleeper, for ever.
//!
//! | state | meaning | which thread leaves it, to which state |
//! |---|---|---|
//! | FREE | no thread holds the lock | a thread that takes it: HELD, or WANTED when it has slept |
//! | HELD | held; no thread sleeps, but for one whose duty has passed to a woken thread | the owner: FREE. A waiter: WANTED, OVERDUE |
//! | WANTED | held; a thread may sleep | the owner: FREE, and it wakes one; or HANDED. A waiter: OVERDUE |
//! | OVERDUE | held; a thread may sleep that was woken before and came too late | the owner: HANDED, and it wakes one |
//! | HANDED | free, but for the thread that was just woken | that thread: WANTED. The last owner, when none slept: FREE. Another thread, after a moment: HELD or WANTED |
//!
//! **No wake-up is lost.** A thread sleeps only while the word is WANTED or OVERDUE (or, for a
//! moment, HANDED); leaving these states wakes one thread. A woken thread has the *duty* to ensure
//! that the next one is woken: it takes the lock as WANTED, or marks the lock before it sleeps
//! again, or marks it when it gives up. Until then the lock may be HELD while others sleep.
//!
//! **Orderings.** What the lock guards is ordered by the word alone: a thread acquires it by a
//! compare-and-swap with Acquire from FREE or HANDED, and its owner leaves by a compare-and-swap,
//! swap or store with Release. HANDED to FREE is a compare-and-swap, which continues the release
//! sequence of the store of HANDED, so the next Acquire still sees it. Marks (HELD to WANTED,
//! WANTED to OVERDUE) and looks are Relaxed: they carry no data, and a stale look is followed by a
//! compare-and-swap or by the kernel's own comparison before the thread sleeps. That comparison and
//! a wake-up exclude each other by the kernel's lock of the queue.
//!
//! `base::models::lock` has the models.

use super::pause::pause;
use super::sync::{Deadline, Futex, Ordering, Wake};
use std::time::Duration;

/// No thread holds it.
const FREE: u32 = 0;
/// A thread holds it, and none has marked it as wanted.
const HELD: u32 = 1;
/// Held, and a thread may sleep.
const WANTED: u32 = 2;
/// Held, and a thread may sleep that was woken before and came too late.
const OVERDUE: u32 = 3;
/// Free, but for a thread that was just woken: others wait for it a moment.
const HANDED: u32 = 4;

/// How often a thread checks again before it sleeps.
const SPINS: u32 = if cfg!(loom) { 0 } else { 60 };
/// How long others let the woken thread go first. It was running a moment ago, or has been woken
/// now; when it takes longer, the first thread that comes has the lock.
const COURTESY: Duration = Duration::from_millis(2);

/// A lock of one word.
#[derive(Debug)]
pub struct RawLock(Futex);

impl RawLock {
    /// A free one.
    pub fn new() -> Self {
        Self(Futex::new(FREE))
    }

    /// Takes the lock, waiting for it. Only one thread succeeds in taking the word out of FREE
    /// or HANDED (compare-and-swap), and it acquires what the last owner has released with its
    /// store or swap.
    #[inline]
    pub fn lock(&self) {
        if !self.try_lock() {
            self.lock_slowly(false, None);
        }
    }

    /// Takes the lock, waiting no longer than that; `false` when others have kept it all the time.
    /// A thread that gives up may leave the lock marked as wanted, or be woken for nothing: others
    /// then wait for it as if it were slow to come.
    pub fn lock_within(&self, at_most: Duration) -> bool {
        self.try_lock() || self.lock_slowly(false, Some(Deadline::after(at_most)))
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        self.0.exchange(FREE, HELD, Ordering::Acquire)
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread must hold it.
    #[inline]
    pub unsafe fn unlock(&self) {
        if !self.0.exchange(HELD, FREE, Ordering::Release) {
            self.unlock_and_wake();
        }
    }

    /// For the thread that holds the lock: whether another one may sleep for it. May be out of date
    /// when it is read.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) != HELD
    }

    /// Lets another thread have the lock for a moment, if one sleeps for it; costs one
    /// load otherwise.
    ///
    /// # Safety
    /// The calling thread must hold it.
    #[inline]
    pub unsafe fn bump(&self) {
        if self.is_wanted() {
            self.hand_on();
            self.lock_slowly(true, None);
        }
    }

    #[cold]
    fn unlock_and_wake(&self) {
        // A sleeper that was passed over before gets the lock; otherwise it is free for all until
        // the sleeper runs.
        if self.0.load(Ordering::Relaxed) == OVERDUE {
            return self.hand_on();
        }
        self.0.swap(FREE, Ordering::Release);
        self.0.wake(1);
    }

    /// Gives the lock away, to a sleeper if there is one.
    fn hand_on(&self) {
        self.0.store(HANDED, Ordering::Release);
        if !self.0.wake(1) {
            // The thread that marked the lock does not sleep yet, or has given up; it reads the
            // word before it sleeps.
            self.0.exchange(HANDED, FREE, Ordering::Relaxed);
        }
    }

    /// `polite`: a thread that was woken goes first.
    #[cold]
    fn lock_slowly(&self, polite: bool, until: Option<Deadline>) -> bool {
        for _ in 0..SPINS {
            if !polite && self.try_lock() {
                return true;
            }
            if self.0.load(Ordering::Relaxed) != HELD {
                break;
            }
            pause();
        }
        // `mark` is the state in which this thread sleeps; `invited`: it need not wait for another.
        // A thread that has slept has the duty to see that the next sleeper is woken, for it may
        // have been woken in that one's place.
        let (mut mark, mut invited, mut has_slept) = (WANTED, false, false);
        loop {
            let seen = self.0.load(Ordering::Relaxed);
            match seen {
                HANDED if !invited => {
                    // Also when the time is over: then no thread came for it.
                    invited = self.0.sleep(HANDED, Some(COURTESY)) != Wake::Signal;
                    has_slept = true;
                }
                FREE | HANDED => {
                    let taken = if has_slept { WANTED } else { HELD };
                    if self.0.exchange(seen, taken, Ordering::Acquire) {
                        return true;
                    }
                }
                _ => {
                    let left = until.as_ref().map(Deadline::left);
                    let Some(left) = left.map_or(Some(None), |left| left.map(Some)) else {
                        if self.give_up(seen, has_slept) {
                            return false;
                        }
                        continue;
                    };
                    let wanted = seen.max(mark);
                    let marked = seen == wanted || self.0.exchange(seen, wanted, Ordering::Relaxed);
                    if marked && matches!(self.0.sleep(wanted, left), Wake::Woken | Wake::TimedOut) {
                        (mark, invited, has_slept) = (OVERDUE, true, true);
                    }
                }
            }
        }
    }

    /// A waiter whose time is over leaves. When it has slept, the wake-up of another sleeper may
    /// have come to it: the thread that took the lock in the meantime must wake that one, and does
    /// so only when the lock is marked. `false`: the word has changed, look again.
    fn give_up(&self, seen: u32, has_slept: bool) -> bool {
        !has_slept || seen != HELD || self.0.exchange(HELD, WANTED, Ordering::Relaxed)
    }
}

impl Default for RawLock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::RawLock;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;
    use std::time::Duration;

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
            // SAFETY: each test bumps only a lock that it holds.
            unsafe { self.lock.bump() }
        }
    }

    #[test]
    fn one_thread_at_a_time() {
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

    /// One thread holds the lock nearly always, whether it bumps or unlocks; another thread must
    /// get it nevertheless.
    #[test]
    fn a_thread_that_takes_it_again_at_once_keeps_no_other_out() {
        for bumps in [false, true] {
            // Not on the stack, where the next round's would take their place: the synchronisation
            // for that is inside std.
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
