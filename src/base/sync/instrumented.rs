//! Locks and conditions under `--cfg one_mapping`, as ci/sanitize.sh sets it: the same as std's, but compiled here.
//!
//! Std is not instrumented. ThreadSanitizer would not see the order that its locks make when threads wait for them, and report
//! what they guard.

use crate::base::lock::RawLock;
use rustix::event::Timespec;
use rustix::thread::futex::{self, Flags};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
pub use std::sync::atomic;
use std::sync::{LockResult, atomic::AtomicU32, atomic::Ordering};
use std::time::Duration;

#[derive(Default)]
pub struct Mutex<T> {
    raw: RawLock,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard alone, of which there is one at a time.
unsafe impl<T: Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> std::fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mutex")
    }
}

pub struct MutexGuard<'a, T>(&'a Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Self { raw: RawLock::new(), value: UnsafeCell::new(value) }
    }

    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.raw.lock();
        Ok(MutexGuard(self))
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
        // SAFETY: the guard holds the lock, and ends here.
        unsafe { self.0.raw.unlock() }
    }
}

/// Counts the notifications: a sleeper that has seen an older number does not fall asleep.
#[derive(Debug, Default)]
pub struct Condvar(AtomicU32);

impl Condvar {
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
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
        // It fails for wrong arguments only.
        let _ = futex::wake(&self.0, Flags::PRIVATE, count);
    }

    fn sleep<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        at_most: Option<Duration>,
    ) -> LockResult<MutexGuard<'a, T>> {
        // Read with the lock held: who changes what is waited for does so later, and counts after that.
        let seen = self.0.load(Ordering::Relaxed);
        let mutex = guard.0;
        drop(guard);
        let limit = at_most
            .map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) });
        // However it ends, the caller looks again.
        let _ = futex::wait(&self.0, Flags::PRIVATE, seen, limit.as_ref());
        mutex.lock()
    }
}
