//! A lock that costs no locked instruction while one thread alone takes it.
//!
//! A locked instruction waits until all that the thread has stored before is in the cache: after a
//! packet is written, until its line has come from the processor that reads it. Most programs call
//! the library in one thread. After [`QUIET`] turns of one thread in a row that thread *has the
//! bias*: it takes the lock by a store and a look, and leaves it in the same way. Another thread
//! that wants the lock ends the bias; then the lock is a [`RawLock`], until one thread has again
//! been alone for as long.
//!
//! The pattern is Dekker's, with the barrier of [`super::asymmetric_barrier`] between the threads
//! of this process. The thread with the bias raises its `inside` and then looks whether it still
//! has the bias. Another thread, which holds the raw lock, ends the bias and then looks at that
//! `inside`. With a full barrier in between on both sides, at least one of them sees what the other
//! has written: either the thread steps back and queues for the raw lock, or the other one waits
//! until it has left. Leaving is the same pattern: the thread clears `inside` and then looks for
//! the bias, and wakes the one that has ended it.
//!
//! Each thread that ever gets the bias has an `inside` of its own, for ever: one that was stopped
//! when it was about to raise it may do so, and step back, at any time later, when another thread
//! is inside by the bias.
//!
//! **Who holds the lock.** The thread with the bias, while it is inside and has seen the bias after
//! that; or the holder of the raw lock, once the bias is ended, a barrier has followed and `inside`
//! has been seen to be 0. The bias is given by the holder of the raw lock to itself, so that every
//! later holder knows of it. A waiter that gives up releases the raw lock without having had the
//! lock: the next one waits for `inside`, too.
//!
//! **Orderings.** What the lock guards passes from the thread with the bias to the next holder by
//! `inside` (Release, Acquire), and back by the raw lock, without which no thread gets the
//! bias. The bias itself needs no order but that of the barriers. `last`, `turns` and `is_raw` are
//! guarded by the lock.
//!
//! `base::models::biased_lock` has the models.

use super::asymmetric_barrier::{Light, own_fence, own_registered};
use super::lock::RawLock;
use super::sync::{AtomicU32, AtomicUsize, Deadline, Futex, Ordering};
use std::time::Duration;

/// How many turns one thread has in a row before it has the bias. To end the bias costs another
/// thread one or two microseconds, and each turn with it saves some ten nanoseconds.
const QUIET: u32 = if cfg!(loom) { 1 } else { 256 };

/// How often a thread looks whether another one has left before it sleeps.
const SPINS: u32 = if cfg!(loom) { 0 } else { 60 };

/// Loom has no barrier of the kernel: there both sides have one of their own.
const LIGHT: Light = Light::new(!cfg!(loom));

/// How many threads may ever get the bias: a program has one thread that communicates at a time.
const OWNERS: usize = 3;

/// The place of no thread.
const NO_THREAD: u32 = 0;

/// A lock that knows each thread by a number: not 0, the same in every call of the thread, and of
/// no other living thread. A thread that ends holds no lock; its number may be given again.
pub struct BiasedLock {
    /// The place of the thread with the bias among the owners. Written by the holder of the raw
    /// lock.
    bias: AtomicU32,
    /// The last place that had the bias. Guarded by the lock.
    recent: AtomicU32,
    /// The threads that have had the bias. The first place is no thread's.
    owners: [Owner; OWNERS + 1],
    /// The lock is held by the raw lock.
    is_raw: AtomicU32,
    raw: RawLock,
    /// The last thread that has left the raw lock.
    last: AtomicUsize,
    /// How many turns that thread has had in a row, after its first.
    turns: AtomicU32,
}

/// A thread that has the bias, or has had it.
struct Owner {
    /// The thread's number; 0 until there is one. Written once, with the lock held.
    thread: AtomicUsize,
    /// 1 while it is inside by the bias, or about to see that it has lost it.
    inside: Futex,
}

impl BiasedLock {
    /// A free lock.
    pub fn new() -> Self {
        Self {
            bias: AtomicU32::new(NO_THREAD),
            recent: AtomicU32::new(NO_THREAD),
            owners: std::array::from_fn(|_| Owner { thread: AtomicUsize::new(0), inside: Futex::new(0) }),
            is_raw: AtomicU32::new(0),
            raw: RawLock::new(),
            last: AtomicUsize::new(0),
            turns: AtomicU32::new(0),
        }
    }

    /// Takes the lock, waiting for it.
    pub fn lock(&self, me: usize) {
        if self.enter(me).is_none() {
            self.raw.lock();
            self.end_bias(None);
        }
    }

    /// Takes the lock, waiting no longer than that; `false` when others have kept it all the time.
    pub fn lock_within(&self, me: usize, at_most: Duration) -> bool {
        let until = Deadline::after(at_most);
        if self.enter(me).is_some() {
            return true;
        }
        if !self.raw.lock_within(at_most) {
            return false;
        }
        let taken = self.end_bias(Some(&until));
        if !taken {
            // SAFETY: this thread has taken it above.
            unsafe { self.raw.unlock() }
        }
        taken
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self, me: usize) -> bool {
        self.enter(me).is_some() || self.try_raw()
    }

    fn try_raw(&self) -> bool {
        if !self.raw.try_lock() {
            return false;
        }
        if self.bias.load(Ordering::Relaxed) != NO_THREAD {
            self.take_bias_away();
        }
        let free = self.recent().inside.load(Ordering::Acquire) == 0;
        if free {
            self.is_raw.store(1, Ordering::Relaxed);
        } else {
            // SAFETY: this thread has taken it above.
            unsafe { self.raw.unlock() }
        }
        free
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread, which is `me`, must hold it.
    #[inline]
    pub unsafe fn unlock(&self, me: usize) {
        if self.is_raw.load(Ordering::Relaxed) != 0 {
            self.unlock_raw(me);
        } else {
            self.leave();
        }
    }

    /// For the thread that holds the lock: whether another one may wait for it. May be out of date
    /// when it is read.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        if self.is_raw.load(Ordering::Relaxed) != 0 {
            self.raw.is_wanted()
        } else {
            self.bias.load(Ordering::Relaxed) == NO_THREAD
        }
    }

    /// Lets another thread have the lock for a moment, if one waits for it; costs few loads
    /// otherwise.
    ///
    /// # Safety
    /// The calling thread must hold it.
    #[inline]
    pub unsafe fn bump(&self) {
        if self.is_wanted() {
            self.pass();
        }
    }

    #[cold]
    fn pass(&self) {
        if self.is_raw.swap(0, Ordering::Relaxed) != 0 {
            // SAFETY: this thread holds it.
            unsafe { self.raw.bump() }
        } else {
            self.leave();
            self.raw.lock();
        }
        self.end_bias(None);
    }

    /// Takes the lock by the bias. `None`: this thread does not have that, and must take the lock
    /// in another way.
    #[inline(always)]
    pub fn enter(&self, me: usize) -> Option<Entry<'_>> {
        let place = self.bias.load(Ordering::Relaxed);
        let owner = &self.owners[place as usize % self.owners.len()];
        if owner.thread.load(Ordering::Relaxed) != me {
            return None;
        }
        owner.inside.store(1, Ordering::Relaxed);
        LIGHT.fence();
        if self.bias.load(Ordering::Acquire) != place {
            owner.step_out();
            return None;
        }
        Some(Entry { bias: &self.bias, owner, place })
    }

    /// The end of what [`Self::enter`] began.
    #[inline]
    fn leave(&self) {
        let place = self.recent.load(Ordering::Relaxed);
        let owner = &self.owners[place as usize % self.owners.len()];
        // SAFETY: the caller is inside by the bias.
        unsafe { Entry { bias: &self.bias, owner, place }.leave() }
    }

    /// The last thread that had the bias. For the holder of the raw lock.
    #[inline]
    fn recent(&self) -> &Owner {
        &self.owners[self.recent.load(Ordering::Relaxed) as usize % self.owners.len()]
    }

    #[inline(never)]
    fn unlock_raw(&self, me: usize) {
        if self.last.load(Ordering::Relaxed) == me {
            let turns = self.turns.load(Ordering::Relaxed) + 1;
            self.turns.store(turns, Ordering::Relaxed);
            if turns >= QUIET && !self.raw.is_wanted() && own_registered() {
                self.turns.store(0, Ordering::Relaxed);
                self.give_bias(me);
            }
        } else {
            self.last.store(me, Ordering::Relaxed);
            self.turns.store(0, Ordering::Relaxed);
        }
        self.is_raw.store(0, Ordering::Relaxed);
        // SAFETY: the caller holds the lock, and by the raw one.
        unsafe { self.raw.unlock() }
    }

    /// To the thread that holds the lock, by the raw one, if it has a place or finds one.
    #[cold]
    fn give_bias(&self, me: usize) {
        let places = 1..=OWNERS as u32;
        let known = |place: &u32| {
            let thread = self.owners[*place as usize].thread.load(Ordering::Relaxed);
            thread == me || thread == 0
        };
        let Some(place) = places.into_iter().find(known) else { return };
        self.owners[place as usize].thread.store(me, Ordering::Relaxed);
        self.recent.store(place, Ordering::Relaxed);
        self.bias.store(place, Ordering::Relaxed);
    }

    /// This thread has the raw lock: ends the bias, and waits for the thread that had it to leave.
    /// `false`: the time was over before.
    #[inline]
    fn end_bias(&self, until: Option<&Deadline>) -> bool {
        if self.bias.load(Ordering::Relaxed) != NO_THREAD {
            self.take_bias_away();
        }
        let owner = self.recent();
        let free = owner.inside.load(Ordering::Acquire) == 0 || owner.await_leaving(until);
        if free {
            self.is_raw.store(1, Ordering::Relaxed);
        }
        free
    }

    #[cold]
    fn take_bias_away(&self) {
        self.bias.store(NO_THREAD, Ordering::Relaxed);
        own_fence();
    }
}

/// A lock that was taken by the bias.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    bias: &'a AtomicU32,
    owner: &'a Owner,
    place: u32,
}

impl Entry<'_> {
    /// Whether another thread has ended the bias, and waits for the lock. May be out of date when
    /// it is read.
    #[inline(always)]
    pub fn is_ended(&self) -> bool {
        self.bias.load(Ordering::Relaxed) != self.place
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread must hold it, and must not have released it since it was entered so.
    #[inline(always)]
    pub unsafe fn leave(self) {
        self.owner.inside.store(0, Ordering::Release);
        LIGHT.fence();
        if self.is_ended() {
            self.owner.wake();
        }
    }
}

impl Owner {
    /// Another thread has ended the bias, and may wait until this one has left.
    #[cold]
    #[inline(never)]
    fn step_out(&self) {
        self.inside.store(0, Ordering::Release);
        self.wake();
    }

    /// The thread that has ended the bias may sleep until this one has left.
    #[cold]
    #[inline(never)]
    fn wake(&self) {
        self.inside.wake(1);
    }

    #[cold]
    fn await_leaving(&self, until: Option<&Deadline>) -> bool {
        for _ in 0..SPINS {
            super::pause::pause();
            if self.inside.load(Ordering::Acquire) == 0 {
                return true;
            }
        }
        while self.inside.load(Ordering::Acquire) != 0 {
            let left = match until.map(Deadline::left) {
                Some(None) => return false,
                Some(left) => left,
                None => None,
            };
            self.inside.sleep(1, left);
        }
        true
    }
}

#[cfg(test)]
impl BiasedLock {
    /// Whether this thread has the bias.
    pub(crate) fn is_biased(&self, me: usize) -> bool {
        let place = self.bias.load(Ordering::Relaxed);
        place != NO_THREAD && self.owners[place as usize].thread.load(Ordering::Relaxed) == me
    }
}

impl Default for BiasedLock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
