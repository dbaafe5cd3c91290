use super::*;
use std::cell::UnsafeCell;
use std::sync::atomic::AtomicU32;
use std::thread;

/// A number that only the lock's holder touches.
struct Guarded(UnsafeCell<u64>);

// SAFETY: the tests touch the number with the lock held only; that this is enough is
// what they test.
unsafe impl Sync for Guarded {}

impl Guarded {
    /// One more, in two steps that another thread must not come between.
    fn add(&self, lock: &OwnedLock) {
        assert_eq!(lock.owner(), Some(this_thread()));
        // SAFETY: the lock is held.
        unsafe {
            let before = self.0.get().read_volatile();
            std::hint::spin_loop();
            self.0.get().write_volatile(before + 1);
        }
    }
}

#[test]
fn a_call_takes_a_free_lock() {
    let lock = OwnedLock::new();
    assert_eq!(lock.owner(), None);
    assert_eq!(lock.enter(), Hold::Taken);
    assert_eq!(lock.owner(), Some(this_thread()));
    assert_eq!(lock.enter(), Hold::Nested, "a call that a handler makes");
    assert!(!lock.lock(), "a handler cannot take it");
    assert!(!lock.try_lock());
    assert!(!lock.unlock(), "nor release it");
    // SAFETY: taken above.
    unsafe { lock.leave() };
    assert_eq!(lock.owner(), None);
}

#[test]
fn the_calls_of_a_thread_that_has_left_are_not_those_of_another_one() {
    let lock = OwnedLock::new();
    assert_eq!((lock.enter(), lock.enter()), (Hold::Taken, Hold::Nested), "a call, and one of its handler");
    // SAFETY: taken above.
    let calls = unsafe { lock.leave_calls() };
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(lock.enter(), Hold::Taken);
            assert!(!lock.is_nested(), "it has made one call");
            assert_eq!(lock.enter(), Hold::Nested);
            lock.leave_nested();
            // SAFETY: taken above.
            unsafe { lock.leave() };
        });
    });
    lock.enter_calls(calls);
    assert!(lock.is_nested());
    lock.leave_nested();
    assert!(!lock.is_nested());
    // SAFETY: taken above.
    unsafe { lock.leave() };
}

#[test]
fn a_call_borrows_what_the_program_holds() {
    let lock = OwnedLock::new();
    assert!(lock.lock());
    assert!(lock.is_programs());
    assert!(!lock.lock(), "twice");
    assert!(!lock.try_lock());
    assert_eq!(lock.enter(), Hold::Lent);
    assert!(!lock.is_programs(), "a call is inside");
    assert!(!lock.unlock(), "by a handler of that call");
    assert_eq!(lock.enter(), Hold::Nested);
    // SAFETY: the lock was lent above.
    unsafe { lock.give_back() };
    assert!(lock.is_programs());
    assert!(lock.unlock());
    assert!(!lock.unlock());
    assert_eq!(lock.owner(), None);
    assert_eq!(lock.enter(), Hold::Taken, "nothing of the program's hold is left");
    // SAFETY: taken in the line above.
    unsafe { lock.leave() };
    assert!(lock.try_lock());
    assert_eq!(lock.enter(), Hold::Lent);
    // SAFETY: the call holds what was lent to it; it releases it while it waits, and takes
    // it as its own.
    unsafe { lock.leave() };
    assert_eq!(lock.enter(), Hold::Taken);
    // SAFETY: the call has just taken it.
    unsafe { lock.give_back() };
    assert!(lock.unlock());
}

#[test]
fn what_a_thread_holds_is_no_other_threads() {
    let lock = OwnedLock::new();
    let owner = this_thread();
    assert!(lock.lock());
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(lock.owner(), Some(owner));
            assert!(!lock.is_programs());
            assert!(!lock.try_lock());
            assert!(!lock.unlock());
        });
    });
    assert!(lock.unlock());
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(lock.try_lock());
            assert!(lock.unlock());
        });
    });
}

#[test]
fn one_thread_at_a_time_whichever_way_it_came() {
    const ROUNDS: u64 = 20_000;
    let (lock, number) = (&OwnedLock::new(), &Guarded(UnsafeCell::new(0)));
    let work = move |way: u64| {
        for round in 0..ROUNDS {
            match (way + round) % 3 {
                0 => {
                    assert!(lock.lock());
                    number.add(lock);
                    assert!(lock.unlock());
                }
                1 => {
                    assert_eq!(lock.enter(), Hold::Taken);
                    number.add(lock);
                    // SAFETY: taken above.
                    unsafe { lock.leave() };
                }
                _ => {
                    assert!(lock.lock());
                    assert_eq!(lock.enter(), Hold::Lent);
                    number.add(lock);
                    // SAFETY: lent above, and this is the outermost call.
                    unsafe {
                        lock.yield_to_others();
                        lock.give_back();
                    }
                    assert!(lock.is_programs());
                    assert!(lock.unlock());
                }
            }
        }
    };
    thread::scope(|scope| {
        for way in 0..4 {
            scope.spawn(move || work(way));
        }
    });
    // SAFETY: the threads have ended.
    assert_eq!(unsafe { *number.0.get() }, 4 * ROUNDS);
    assert_eq!(lock.owner(), None);
}

/// The holder never releases the lock but for turns; all that wait get it, again and again.
#[test]
fn no_waiting_thread_starves_while_the_lock_is_lent() {
    const WAITERS: u32 = 3;
    const TURNS: u32 = 200;
    let (lock, done) = (&OwnedLock::new(), &AtomicU32::new(0));
    thread::scope(|scope| {
        assert!(lock.lock());
        for way in 0..WAITERS {
            scope.spawn(move || {
                for _ in 0..TURNS {
                    if way == 0 {
                        assert_eq!(lock.enter(), Hold::Taken);
                        // SAFETY: taken in the line above.
                        unsafe { lock.leave() };
                    } else {
                        assert!(lock.lock());
                        assert!(lock.unlock());
                    }
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        while done.load(Ordering::Relaxed) < WAITERS {
            assert_eq!(lock.enter(), Hold::Lent);
            // SAFETY: lent in the line above.
            unsafe {
                lock.yield_to_others();
                lock.give_back();
            }
            assert!(lock.is_programs());
            assert_eq!(lock.owner(), Some(this_thread()));
        }
        assert!(lock.unlock());
    });
}
