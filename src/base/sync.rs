//! The atomics, and the locks of what is model-checked: std's and parking_lot's, or, under `--cfg loom`, loom's, which tries
//! every order in which threads may run and every value that a load may see
//! (`docs/design/0007-model-checking.md`).
//!
//! What is used from here behaves the same in both, except that under loom nothing ever times out: a wake-up that is
//! lost stays lost, and loom reports a deadlock.

#[cfg(not(loom))]
pub use parking_lot::{Condvar, Mutex};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use self::modelled::{Condvar, Mutex};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Loom's locks in the form of parking_lot's.
#[cfg(loom)]
mod modelled {
    use std::ops::{Deref, DerefMut};
    use std::time::Duration;

    /// A lock.
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    /// The lock is held.
    pub struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

    /// What threads wait for.
    pub struct Condvar(loom::sync::Condvar);

    const HELD: &str = "a guard is without its lock only inside of Condvar::wait_for";

    impl<T> Mutex<T> {
        /// A free lock around a value.
        pub fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        /// Takes the lock.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().expect("a panic ends the model")))
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
        /// Nobody waits.
        pub fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }

        /// Waits to be notified, however long that takes.
        pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _at_most: Duration) {
            let held = guard.0.take().expect(HELD);
            guard.0 = Some(self.0.wait(held).expect("a panic ends the model"));
        }

        /// Wakes all that wait.
        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}
