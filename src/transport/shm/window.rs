//! Where peers' memory is mapped: a range of addresses that is kept free from the beginning.
//!
//! Tasks connect when they first need each other, in no order that a program could know. Mappings
//! made one by one would move what the program itself maps later, in each task by another amount;
//! and old programs rely on equal addresses in all tasks. The range costs addresses, not memory.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is mapped for one peer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Segment,
    /// The ring from which this task receives.
    Receive,
    /// The ring into which it sends.
    Send,
}

/// The range.
pub(super) struct Window {
    base: NonNull<u8>,
    bytes: usize,
    segment: usize,
    ring: usize,
    /// What is in use, by rank and part.
    used: Box<[AtomicBool]>,
}

// SAFETY: the range belongs to this value, and what is used of it is marked by atomics.
unsafe impl Send for Window {}
// SAFETY: what is used of the range is marked by atomics.
unsafe impl Sync for Window {}

const PARTS: usize = 3;

/// The bytes of a range for `tasks` tasks.
pub(super) fn bytes(tasks: u32, segment: usize, ring: usize) -> usize {
    tasks as usize * (segment + 2 * ring)
}

impl Window {
    /// Keeps the addresses free: for each of `tasks` tasks a segment and two rings of these
    /// sizes, whole pages.
    pub(super) fn reserve(tasks: u32, segment: usize, ring: usize) -> rustix::io::Result<Arc<Self>> {
        let bytes = bytes(tasks, segment, ring);
        // SAFETY: a new mapping; nothing else is at its place.
        let base = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::empty(), reserved())? };
        let base = NonNull::new(base.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        forget_in_children(base, bytes);
        let used = (0..tasks as usize * PARTS).map(|_| AtomicBool::new(false)).collect();
        Ok(Arc::new(Self { base, bytes, segment, ring, used }))
    }

    /// The place for a part of the memory of the peer that has this rank; `None` while what was
    /// there before is still in use.
    pub(super) fn place(self: &Arc<Self>, rank: u32, part: Part) -> Option<WindowPart> {
        let index = rank as usize * PARTS + part as usize;
        if self.used.get(index)?.swap(true, Ordering::AcqRel) {
            return None;
        }
        let (offset, bytes) = match part {
            Part::Segment => (0, self.segment),
            Part::Receive => (self.segment, self.ring),
            Part::Send => (self.segment + self.ring, self.ring),
        };
        let at = rank as usize * (self.segment + 2 * self.ring) + offset;
        // SAFETY: inside of the range: the rank has a mark in `used`.
        Some(WindowPart { at: unsafe { self.base.add(at) }, bytes, index, window: self.clone() })
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the range is this value's own, and every place in it holds a reference to it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

/// A part of the range, in which memory may be mapped. It is free again when this is dropped.
pub(super) struct WindowPart {
    pub(super) at: NonNull<u8>,
    pub(super) bytes: usize,
    index: usize,
    window: Arc<Window>,
}

impl Drop for WindowPart {
    fn drop(&mut self) {
        let at = self.at.as_ptr().cast();
        // SAFETY: the place is this value's own; what was mapped in it is not used any more.
        let kept =
            unsafe { mmap_anonymous(at, self.bytes, ProtFlags::empty(), reserved() | MapFlags::FIXED) };
        if kept.is_ok() {
            forget_in_children(self.at, self.bytes);
            self.window.used[self.index].store(false, Ordering::Release);
        }
    }
}

fn reserved() -> MapFlags {
    MapFlags::PRIVATE | MapFlags::NORESERVE
}

/// A forked child has no part in the job.
fn forget_in_children(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the mapping was just made; nothing changes for this process.
    let _ = unsafe { madvise(base.as_ptr().cast(), bytes, Advice::LinuxDontFork) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::machine::page;

    #[test]
    fn a_place_is_given_once_and_again_when_it_is_free() {
        let window = Window::reserve(3, page(), 2 * page()).expect("addresses");
        let places: Vec<WindowPart> = (0..3)
            .flat_map(|task| [Part::Segment, Part::Receive, Part::Send].map(|part| (task, part)))
            .map(|(task, part)| window.place(task, part).expect("a place"))
            .collect();
        let mut at = window.base.as_ptr().addr();
        for place in &places {
            assert_eq!(place.at.as_ptr().addr(), at);
            at += place.bytes;
        }
        assert_eq!(at, window.base.as_ptr().addr() + window.bytes);
        assert!(window.place(1, Part::Send).is_none() && window.place(3, Part::Segment).is_none());
        drop(places);
        assert!(window.place(1, Part::Send).is_some());
    }
}
