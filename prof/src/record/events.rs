//! The events of a trace: the task's first ones, in one piece of memory of which
//! threads take shares.
//!
//! A place whose calls are all short enters one in a period ([`super::sampling`]): filling new
//! memory with each of them would cost more than the calls do, and they would leave no room for
//! what comes later.

use super::{Count, Seen};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::calls::Call;
use crate::memory;

/// How many events a thread takes at a time.
const SHARE: usize = 64;
/// The peer of an event without a peer.
pub const NO_PEER: u32 = u32::MAX;

/// The events of this task.
pub static EVENTS: Events =
    Events { first: AtomicPtr::new(null_mut()), limit: AtomicUsize::new(0), next: AtomicUsize::new(0) };

/// A fixed number of events.
#[derive(Debug)]
pub struct Events {
    first: AtomicPtr<Event>,
    /// The number of places; a multiple of the share.
    limit: AtomicUsize,
    /// How many places threads have taken.
    next: AtomicUsize,
}

/// One call or handler. Written by one thread, the call last; all zeroes while it is not written.
#[derive(Debug)]
pub struct Event {
    /// When it began, in ticks.
    pub start: AtomicU64,
    /// How many ticks it has taken.
    pub ticks: AtomicU64,
    /// From where it was called, or which handler it is.
    pub site: AtomicUsize,
    /// How many bytes it has moved.
    pub bytes: AtomicU64,
    /// The other task, or `NO_PEER`.
    pub peer: AtomicU32,
    call: AtomicU16,
    /// The number of the thread's buffer.
    pub thread: AtomicU16,
    /// How many calls of the place it stands for: itself, and those before it that have no event.
    pub calls: AtomicU32,
}

/// The share of a thread.
#[derive(Debug, Default)]
pub struct Claim {
    at: Count,
    end: Count,
    /// How many calls the events stand for that found no place.
    pub left_out: Count,
}

impl Events {
    /// Makes room for at least `limit` events. Threads may record at the same time.
    pub fn open(&self, limit: usize) {
        if limit == 0 || self.limit.load(Ordering::Relaxed) != 0 {
            return;
        }
        let limit = limit.next_multiple_of(SHARE);
        // SAFETY: an Event consists of atomics, for which zeroes are valid.
        if let Some(events) = unsafe { memory::zeroed::<Event>(limit) } {
            self.first.store(events.as_ptr().cast_mut(), Ordering::Relaxed);
            self.limit.store(limit, Ordering::Release);
        }
    }

    /// Forgets everything; for the child of a fork.
    pub fn fork_child(&self) {
        self.limit.store(0, Ordering::Relaxed);
        self.next.store(0, Ordering::Relaxed);
    }

    /// The number of places.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Keeps an event that stands for `calls`, or counts these as left out.
    #[inline]
    pub(super) fn add(&self, claim: &Claim, thread: u16, seen: &Seen, calls: u64) {
        let events = self.room();
        if events.is_empty() {
            return;
        }
        if claim.at.get() == claim.end.get() && !self.share(claim) {
            claim.left_out.add(calls);
            return;
        }
        let event = &events[claim.at.get() as usize];
        claim.at.add(1);
        let (peer, bytes) = seen.traffic.map_or((NO_PEER, 0), |traffic| (traffic.peer, traffic.bytes));
        event.start.store(seen.start, Ordering::Relaxed);
        event.ticks.store(seen.end.saturating_sub(seen.start), Ordering::Relaxed);
        event.site.store(seen.site, Ordering::Relaxed);
        event.bytes.store(bytes, Ordering::Relaxed);
        event.peer.store(peer, Ordering::Relaxed);
        event.thread.store(thread, Ordering::Relaxed);
        event.calls.store(calls.try_into().unwrap_or(u32::MAX), Ordering::Relaxed);
        event.call.store(seen.call as u16, Ordering::Release);
    }

    /// Whether a thread can still keep events.
    #[inline]
    pub(super) fn have_room(&self, claim: &Claim) -> bool {
        let limit = self.limit.load(Ordering::Acquire);
        limit != 0 && (claim.at.get() != claim.end.get() || self.next.load(Ordering::Relaxed) < limit)
    }

    /// All that are written.
    pub fn written(&self) -> impl Iterator<Item = (Call, &Event)> {
        self.room().iter().filter_map(|event| {
            let number = event.call.load(Ordering::Acquire) as usize;
            Some((*Call::ALL.get(number.wrapping_sub(1))?, event))
        })
    }

    #[inline]
    fn room(&self) -> &[Event] {
        let limit = self.limit.load(Ordering::Acquire);
        if limit == 0 {
            return &[];
        }
        // SAFETY: `first` was set before the limit and points to `limit` events; they
        // are never freed.
        unsafe { std::slice::from_raw_parts(self.first.load(Ordering::Relaxed), limit) }
    }

    fn share(&self, claim: &Claim) -> bool {
        // Once all shares are taken, no thread writes to the shared number any more.
        if self.next.load(Ordering::Relaxed) >= self.limit() {
            return false;
        }
        let begin = self.next.fetch_add(SHARE, Ordering::Relaxed);
        if begin >= self.limit() {
            return false;
        }
        claim.at.take();
        claim.at.add(begin as u64);
        claim.end.take();
        claim.end.add((begin + SHARE) as u64);
        true
    }
}
