use super::{BiasedLock, QUIET};
use crate::base::asymmetric_barrier::own_registered;
use crate::base::known_threads::this_thread;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A number that only the lock's holder touches.
#[derive(Default)]
struct Guarded {
    lock: BiasedLock,
    number: UnsafeCell<u64>,
}

// SAFETY: the tests touch the number with the lock held only; that this is enough is
// what they test.
unsafe impl Sync for Guarded {}

impl Guarded {
    /// One more, in two steps that another thread must not come between; with the lock held.
    fn step(&self) {
        // SAFETY: the lock is held.
        unsafe {
            let before = self.number.get().read_volatile();
            std::hint::spin_loop();
            self.number.get().write_volatile(before + 1);
        }
    }

    fn unlock(&self) {
        // SAFETY: each test unlocks what it has locked.
        unsafe { self.lock.unlock(this_thread()) }
    }

    fn locked_steps(&self, count: u32) {
        for _ in 0..count {
            self.lock.lock(this_thread());
            self.step();
            self.unlock();
        }
    }

    /// The calling thread is alone until it has the bias.
    fn be_alone(&self) {
        self.locked_steps(QUIET + 2);
        assert_eq!(self.lock.is_biased(this_thread()), own_registered());
    }

    fn number(&self) -> u64 {
        // SAFETY: no other thread is left.
        unsafe { *self.number.get() }
    }
}

#[test]
fn a_thread_that_is_alone_has_the_bias_and_another_one_ends_it() {
    let guarded = Guarded::default();
    guarded.be_alone();
    thread::scope(|scope| {
        scope.spawn(|| guarded.locked_steps(1));
    });
    assert!(!guarded.lock.is_biased(this_thread()));
    guarded.be_alone();
    assert_eq!(guarded.number(), 2 * u64::from(QUIET + 2) + 1);
}

#[test]
fn one_thread_at_a_time_whoever_has_the_bias() {
    let (guarded, rounds) = (Guarded::default(), 40);
    thread::scope(|scope| {
        let seldom = scope.spawn(|| {
            for _ in 0..rounds {
                guarded.locked_steps(1);
                thread::sleep(Duration::from_micros(300));
            }
        });
        // Two that are each often alone for a while.
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    guarded.locked_steps(3 * QUIET);
                    thread::yield_now();
                }
            });
        }
        seldom.join().expect("it ends");
    });
    assert_eq!(guarded.number(), rounds * (6 * u64::from(QUIET) + 1));
}

#[test]
fn a_thread_with_the_bias_that_stays_inside_keeps_others_out_and_lets_them_in() {
    let (guarded, waits) = (Guarded::default(), AtomicBool::new(false));
    guarded.be_alone();
    guarded.lock.lock(this_thread());
    assert!(!guarded.lock.is_wanted() || !own_registered());
    thread::scope(|scope| {
        scope.spawn(|| {
            let me = this_thread();
            assert!(!guarded.lock.try_lock(me));
            assert!(!guarded.lock.lock_within(me, Duration::from_millis(1)));
            waits.store(true, Ordering::Relaxed);
            guarded.locked_steps(1);
        });
        while !waits.load(Ordering::Relaxed) || !guarded.lock.is_wanted() {
            thread::yield_now();
        }
        let before = guarded.number();
        while guarded.number() == before {
            // SAFETY: the lock was taken above.
            unsafe { guarded.lock.bump() }
        }
        guarded.unlock();
    });
    assert_eq!(guarded.number(), u64::from(QUIET) + 3);
}
