//! The header buffer: one piece of memory with a slot for the header of each message under way.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Slots of a header buffer: messages that can be under way at a time.
pub const SLOTS: usize = 256;
/// Bytes of a slot: the longest header.
pub const LENGTH: usize = 512;

/// By how much an operation that has ended has raised the counter of its slot.
const ENDED: i32 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    /// A message with this key uses it.
    UnderWay(u64),
    /// The message with this key does not use it any more.
    Over(u64),
}

struct Inner {
    states: Vec<State>,
    /// The one released last is used next.
    free: Vec<usize>,
    /// The fewest that were free since the last question.
    fewest: usize,
}

/// The slots of one endpoint, or of several that share them.
pub struct Slots {
    inner: Mutex<Inner>,
    memory: NonNull<[u8; LENGTH]>,
    /// Raised by the operations that use the slots.
    counters: Box<[AtomicI32]>,
}

// SAFETY: the memory of a slot is written by the one that has taken it, under the lock or while it
// alone knows its number; see `take`.
unsafe impl Send for Slots {}
// SAFETY: the same.
unsafe impl Sync for Slots {}

impl Slots {
    /// All slots, free.
    pub fn new() -> Self {
        let memory: Box<[[u8; LENGTH]]> = vec![[0; LENGTH]; SLOTS].into_boxed_slice();
        let memory = NonNull::from(Box::leak(memory)).cast();
        let inner =
            Inner { states: vec![State::Free; SLOTS], free: (0..SLOTS).rev().collect(), fewest: SLOTS };
        let counters = (0..SLOTS).map(|_| AtomicI32::new(0)).collect();
        Self { inner: Mutex::new(inner), memory, counters }
    }

    /// Takes a free slot for a message with this key, and copies the header into it. Returns its
    /// number, its memory and its counter; `None`: all are in use.
    pub fn take(&self, key: u64, header: &[u8]) -> Option<(usize, *const u8, *const AtomicI32)> {
        assert!(header.len() <= LENGTH, "the header was checked");
        let mut inner = self.inner();
        let slot = inner.free.pop()?;
        inner.fewest = inner.fewest.min(inner.free.len());
        inner.states[slot] = State::UnderWay(key);
        self.counters[slot].store(0, Ordering::Release);
        // SAFETY: inside the memory, and no other operation uses it: the slot was free.
        let at = unsafe {
            let at = self.memory.add(slot).cast::<u8>();
            at.copy_from_nonoverlapping(NonNull::from(header).cast(), header.len());
            at
        };
        Some((slot, at.as_ptr(), &raw const self.counters[slot]))
    }

    /// Whether the operation that uses the slot has ended.
    pub fn has_ended(&self, slot: usize) -> bool {
        self.counters[slot].load(Ordering::Acquire) >= ENDED
    }

    /// The operation that uses the slot has ended, by itself or with its connection.
    pub fn end(&self, slot: usize) {
        let mut inner = self.inner();
        if let State::UnderWay(key) = inner.states[slot] {
            inner.states[slot] = State::Over(key);
        }
    }

    /// The key of the message that uses the slot.
    pub fn key(&self, slot: usize) -> Option<u64> {
        match self.inner().states[slot] {
            State::Free => None,
            State::UnderWay(key) | State::Over(key) => Some(key),
        }
    }

    /// Frees a slot whose operation has ended, and returns its key; `None`: it is free, its
    /// operation is under way, or there is no such slot.
    pub fn release(&self, slot: u64) -> Option<u64> {
        let slot = usize::try_from(slot).ok()?;
        let mut inner = self.inner();
        let State::Over(key) = *inner.states.get(slot)? else { return None };
        inner.states[slot] = State::Free;
        inner.free.push(slot);
        Some(key)
    }

    /// The fewest slots that were free since the last call.
    pub fn fewest(&self) -> usize {
        let mut inner = self.inner();
        let now = inner.free.len();
        std::mem::replace(&mut inner.fewest, now)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let memory = NonNull::slice_from_raw_parts(self.memory, SLOTS);
        // SAFETY: the box of `new`; every connection with an operation under way has a reference
        // to this.
        drop(unsafe { Box::from_raw(memory.as_ptr()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_in_use_until_it_is_released() {
        let slots = Slots::new();
        let taken: Vec<usize> =
            (0..SLOTS as u64).map(|key| slots.take(key, b"h").expect("a slot").0).collect();
        assert!(slots.take(7, b"").is_none());
        assert_eq!((slots.fewest(), slots.fewest()), (0, 0));
        assert_eq!(slots.release(taken[3] as u64), None, "its operation is under way");
        slots.counters[taken[3]].store(ENDED, Ordering::Release);
        assert!(slots.has_ended(taken[3]) && !slots.has_ended(taken[4]));
        slots.end(taken[3]);
        assert_eq!((slots.release(taken[3] as u64), slots.release(taken[3] as u64)), (Some(3), None));
        assert_eq!(slots.release(SLOTS as u64), None);
        assert_eq!((slots.fewest(), slots.fewest()), (0, 1));
        let (slot, at, _) = slots.take(9, b"again").expect("a slot");
        assert_eq!((slot, slots.key(slot)), (taken[3], Some(9)));
        // SAFETY: the slot's memory.
        assert_eq!(unsafe { std::slice::from_raw_parts(at, 5) }, b"again");
    }
}
