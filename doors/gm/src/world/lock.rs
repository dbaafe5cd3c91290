//! The lock of a port: the core's, which costs no locked instruction while one thread alone takes
//! it. One would wait until the line of a message that was just written has come.

use openlapi::base::biased_lock::BiasedLock;
use openlapi::base::known_threads::this_thread;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};
use std::time::Duration;

/// A value that one thread uses at a time.
pub struct Lock<T> {
    raw: BiasedLock,
    /// The thread that has it, for that thread's signal handlers; 0: none.
    owner: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: the value is used through a `Locked` alone, of which there is one at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The value, while the thread has the lock.
pub struct Locked<'a, T> {
    lock: &'a Lock<T>,
    thread: usize,
    /// The lock belongs to the thread.
    here: PhantomData<*const ()>,
}

impl<T> Lock<T> {
    /// A free lock.
    pub fn new(value: T) -> Self {
        Self { raw: BiasedLock::new(), owner: AtomicUsize::new(0), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock. A thread that has it must not ask for it.
    #[inline]
    pub fn lock(&self) -> Locked<'_, T> {
        let thread = this_thread();
        if self.raw.enter(thread).is_none() {
            self.raw.lock(thread);
        }
        self.locked(thread)
    }

    /// For a thread that may have been interrupted with the lock, and never goes on from there.
    /// `None`: it was, or others have kept the lock all the time.
    pub fn lock_at_exit(&self, at_most: Duration) -> Option<Locked<'_, T>> {
        let thread = this_thread();
        let is_free = self.owner.load(Ordering::Relaxed) != thread && self.raw.lock_within(thread, at_most);
        is_free.then(|| self.locked(thread))
    }

    #[inline]
    fn locked(&self, thread: usize) -> Locked<'_, T> {
        self.owner.store(thread, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Locked { lock: self, thread, here: PhantomData }
    }
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread has the lock until `self` is gone.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Locked<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread has the lock until `self` is gone, which is borrowed alone.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Locked<'_, T> {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.lock.owner.store(0, Ordering::Relaxed);
        // SAFETY: this thread has taken the lock, and a `Locked` never leaves it.
        unsafe { self.lock.raw.unlock(self.thread) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Lock};

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        let lock = Lock::new(0_u64);
        // Enough turns of one thread for the bias, which the others then end.
        (0..1000).for_each(|_| *lock.lock() += 1);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..20_000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 61_000);
    }

    #[test]
    fn at_exit_no_thread_waits_for_itself() {
        const SOON: Duration = Duration::from_millis(1);
        let lock = Lock::new(1);
        for turns in [1, 1000] {
            // With the bias, too, by which a thread would get it twice.
            (0..turns).for_each(|_| assert_eq!(*lock.lock(), 1));
            let held = lock.lock();
            assert!(lock.lock_at_exit(SOON).is_none());
            std::thread::scope(|scope| {
                scope.spawn(|| assert!(lock.lock_at_exit(SOON).is_none()));
            });
            drop(held);
            assert!(lock.lock_at_exit(SOON).is_some());
        }
    }
}
