//! What a ring has besides under loom: atomics for the words of its slots, and cells that watch
//! over its bytes.
//!
//! The ring itself is the one that runs in shared memory. Only what loom must know of is separate:
//! its atomics are objects with a history and cannot lie in zeroed memory.

use super::{Consumer, Geometry, LINE, Packet, Producer, SLOT, Shared};
use crate::base::line::Line;
use crate::base::sync::{AtomicU32, AtomicU64};
use loom::cell::UnsafeCell;
use std::ptr::NonNull;

/// Words and watchers of the slots, then those of the second area.
pub(super) struct Watched {
    slots: usize,
    words: Vec<AtomicU64>,
    /// One for each line, of the slots without their words and of the second area.
    bytes: Vec<UnsafeCell<()>>,
}

impl Watched {
    fn new(geometry: Geometry) -> Self {
        let cells = (geometry.slots * SLOT + geometry.data) / LINE;
        Self {
            slots: geometry.slots,
            words: (0..geometry.slots).map(|_| AtomicU64::new(0)).collect(),
            bytes: (0..cells).map(|_| UnsafeCell::new(())).collect(),
        }
    }

    /// The word of the slot that begins `offset` bytes after the first one.
    pub(super) fn word(&self, offset: usize) -> &AtomicU64 {
        assert_eq!(offset % SLOT, 0);
        &self.words[offset / SLOT]
    }

    /// The cells of a range of bytes. None of it is the word of a slot.
    fn cells(&self, offset: usize, len: usize) -> &[UnsafeCell<()>] {
        const { assert!(SLOT.is_multiple_of(LINE)) };
        assert!(offset >= self.slots * SLOT || (offset % SLOT >= 8 && offset % SLOT + len <= SLOT));
        if len == 0 { &[] } else { &self.bytes[offset / LINE..(offset + len).div_ceil(LINE)] }
    }

    /// These bytes are being written: loom fails when another thread may be using them.
    pub(super) fn write(&self, offset: usize, len: usize) {
        self.cells(offset, len).iter().for_each(|cell| cell.with_mut(|_| ()));
    }

    /// These bytes are being read: loom fails when another thread may be writing them.
    fn read(&self, offset: usize, len: usize) {
        self.cells(offset, len).iter().for_each(|cell| cell.with(|_| ()));
    }
}

impl Consumer {
    /// Copies a packet out, under loom's eyes.
    pub(in crate::base) fn read(&self, packet: &Packet) -> (Vec<u8>, Vec<u8>) {
        let bytes = |at: NonNull<u8>, len: usize| {
            self.ring.shared().watched.read(self.ring.offset(at.as_ptr()), len);
            // SAFETY: the packet is there until it is released, and `peek` has checked its lengths.
            unsafe { std::slice::from_raw_parts(at.as_ptr(), len) }.to_vec()
        };
        (bytes(packet.head, packet.head_len), bytes(packet.body, packet.body_len))
    }
}

/// The memory of a ring in a model. It must outlive the ring's ends.
pub(in crate::base) struct Region {
    at: NonNull<u8>,
    layout: std::alloc::Layout,
}

// SAFETY: it is only kept; only the ring's ends use the memory.
unsafe impl Send for Region {}
// SAFETY: the address is only kept; the ends of the ring order what they do there.
unsafe impl Sync for Region {}

impl Region {
    /// An empty ring: `Shared` in a state that is fresh, and zeroes.
    pub(in crate::base) fn new(geometry: Geometry) -> Self {
        let layout = std::alloc::Layout::from_size_align(geometry.bytes(), 4096).expect("a layout");
        // SAFETY: the size is not 0.
        let at = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).expect("memory");
        let shared = Shared {
            consumed: Line::new(AtomicU64::new(0)),
            wants_room: Line::new(AtomicU32::new(0)),
            unpolled: Line::new(AtomicU32::new(0)),
            watched: Watched::new(geometry),
        };
        // SAFETY: aligned and long enough for it, and no thread reads it yet.
        unsafe { at.cast::<Shared>().write(shared) };
        Self { at, layout }
    }

    /// Both ends. To be called once.
    pub(in crate::base) fn ends(&self, geometry: Geometry) -> (Producer, Consumer) {
        // SAFETY: aligned, fresh and long enough; each model makes one pair and drops it
        // before the memory.
        unsafe { (Producer::new(self.at, geometry), Consumer::new(self.at, geometry)) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: written by `new`, allocated with this layout, and used no more.
        unsafe {
            self.at.cast::<Shared>().drop_in_place();
            std::alloc::dealloc(self.at.as_ptr(), self.layout);
        }
    }
}
