//! The atomics, locks and conditions that everything here uses: std's, or, under `--cfg loom`,
//! loom's, which tries every order in which threads may run and every value that a load may see
//! (`docs/design/0007-model-checking.md`).
//!
//! A lock is never poisoned: a panic ends the process. Std's locks are one word each and share
//! no table with other locks, so that a forked child can make new ones whichever the parent's
//! other threads held.
//!
//! All of this behaves the same in both, except that under loom no wait on a [`Condvar`] times out:
//! a wake-up that is lost stays lost, and loom reports a deadlock. A sleep on a [`Futex`] with a
//! limit may end at any moment there.

#[cfg(not(loom))]
mod futex;
#[cfg(loom)]
#[path = "sync/futex_model.rs"]
mod futex;
#[cfg(one_mapping)]
mod instrumented;

#[cfg(one_mapping)]
use instrumented as library;
#[cfg(loom)]
use loom::sync as library;
#[cfg(not(any(loom, one_mapping)))]
use std::sync as library;

use super::clock::now;
#[cfg(test)]
#[cfg(not(loom))]
use super::simulation;
pub use futex::{Deadline, Futex, Wake};
pub use library::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// A value behind a lock.
#[derive(Debug, Default)]
pub struct Mutex<T>(library::Mutex<T>);

/// Proof that a [`Mutex`] is held.
pub struct MutexGuard<'a, T>(
    Option<library::MutexGuard<'a, T>>,
    /// Which one: a thread of a simulation waits without the library.
    #[cfg(all(test, not(loom)))]
    &'a Mutex<T>,
);

/// Where threads wait for something that a [`Mutex`] guards to change.
#[derive(Debug, Default)]
pub struct Condvar(library::Condvar);

const HELD: &str = "a guard is without its lock only inside of a wait";

impl<T> Mutex<T> {
    /// A free lock around a value.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self(library::Mutex::new(value))
    }

    /// A free lock around a value.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self(library::Mutex::new(value))
    }

    /// Takes the lock, waiting for it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(
            Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)),
            #[cfg(all(test, not(loom)))]
            self,
        )
    }
}

impl<T> Mutex<T> {
    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        use std::sync::TryLockError;
        let guard = match self.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard(
            Some(guard),
            #[cfg(all(test, not(loom)))]
            self,
        ))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect(HELD)
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(HELD)
    }
}

impl Condvar {
    /// A condition for which no thread waits.
    pub fn new() -> Self {
        Self(library::Condvar::new())
    }

    /// Waits to be notified; may also return without.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        #[cfg(all(test, not(loom)))]
        if simulation::active() {
            return self.wait_simulated(guard, None);
        }
        let held = guard.0.take().expect(HELD);
        guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits to be notified, but not for longer than `at_most`.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, at_most: Duration) {
        #[cfg(all(test, not(loom)))]
        if simulation::active() {
            return self.wait_simulated(guard, Some(at_most));
        }
        let held = guard.0.take().expect(HELD);
        let (held, _) = self.0.wait_timeout(held, at_most).unwrap_or_else(PoisonError::into_inner);
        guard.0 = Some(held);
    }

    /// Waits to be notified; `false` when `until` has come.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, until: Instant) -> bool {
        let left = until.saturating_duration_since(now());
        if !left.is_zero() {
            self.wait_for(guard, left);
        }
        now() < until
    }

    /// No other thread of the simulation runs between the release of the lock and the wait.
    #[cfg(all(test, not(loom)))]
    fn wait_simulated<T>(&self, guard: &mut MutexGuard<'_, T>, at_most: Option<Duration>) {
        guard.0 = None;
        simulation::wait_on(std::ptr::from_ref(self).addr(), at_most);
        guard.0 = guard.1.lock().0.take();
    }

    /// Wakes one that waits.
    pub fn notify_one(&self) {
        #[cfg(all(test, not(loom)))]
        simulation::wake(std::ptr::from_ref(self).addr(), 1);
        self.0.notify_one();
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        #[cfg(all(test, not(loom)))]
        simulation::wake(std::ptr::from_ref(self).addr(), u32::MAX);
        self.0.notify_all();
    }
}
