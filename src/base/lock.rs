//! Locks and conditions that know of nothing but themselves, so that a forked child can make new ones.
//!
//! A lock library that keeps the threads that sleep in one table of the process cannot be used here: a child inherits that
//! table with threads in it that the child does not have, in memory that the child's own threads are given anew.
//! Here a lock is one word, on which the kernel lets threads sleep (futex), and nothing else.
//!
//! The algorithm is that of Drepper, *Futexes Are Tricky* (2011), mutex 3, with a way to hand the lock on: an owner that
//! takes it again at once would otherwise be faster than any sleeper, for ever.

use lock_api::{GuardSend, RawMutex};
use rustix::event::Timespec;
use rustix::thread::futex::{self, Flags};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A value behind a lock.
pub type Mutex<T> = lock_api::Mutex<RawLock, T>;
/// Proof that a [`Mutex`] is held.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawLock, T>;

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

// SAFETY: who takes the word out of FREE or HANDED is alone in doing so (compare-and-swap), and acquires what the last owner has released with its store or swap.
unsafe impl RawMutex for RawLock {
    const INIT: Self = Self(AtomicU32::new(FREE));
    type GuardMarker = GuardSend;

    #[inline]
    fn lock(&self) {
        if !self.try_lock() {
            self.lock_slowly(false);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    unsafe fn unlock(&self) {
        if self.0.compare_exchange(HELD, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            self.unlock_and_wake();
        }
    }
}

impl RawLock {
    /// Lets another thread have the lock for a moment, if one sleeps for it; costs one load otherwise.
    ///
    /// # Safety
    /// The calling thread must hold it.
    #[inline]
    pub unsafe fn bump(&self) {
        if self.0.load(Ordering::Relaxed) != HELD {
            self.hand_on();
            self.lock_slowly(true);
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
    fn lock_slowly(&self, polite: bool) {
        for _ in 0..SPINS {
            if !polite && self.try_lock() {
                return;
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
                        return;
                    }
                }
                _ => {
                    let wanted = seen.max(mark);
                    let marked = seen == wanted
                        || self
                            .0
                            .compare_exchange(seen, wanted, Ordering::Relaxed, Ordering::Relaxed)
                            .is_ok();
                    if marked && sleep(&self.0, wanted, None) == Wake::Woken {
                        (mark, invited, has_slept) = (OVERDUE, true, true);
                    }
                }
            }
        }
    }
}

/// Where threads wait for something that a [`Mutex`] guards to change.
#[derive(Debug, Default)]
pub struct Condvar {
    /// Counts the notifications: a sleeper that has seen an older number does not fall asleep.
    number: AtomicU32,
}

impl Condvar {
    /// Nobody waits.
    pub const fn new() -> Self {
        Self { number: AtomicU32::new(0) }
    }

    /// Wakes one that waits.
    pub fn notify_one(&self) {
        self.notify(1);
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        self.notify(i32::MAX as u32);
    }

    fn notify(&self, count: u32) {
        self.number.fetch_add(1, Ordering::Release);
        // It fails for wrong arguments only.
        let _ = futex::wake(&self.number, Flags::PRIVATE, count);
    }

    /// Waits to be notified; may also return without.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.sleep(guard, None);
    }

    /// The same, but not for longer than `at_most`.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, at_most: Duration) {
        self.sleep(guard, Some(at_most));
    }

    /// The same; `false` when `until` has come.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            self.sleep(guard, Some(left));
        }
        Instant::now() < until
    }

    fn sleep<T>(&self, guard: &mut MutexGuard<'_, T>, at_most: Option<Duration>) {
        // Read with the lock held: who changes what is waited for does so later, and counts after that.
        let seen = self.number.load(Ordering::Relaxed);
        lock_api::MutexGuard::unlocked(guard, || sleep(&self.number, seen, at_most));
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    #[test]
    fn nobody_is_in_at_the_same_time() {
        let sum = Arc::new(Mutex::new((0_u64, 0_u64)));
        let threads: Vec<_> = (0..6)
            .map(|number| {
                let sum = sum.clone();
                thread::spawn(move || {
                    for round in 0..20_000_u64 {
                        let mut guard = sum.lock();
                        guard.0 += 1;
                        if round % 16 == number {
                            // SAFETY: held; the value is whole.
                            unsafe { Mutex::raw(&sum).bump() };
                        }
                        guard.1 += 1;
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*sum.lock(), (120_000, 120_000));
        assert!(sum.try_lock().is_some(), "it is free at the end");
    }

    /// One thread holds the lock nearly always, whether it bumps or unlocks; another one must get it all the same.
    #[test]
    fn who_takes_it_again_at_once_keeps_nobody_out() {
        for bumps in [false, true] {
            let (lock, stop) = (Arc::new(Mutex::new(0)), Arc::new(AtomicBool::new(false)));
            let greedy = {
                let (lock, stop) = (lock.clone(), stop.clone());
                thread::spawn(move || {
                    let mut guard = lock.lock();
                    while !stop.load(Ordering::Relaxed) {
                        (0..100).for_each(|_| std::hint::spin_loop());
                        if bumps {
                            // SAFETY: held; the value is whole.
                            unsafe { Mutex::raw(&lock).bump() };
                        } else {
                            drop(guard);
                            guard = lock.lock();
                        }
                    }
                })
            };
            for _ in 0..200 {
                *lock.lock() += 1;
                thread::sleep(Duration::from_micros(50));
            }
            stop.store(true, Ordering::Relaxed);
            greedy.join().unwrap();
            assert_eq!(*lock.lock(), 200);
        }
    }

    #[test]
    fn a_condition_is_passed_to_and_fro() {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let shared = shared.clone();
                thread::spawn(move || {
                    for round in 0..2000 {
                        let mut turn = shared.0.lock();
                        while *turn != round * 4 + number {
                            shared.1.wait(&mut turn);
                        }
                        *turn += 1;
                        shared.1.notify_all();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*shared.0.lock(), 8000);
    }

    #[test]
    fn waiting_ends_in_time() {
        let (lock, condition) = (Mutex::new(()), Condvar::new());
        let mut guard = lock.lock();
        let until = Instant::now() + Duration::from_millis(20);
        while condition.wait_until(&mut guard, until) {}
        assert!(Instant::now() >= until);
        condition.wait_for(&mut guard, Duration::from_millis(1));
    }
}
