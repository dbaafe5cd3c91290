//! Locks and conditions under `--cfg one_mapping`, as ci/sanitize.sh sets it: the same as std's,
//! but compiled here.
//!
//! Std is not instrumented. ThreadSanitizer would not see the order that its locks make when
//! threads wait for them, and report what they guard.

use super::futex::Futex;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
pub use std::sync::atomic;
use std::sync::{LockResult, TryLockError, TryLockResult, atomic::Ordering};
use std::time::Duration;

/// Mutex 2 of Drepper, *Futexes Are Tricky*: 0 free, 1 held, 2 held and a thread may sleep.
#[derive(Default)]
pub struct Mutex<T> {
    word: Futex,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard alone, of which there is one at a time.
unsafe impl<T: Send> Send for Mutex<T> {}
// SAFETY: two threads have no guard at the same time.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> std::fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mutex")
    }
}

pub struct MutexGuard<'a, T>(&'a Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Self { word: Futex::new(0), value: UnsafeCell::new(value) }
    }

    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        if !self.word.exchange(0, 1, Ordering::Acquire) {
            while self.word.swap(2, Ordering::Acquire) != 0 {
                self.word.sleep(2, None);
            }
        }
        Ok(MutexGuard(self))
    }

    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        if self.word.exchange(0, 1, Ordering::Acquire) {
            Ok(MutexGuard(self))
        } else {
            Err(TryLockError::WouldBlock)
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard proves that the lock is held.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.0.word.swap(0, Ordering::Release) == 2 {
            self.0.word.wake(1);
        }
    }
}

/// Counts the notifications: a sleeper that has seen an older number does not fall asleep.
#[derive(Debug, Default)]
pub struct Condvar(Futex);

impl Condvar {
    pub const fn new() -> Self {
        Self(Futex::new(0))
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.sleep(guard, None)
    }

    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        at_most: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        self.sleep(guard, Some(at_most))
            .map(|guard| (guard, ()))
            .map_err(|_| unreachable!("no lock is poisoned"))
    }

    pub fn notify_one(&self) {
        self.notify(1);
    }

    pub fn notify_all(&self) {
        self.notify(i32::MAX as u32);
    }

    fn notify(&self, count: u32) {
        self.0.fetch_add(1, Ordering::Release);
        self.0.wake(count);
    }

    fn sleep<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        at_most: Option<Duration>,
    ) -> LockResult<MutexGuard<'a, T>> {
        // Read with the lock held: a thread that changes what is waited for does so later, and
        // counts after that.
        let seen = self.0.load(Ordering::Relaxed);
        let mutex = guard.0;
        drop(guard);
        // The caller looks again, whatever has ended the sleep.
        self.0.sleep(seen, at_most);
        mutex.lock()
    }
}
