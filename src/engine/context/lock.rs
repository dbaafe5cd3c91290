//! The context's lock. It knows which thread holds it, so that a call made by that thread
//! (from a handler, or because the program has taken the lock for itself) continues without
//! taking it again.
//!
//! The program may share the lock (the manual's chapter 12). While one of its threads holds it and
//! is not inside LAPI, the lock is *the program's*. A call of that thread borrows it: then it is
//! the call's to release and to take again while it waits, and it is given back at the end. A call
//! that a handler makes finds a lock that another call further up the stack has taken or borrowed,
//! and leaves it alone.

use crate::base::biased_lock::BiasedLock;
pub use crate::base::biased_lock::Entry;
use crate::base::known_threads::this_thread;
use crate::base::long_calls;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// What became of [`OwnedLock::enter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The lock was taken: to be left at the end.
    Taken,
    /// The lock was the program's: to be given back at the end.
    Lent,
    /// A call further up this thread's stack has it.
    Nested,
    /// The lock was taken by a call of a handler of another context: to be left at the end.
    Within,
}

/// A lock with an owner.
pub struct OwnedLock {
    raw: BiasedLock,
    /// The owner's thread id, 0 for none. Every thread compares it with its own id, and sees its
    /// own writes; a thread that looks for another owner learns a value that may be out of date
    /// already. So no order between threads is needed. While the lock changes hands in
    /// [`Self::yield_to_others`], the former owner may still be here.
    owner: AtomicUsize,
    /// The lock is the program's. Written by the owner alone, and read only by it and
    /// by the reports.
    programs: AtomicBool,
    /// Calls that are [`Hold::Nested`]. Written and read by the owner alone.
    nested: AtomicU32,
}

impl OwnedLock {
    /// A free lock.
    pub fn new() -> Self {
        Self {
            raw: BiasedLock::new(),
            owner: AtomicUsize::new(0),
            programs: AtomicBool::new(false),
            nested: AtomicU32::new(0),
        }
    }

    /// Takes the lock for a call, waiting for it, or borrows it when this thread of the
    /// program holds it.
    #[inline(always)]
    pub fn enter(&self) -> Hold {
        let me = this_thread();
        let owner = self.owner.load(Ordering::Relaxed);
        if owner == 0 && self.raw.enter(me).is_some() {
            self.owner.store(me, Ordering::Relaxed);
            return Hold::Taken;
        }
        self.enter_slowly(me, owner)
    }

    /// Takes the lock for a call if this thread, and no other one, is used to taking it, and no
    /// call of it has the lock already. [`Self::leave_at_once`] follows, or [`Self::leave`].
    #[inline(always)]
    pub fn enter_at_once(&self) -> Option<Entry<'_>> {
        let me = this_thread();
        if self.owner.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let entry = self.raw.enter(me)?;
        self.owner.store(me, Ordering::Relaxed);
        Some(entry)
    }

    /// Releases a lock that was taken so.
    ///
    /// # Safety
    /// The calling thread must hold it, and must not have released it since.
    #[inline(always)]
    pub unsafe fn leave_at_once(&self, entry: Entry<'_>) {
        self.owner.store(0, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { entry.leave() }
    }

    #[inline(never)]
    fn enter_slowly(&self, me: usize, owner: usize) -> Hold {
        if owner == me {
            return self.enter_again();
        }
        if owner != 0 {
            long_calls::begins();
        }
        self.raw.lock(me);
        self.owner.store(me, Ordering::Relaxed);
        Hold::Taken
    }

    /// Enters for a call that can do without the lock: `None` when another thread holds it.
    #[inline]
    pub fn try_enter(&self) -> Option<Hold> {
        let me = this_thread();
        if self.owner.load(Ordering::Relaxed) == me {
            return Some(self.enter_again());
        }
        self.raw.try_lock(me).then(|| {
            self.owner.store(me, Ordering::Relaxed);
            Hold::Taken
        })
    }

    /// [`Self::enter`] for the owner.
    #[inline]
    fn enter_again(&self) -> Hold {
        if !self.programs.load(Ordering::Relaxed) {
            return self.enter_nested();
        }
        self.programs.store(false, Ordering::Relaxed);
        Hold::Lent
    }

    #[inline]
    fn enter_nested(&self) -> Hold {
        self.nested.store(self.nested.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Hold::Nested
    }

    /// The end of a call that is [`Hold::Nested`].
    #[inline]
    pub fn leave_nested(&self) {
        self.nested.store(self.nested.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }

    /// Whether the owner is in a call that is [`Hold::Nested`]. Only the owner may ask.
    pub fn is_nested(&self) -> bool {
        self.nested.load(Ordering::Relaxed) != 0
    }

    /// [`Self::enter`] for a thread that never shares the lock with the program, waiting no longer
    /// than that: `None` when others have kept it all the time.
    pub fn enter_within(&self, at_most: Duration) -> Option<Hold> {
        let me = this_thread();
        if self.owner.load(Ordering::Relaxed) == me {
            return Some(self.enter_nested());
        }
        self.raw.lock_within(me, at_most).then(|| {
            self.owner.store(me, Ordering::Relaxed);
            Hold::Taken
        })
    }

    /// Releases the lock that a call holds.
    ///
    /// # Safety
    /// The calling thread must hold it, by [`Self::enter`].
    #[inline]
    pub unsafe fn leave(&self) {
        let me = self.owner.load(Ordering::Relaxed);
        self.owner.store(0, Ordering::Relaxed);
        // SAFETY: the caller holds the lock.
        unsafe { self.raw.unlock(me) }
    }

    /// Releases the lock in the midst of calls, for a function of the program; the result is for
    /// [`Self::enter_calls`]. Another thread that takes it meanwhile is in no call of this one.
    ///
    /// # Safety
    /// The calling thread must hold it, by [`Self::enter`].
    pub unsafe fn leave_calls(&self) -> u32 {
        let nested = self.nested.swap(0, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { self.leave() };
        nested
    }

    /// Takes the lock again after [`Self::leave_calls`]. The program's function may have left it
    /// taken: then it is the calls' again.
    pub fn enter_calls(&self, nested: u32) {
        self.enter();
        self.nested.store(nested, Ordering::Relaxed);
    }

    /// Gives back a lock that was [`Hold::Lent`].
    ///
    /// # Safety
    /// The calling thread must hold it, by [`Self::enter`], and no call may be left
    /// further up its stack.
    #[inline]
    pub unsafe fn give_back(&self) {
        self.programs.store(true, Ordering::Relaxed);
    }

    /// For the owner: whether another thread waits for the lock. May be out of date
    /// when it is read.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.raw.is_wanted()
    }

    /// Lets another thread have the lock for a moment, if one waits for it; costs one load
    /// otherwise. Threads that wait get it in the order in which they came, this one last.
    ///
    /// # Safety
    /// The calling thread must hold it, by [`Self::enter`].
    #[inline]
    pub unsafe fn yield_to_others(&self) {
        let me = self.owner.load(Ordering::Relaxed);
        // SAFETY: the caller holds the lock.
        unsafe { self.raw.bump() }
        self.owner.store(me, Ordering::Relaxed);
    }

    /// Takes the lock for the program, waiting for it. `false` when this thread holds it already.
    pub fn lock(&self) -> bool {
        let me = this_thread();
        if self.owner.load(Ordering::Relaxed) == me {
            return false;
        }
        self.raw.lock(me);
        self.belongs_to_program();
        true
    }

    /// Takes the lock for the program if no thread holds it, not even this one.
    pub fn try_lock(&self) -> bool {
        let free = !self.mine() && self.raw.try_lock(this_thread());
        if free {
            self.belongs_to_program();
        }
        free
    }

    /// Releases a lock that is the program's. `false` when it is not, or not by this thread.
    pub fn unlock(&self) -> bool {
        let ours = self.is_programs();
        if ours {
            self.programs.store(false, Ordering::Relaxed);
            // SAFETY: this thread holds the lock.
            unsafe { self.leave() };
        }
        ours
    }

    /// Whether the calling thread holds the lock for the program, and no call is inside.
    pub fn is_programs(&self) -> bool {
        self.mine() && self.programs.load(Ordering::Relaxed)
    }

    /// The thread that holds the lock, for the program or for LAPI.
    #[inline]
    pub fn owner(&self) -> Option<usize> {
        Some(self.owner.load(Ordering::Relaxed)).filter(|&owner| owner != 0)
    }

    /// Whether the lock is the program's and no call is inside: may be out of date when it is read,
    /// unless by the owner.
    pub fn by_program(&self) -> bool {
        self.programs.load(Ordering::Relaxed)
    }

    /// Whether the calling thread holds the lock.
    #[inline]
    pub fn mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread()
    }

    fn belongs_to_program(&self) {
        self.owner.store(this_thread(), Ordering::Relaxed);
        self.programs.store(true, Ordering::Relaxed);
    }
}

impl Default for OwnedLock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "lock_tests.rs"]
mod tests;
