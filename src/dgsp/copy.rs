//! The sink that copies: the loops in which a packed stream is made or taken apart.
//!
//! A block of up to 64 bytes is copied by a few loads and stores of fixed width, chosen once for a
//! whole row of blocks; lengths between the widths are covered by two that overlap. Everything is
//! read and written unaligned. What is copied may overlap what is written: then its content is
//! undefined, and nothing worse happens.

use super::records;
use super::shape::Block;
use super::walk::{Plane, Sink};
use crate::memory::blocks::{Any, Fixed, Mover, Two};

/// Copies between memory and a packed buffer: to the buffer if `GATHER`, else from it.
pub(super) struct Copier<const GATHER: bool> {
    memory: *mut u8,
    packed: *mut u8,
}

impl Copier<true> {
    /// # Safety
    /// Every run that the sink gets must be readable, counted from `memory`; `packed` must
    /// have room for all.
    pub(super) unsafe fn gather(memory: *const u8, packed: *mut u8) -> Self {
        Self { memory: memory.cast_mut(), packed }
    }
}

impl Copier<false> {
    /// # Safety
    /// Every run that the sink gets must be writable, counted from `memory`; `packed` must
    /// hold all of them.
    pub(super) unsafe fn scatter(memory: *mut u8, packed: *const u8) -> Self {
        Self { memory, packed: packed.cast_mut() }
    }
}

/// Evaluates an expression with the mover for a length.
macro_rules! with_mover {
    ($len:expr, $mover:ident => $do:expr) => {{
        macro_rules! with {
            ($value:expr) => {{
                let $mover = $value;
                $do
            }};
        }
        match $len {
            0 => {}
            1 => with!(Fixed::<1>),
            2 => with!(Fixed::<2>),
            4 => with!(Fixed::<4>),
            8 => with!(Fixed::<8>),
            12 => with!(Fixed::<12>),
            16 => with!(Fixed::<16>),
            24 => with!(Fixed::<24>),
            32 => with!(Fixed::<32>),
            64 => with!(Fixed::<64>),
            len @ 3 => with!(Two::<2>(len)),
            len @ 5..8 => with!(Two::<4>(len)),
            len @ 9..16 => with!(Two::<8>(len)),
            len @ 17..32 => with!(Two::<16>(len)),
            len @ 33..64 => with!(Two::<32>(len)),
            len => with!(Any(len)),
        }
    }};
}

/// Copies `len` bytes: from memory to the packed buffer if `GATHER`, else back. For lengths that
/// come in no order: a loop with one exit is foreseen by the processor more often than a choice
/// among many methods.
///
/// # Safety
/// Both must be accessible for the length. They may overlap, to an undefined content.
#[inline]
pub(super) unsafe fn bytes<const GATHER: bool>(memory: *mut u8, packed: *mut u8, len: usize) {
    // SAFETY: the caller vouches for both sides; every mover is given a length that it can take,
    // and the last 16 bytes end with them.
    unsafe {
        match len {
            257.. => Any(len).between::<GATHER>(memory, packed),
            16.. => {
                let last = len - 16;
                let mut at = 0;
                while at < last {
                    Fixed::<16>.between::<GATHER>(memory.add(at), packed.add(at));
                    at += 16;
                }
                Fixed::<16>.between::<GATHER>(memory.add(last), packed.add(last));
            }
            8.. => Two::<8>(len).between::<GATHER>(memory, packed),
            4.. => Two::<4>(len).between::<GATHER>(memory, packed),
            2.. => Two::<2>(len).between::<GATHER>(memory, packed),
            1 => Fixed::<1>.between::<GATHER>(memory, packed),
            0 => {}
        }
    }
}

impl<const GATHER: bool> Copier<GATHER> {
    /// `count` blocks of `block` bytes, `stride` apart in memory.
    ///
    /// # Safety
    /// The conditions of [`Mover::copy`] hold for each of the blocks.
    #[inline(always)]
    unsafe fn row<M: Mover>(
        mover: M,
        mut memory: *mut u8,
        stride: isize,
        mut packed: *mut u8,
        block: usize,
        count: usize,
    ) {
        if M::PAIRED && stride == 2 * M::LEN as isize {
            // Every other element: with a stride that it knows, the compiler moves several at once.
            for i in 0..count {
                let (memory, packed) = (memory.wrapping_add(2 * M::LEN * i), packed.wrapping_add(M::LEN * i));
                // SAFETY: the caller vouches for each block.
                unsafe { mover.between::<GATHER>(memory, packed) };
            }
            return;
        }
        let fours = if M::LEN == usize::MAX { 0 } else { count / 4 };
        let [two, three, four] = [2, 3, 4].map(|n| stride.wrapping_mul(n));
        for _ in 0..fours {
            // SAFETY: the caller vouches for each block.
            unsafe {
                mover.between::<GATHER>(memory, packed);
                mover.between::<GATHER>(memory.wrapping_offset(stride), packed.wrapping_add(block));
                mover.between::<GATHER>(memory.wrapping_offset(two), packed.wrapping_add(2 * block));
                mover.between::<GATHER>(memory.wrapping_offset(three), packed.wrapping_add(3 * block));
            }
            memory = memory.wrapping_offset(four);
            packed = packed.wrapping_add(4 * block);
        }
        for _ in 4 * fours..count {
            // SAFETY: the caller vouches for each block.
            unsafe { mover.between::<GATHER>(memory, packed) };
            memory = memory.wrapping_offset(stride);
            packed = packed.wrapping_add(block);
        }
    }
}

impl<const GATHER: bool> Sink for Copier<GATHER> {
    #[inline]
    fn run(&mut self, at: isize, len: usize) {
        let (memory, packed) = (self.memory.wrapping_offset(at), self.packed);
        // SAFETY: the maker of the sink vouches for the run and for its room.
        unsafe { bytes::<GATHER>(memory, packed, len) };
        self.packed = packed.wrapping_add(len);
    }

    fn plane(&mut self, at: isize, plane: Plane) {
        let Plane { block, rows, row_stride, count, stride } = plane;
        let (memory, packed) = (self.memory.wrapping_offset(at), self.packed);
        with_mover!(block, mover => {
            for r in 0..rows {
                let row = memory.wrapping_offset(row_stride.wrapping_mul(r as isize));
                let to = packed.wrapping_add(r * count * block);
                // SAFETY: the maker of the sink vouches for every block and for its room.
                unsafe { Self::row(mover, row, stride, to, block, count) };
            }
        });
        self.packed = packed.wrapping_add(rows * count * block);
    }

    fn indexed(&mut self, at: isize, block: usize, places: &[i64]) {
        let (memory, mut packed) = (self.memory.wrapping_offset(at), self.packed);
        with_mover!(block, mover => {
            for &place in places {
                // SAFETY: the maker of the sink vouches for every block and for its room.
                unsafe { mover.between::<GATHER>(memory.wrapping_offset(place as isize), packed) };
                packed = packed.wrapping_add(block);
            }
        });
        self.packed = packed;
    }

    fn list(&mut self, at: isize, list: &[Block]) {
        let (memory, mut packed) = (self.memory.wrapping_offset(at), self.packed);
        for pair in list.windows(2) {
            let len = (pair[1].start - pair[0].start) as usize;
            // SAFETY: the maker of the sink vouches for every run and for its room.
            unsafe { bytes::<GATHER>(memory.wrapping_offset(pair[0].offset as isize), packed, len) };
            packed = packed.wrapping_add(len);
        }
        self.packed = packed;
    }

    fn records(&mut self, at: isize, list: &[Block], count: usize, stride: isize) {
        let size = list[list.len() - 1].start as usize;
        // SAFETY: the maker of the sink vouches for every field and for its room.
        if unsafe {
            records::copy::<GATHER>(list, self.memory.wrapping_offset(at), stride, self.packed, count)
        } {
            self.packed = self.packed.wrapping_add(count * size);
        } else {
            for i in 0..count {
                self.list(at.wrapping_add(stride.wrapping_mul(i as isize)), list);
            }
        }
    }
}
