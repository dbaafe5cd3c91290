//! The memory that the tasks aim at: laid out alike in all of them, so that an address of another
//! task is that of its memory and an offset. It is read and written through pointers alone, because
//! other tasks write to it.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use openlapi::abi::lapi_cntr_t;

use crate::lapi_perf::error::{Failure, Result};

/// Memory begins and parts of it lie on pages.
const PAGE: u64 = 4096;
/// A counter has lines of its own, as in a program that minds its speed.
const LINES: u64 = 256;

/// The counters of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lapi_perf) enum Counter {
    /// Incremented by what other tasks send.
    Arrived,
    /// Incremented by replies.
    Replied,
    /// Incremented by this task's own operations.
    Own,
}

/// The words of LAPI_Rmw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lapi_perf) enum Word {
    /// What the operation changes.
    Variable,
    /// What it takes: two values of up to 8 bytes.
    Input,
    /// What was there before.
    Before,
}

const WORDS: u64 = 3 * LINES;
const HEADER: u64 = WORDS + 3 * LINES;

/// The lengths of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lapi_perf) struct Sizes {
    /// A user header.
    pub(in crate::lapi_perf) header: u64,
    /// What one operation reaches over, gaps included.
    pub(in crate::lapi_perf) extent: u64,
    /// How many origins have data in one target.
    pub(in crate::lapi_perf) slots: u64,
}

impl Sizes {
    pub(super) fn counter(counter: Counter) -> u64 {
        counter as u64 * LINES
    }

    pub(super) fn word(word: Word) -> u64 {
        WORDS + word as u64 * LINES
    }

    pub(super) fn header() -> u64 {
        HEADER
    }

    /// Where the data of an origin arrives.
    pub(super) fn data(&self, slot: u64) -> u64 {
        (HEADER + self.header).next_multiple_of(PAGE) + slot * self.slot()
    }

    /// What is sent.
    pub(super) fn source(&self) -> u64 {
        self.data(self.slots)
    }

    fn slot(&self) -> u64 {
        self.extent.next_multiple_of(PAGE)
    }

    fn total(&self) -> Option<u64> {
        // The parts are far below the end of the numbers: only the slots may multiply them.
        self.slot().checked_mul(self.slots + 1)?.checked_add(self.data(0))
    }
}

/// The memory of this task.
pub(in crate::lapi_perf) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    pub(super) sizes: Sizes,
}

impl Memory {
    pub(super) fn new(sizes: Sizes) -> Result<Self> {
        let total = sizes.total().and_then(|total| usize::try_from(total).ok());
        let layout = total.and_then(|total| Layout::from_size_align(total, PAGE as usize).ok());
        let much = || {
            Failure::failed(format!(
                "no memory for messages that take {} bytes, {} of them at a time: give smaller sizes (-s)",
                sizes.extent,
                sizes.slots + 1
            ))
        };
        let layout = layout.ok_or_else(much)?;
        // SAFETY: the layout is not empty, as the counters belong to it.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(much)?;
        let memory = Self { start, layout, sizes };
        // Every page is written, so that the first operation does not wait for the kernel.
        for page in (0..layout.size()).step_by(PAGE as usize) {
            // SAFETY: within the allocation.
            unsafe { memory.start.as_ptr().add(page).write_volatile(0) };
        }
        Ok(memory)
    }

    /// The address of an offset.
    pub(super) fn at(&self, offset: u64) -> *mut u8 {
        assert!(offset < self.layout.size() as u64, "an offset behind the end");
        // SAFETY: within the allocation, as was just checked.
        unsafe { self.start.as_ptr().add(offset as usize) }
    }

    pub(super) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    pub(super) fn counter(&self, counter: Counter) -> *mut lapi_cntr_t {
        self.at(Sizes::counter(counter)).cast()
    }

    /// Reads one of LAPI_Rmw's words.
    pub(in crate::lapi_perf) fn word(&self, word: Word) -> u64 {
        // SAFETY: the lines of each word are within the allocation, and aligned.
        unsafe { self.at(Sizes::word(word)).cast::<u64>().read_volatile() }
    }

    /// Writes one of LAPI_Rmw's words, and the one behind it.
    pub(in crate::lapi_perf) fn set_word(&self, word: Word, values: [u64; 2]) {
        // SAFETY: as for `word`; the lines have room for two.
        unsafe { self.at(Sizes::word(word)).cast::<[u64; 2]>().write_volatile(values) }
    }

    /// Reads the last 8 of the first `size` bytes where data of the first origin arrives.
    #[inline]
    pub(super) fn last_word(&self, size: u64) -> u64 {
        // SAFETY: within the slot, and aligned.
        unsafe { self.last(self.sizes.data(0), size).read_volatile() }
    }

    /// Writes the last 8 of the first `size` bytes of what is sent.
    #[inline]
    pub(in crate::lapi_perf) fn set_last_word(&self, size: u64, number: u64) {
        // SAFETY: within the source, and aligned.
        unsafe { self.last(self.sizes.source(), size).write_volatile(number) }
    }

    #[inline]
    fn last(&self, start: u64, size: u64) -> *mut u64 {
        assert!(size.is_multiple_of(8) && (8..=self.sizes.extent).contains(&size), "no place for a number");
        self.at(start + size - 8).cast()
    }

    /// Writes what is sent: the byte that `byte` gives for each offset below `length`.
    pub(in crate::lapi_perf) fn fill_source(&self, length: u64, byte: impl Fn(u64) -> u8) {
        self.fill(self.sizes.source(), length, byte);
    }

    /// Writes where data of an origin arrives.
    pub(in crate::lapi_perf) fn fill_data(&self, slot: u64, length: u64, byte: impl Fn(u64) -> u8) {
        self.fill(self.sizes.data(slot), length, byte);
    }

    fn fill(&self, offset: u64, length: u64, byte: impl Fn(u64) -> u8) {
        assert!(length <= self.sizes.extent, "more than a slot");
        let start = self.at(offset);
        for at in 0..length {
            // SAFETY: each part that is filled has `extent` bytes.
            unsafe { start.add(at as usize).write_volatile(byte(at)) };
        }
    }

    /// The first offset, below `length`, where the data of an origin differs from what `byte`
    /// gives, with both bytes.
    pub(in crate::lapi_perf) fn difference(
        &self,
        slot: u64,
        length: u64,
        byte: impl Fn(u64) -> u8,
    ) -> Option<(u64, u8, u8)> {
        assert!(length <= self.sizes.extent, "more than a slot");
        let start = self.at(self.sizes.data(slot));
        (0..length).find_map(|at| {
            // SAFETY: a slot has `extent` bytes.
            let found = unsafe { start.add(at as usize).read_volatile() };
            (found != byte(at)).then(|| (at, found, byte(at)))
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
