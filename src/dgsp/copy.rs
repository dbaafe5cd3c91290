//! The sink that copies: the loops in which a packed stream is made or taken apart.
//!
//! A block of up to 64 bytes is copied by a few loads and stores of fixed width, chosen once for a whole row of
//! blocks; lengths between the widths are covered by two that overlap. Everything is read unaligned. A block is read
//! whole before it is written, so that memory that overlaps itself gets an undefined content and nothing worse.

use super::shape::Block;
use super::walk::{Plane, Sink};

/// Copies between memory and a packed buffer: to the buffer if `GATHER`, else from it.
pub(super) struct Copier<const GATHER: bool> {
    memory: *mut u8,
    packed: *mut u8,
}

impl Copier<true> {
    /// # Safety
    /// Every run that the sink is told of must be readable, counted from `memory`; `packed` must have room for all.
    pub(super) unsafe fn gather(memory: *const u8, packed: *mut u8) -> Self {
        Self { memory: memory.cast_mut(), packed }
    }
}

impl Copier<false> {
    /// # Safety
    /// Every run that the sink is told of must be writable, counted from `memory`; `packed` must hold all of them.
    pub(super) unsafe fn scatter(memory: *mut u8, packed: *const u8) -> Self {
        Self { memory, packed: packed.cast_mut() }
    }
}

/// Copies blocks of one length. The length is known to the type or kept in it.
trait Mover: Copy {
    /// # Safety
    /// `from` must be readable and `to` writable for the length.
    unsafe fn copy(self, from: *const u8, to: *mut u8);
}

/// Exactly `N` bytes.
#[derive(Clone, Copy)]
struct Fixed<const N: usize>;

/// From `N` to 2 `N` bytes.
#[derive(Clone, Copy)]
struct Two<const N: usize>(usize);

/// From 32 to 64 bytes.
#[derive(Clone, Copy)]
struct Four(usize);

/// Any number of bytes.
#[derive(Clone, Copy)]
struct Any(usize);

impl<const N: usize> Mover for Fixed<N> {
    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller vouches for N bytes on both sides.
        unsafe { to.cast::<[u8; N]>().write_unaligned(from.cast::<[u8; N]>().read_unaligned()) }
    }
}

impl<const N: usize> Mover for Two<N> {
    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        let second = self.0 - N;
        // SAFETY: the caller vouches for N bytes and more on both sides; the second half ends with them.
        unsafe {
            let a = from.cast::<[u8; N]>().read_unaligned();
            let b = from.add(second).cast::<[u8; N]>().read_unaligned();
            to.cast::<[u8; N]>().write_unaligned(a);
            to.add(second).cast::<[u8; N]>().write_unaligned(b);
        }
    }
}

impl Mover for Four {
    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller vouches for 32 bytes and more on both sides; the last 32 end with them.
        unsafe {
            let a = from.cast::<[u8; 32]>().read_unaligned();
            let b = from.add(self.0 - 32).cast::<[u8; 32]>().read_unaligned();
            to.cast::<[u8; 32]>().write_unaligned(a);
            to.add(self.0 - 32).cast::<[u8; 32]>().write_unaligned(b);
        }
    }
}

impl Mover for Any {
    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller vouches for the length on both sides; they may overlap.
        unsafe { std::ptr::copy(from, to, self.0) }
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
            len @ 33..64 => with!(Four(len)),
            len => with!(Any(len)),
        }
    }};
}

/// Copies `len` bytes: from memory to the packed buffer if `GATHER`, else back.
///
/// # Safety
/// Both must be accessible for the length. They may overlap, to an undefined content.
#[inline]
pub(super) unsafe fn bytes<const GATHER: bool>(memory: *mut u8, packed: *mut u8, len: usize) {
    // SAFETY: the caller vouches for both sides.
    with_mover!(len, mover => unsafe { Copier::<GATHER>::one(mover, memory, packed) });
}

impl<const GATHER: bool> Copier<GATHER> {
    /// # Safety
    /// As [`Mover::copy`], for the bytes at `memory` and at `packed`.
    #[inline(always)]
    unsafe fn one(mover: impl Mover, memory: *mut u8, packed: *mut u8) {
        // SAFETY: the caller vouches for both sides.
        unsafe { if GATHER { mover.copy(memory, packed) } else { mover.copy(packed, memory) } }
    }

    /// `count` blocks: `stride` apart in memory, `step` apart in the packed buffer.
    ///
    /// # Safety
    /// As [`Mover::copy`], for each of the blocks.
    #[inline(always)]
    unsafe fn row(
        mover: impl Mover,
        mut memory: *mut u8,
        stride: isize,
        mut packed: *mut u8,
        step: usize,
        count: usize,
    ) {
        for _ in 0..count / 4 {
            // SAFETY: the caller vouches for each block.
            unsafe {
                Self::one(mover, memory, packed);
                Self::one(mover, memory.wrapping_offset(stride), packed.wrapping_add(step));
                Self::one(mover, memory.wrapping_offset(2 * stride), packed.wrapping_add(2 * step));
                Self::one(mover, memory.wrapping_offset(3 * stride), packed.wrapping_add(3 * step));
            }
            memory = memory.wrapping_offset(4 * stride);
            packed = packed.wrapping_add(4 * step);
        }
        for _ in 0..count % 4 {
            // SAFETY: the caller vouches for each block.
            unsafe { Self::one(mover, memory, packed) };
            memory = memory.wrapping_offset(stride);
            packed = packed.wrapping_add(step);
        }
    }
}

/// A run of records is moved field by field in slices that stay in the nearest cache.
const SLICE: usize = 8 << 10;
/// Records that stand further apart, and fields that are longer, gain nothing from that.
const MAX_STRIDE: usize = 512;
const MAX_FIELD: u64 = 64;

impl<const GATHER: bool> Sink for Copier<GATHER> {
    #[inline]
    fn run(&mut self, at: isize, len: usize) {
        let (memory, packed) = (self.memory.wrapping_offset(at), self.packed);
        // SAFETY: whoever made the sink vouches for the run and for its room.
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
                // SAFETY: whoever made the sink vouches for every block and for its room.
                unsafe { Self::row(mover, row, stride, to, block, count) };
            }
        });
        self.packed = packed.wrapping_add(rows * count * block);
    }

    fn indexed(&mut self, at: isize, block: usize, places: &[i64]) {
        let (memory, mut packed) = (self.memory.wrapping_offset(at), self.packed);
        with_mover!(block, mover => {
            for &place in places {
                // SAFETY: whoever made the sink vouches for every block and for its room.
                unsafe { Self::one(mover, memory.wrapping_offset(place as isize), packed) };
                packed = packed.wrapping_add(block);
            }
        });
        self.packed = packed;
    }

    fn records(&mut self, at: isize, list: &[Block], count: usize, stride: isize) {
        let size = list[list.len() - 1].start as usize;
        let short = list.windows(2).all(|pair| pair[1].start - pair[0].start <= MAX_FIELD);
        let slice = if short && stride.unsigned_abs() <= MAX_STRIDE {
            SLICE / stride.unsigned_abs().max(size).max(1)
        } else {
            1
        };
        let mut memory = self.memory.wrapping_offset(at);
        let mut left = count;
        while left != 0 {
            let n = left.min(slice);
            for pair in list.windows(2) {
                let from = memory.wrapping_offset(pair[0].offset as isize);
                let to = self.packed.wrapping_add(pair[0].start as usize);
                let len = (pair[1].start - pair[0].start) as usize;
                // SAFETY: whoever made the sink vouches for every field and for its room.
                with_mover!(len, mover => unsafe { Self::row(mover, from, stride, to, size, n) });
            }
            memory = memory.wrapping_offset(stride.wrapping_mul(n as isize));
            self.packed = self.packed.wrapping_add(n * size);
            left -= n;
        }
    }
}
