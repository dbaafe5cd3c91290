//! Arrays of records of a few fields, moved record by record.
//!
//! A field is cut into pieces of 1, 2, 4, 8 and 16 bytes. There is one loop for every three lengths
//! of pieces, so that a record of up to three pieces is moved as a loop that was compiled for it
//! would move it; more pieces take several passes over a part of the array that stays in the
//! nearest cache.

use super::shape::Block;
use crate::memory::blocks::{Fixed, Mover};

const WIDTHS: [usize; 6] = [0, 1, 2, 4, 8, 16];
const MAX_PIECES: usize = 9;
/// How much of the array several passes go over.
const PART: usize = 12 << 10;

#[derive(Clone, Copy, Default)]
struct Piece {
    /// Where it is in the record, and in the packed record.
    offset: isize,
    start: usize,
    /// Index of its length in `WIDTHS`.
    width: usize,
}

/// Moves `count` times three pieces.
type Loop = unsafe fn([Piece; 3], *mut u8, isize, *mut u8, usize, usize);

/// Moves `count` records whose fields are `list` (its last entry is the position after them),
/// `stride` apart in memory, without gaps in the packed buffer: to the buffer if `GATHER`, else
/// from it. Does nothing and returns false if the fields take too many pieces.
///
/// # Safety
/// Every field must be accessible in memory, and the packed records in the buffer.
pub(super) unsafe fn copy<const GATHER: bool>(
    list: &[Block],
    mut memory: *mut u8,
    stride: isize,
    mut packed: *mut u8,
    count: usize,
) -> bool {
    let mut pieces = [Piece::default(); MAX_PIECES];
    let Some(used) = cut(list, &mut pieces) else { return false };
    let size = list[list.len() - 1].start as usize;
    let part = if used <= 3 { count } else { (PART / stride.unsigned_abs().max(size)).max(1) };
    let mut left = count;
    while left != 0 {
        let n = left.min(part);
        for three in pieces.chunks_exact(3).take(used.div_ceil(3)) {
            let three = [three[0], three[1], three[2]];
            let [a, b, c] = three.map(|piece| piece.width);
            // SAFETY: the caller vouches for the fields, and the pieces are parts of them.
            unsafe { Loops::<GATHER>::ALL[a][b][c](three, memory, stride, packed, size, n) };
        }
        memory = memory.wrapping_offset(stride.wrapping_mul(n as isize));
        packed = packed.wrapping_add(n * size);
        left -= n;
    }
    true
}

/// Cuts fields into pieces; returns how many.
fn cut(list: &[Block], pieces: &mut [Piece; MAX_PIECES]) -> Option<usize> {
    let mut used = 0;
    for field in list.windows(2) {
        let (mut at, mut len) = (0, (field[1].start - field[0].start) as usize);
        while len != 0 {
            let width = WIDTHS.iter().rposition(|&width| width <= len)?;
            let start = field[0].start as usize + at;
            let offset = (field[0].offset as isize).wrapping_add(at as isize);
            *pieces.get_mut(used)? = Piece { offset, start, width };
            used += 1;
            at += WIDTHS[width];
            len -= WIDTHS[width];
        }
    }
    Some(used)
}

struct Loops<const GATHER: bool>;

impl<const GATHER: bool> Loops<GATHER> {
    const ALL: [[[Loop; 6]; 6]; 6] = [
        Self::first::<{ WIDTHS[0] }>(),
        Self::first::<{ WIDTHS[1] }>(),
        Self::first::<{ WIDTHS[2] }>(),
        Self::first::<{ WIDTHS[3] }>(),
        Self::first::<{ WIDTHS[4] }>(),
        Self::first::<{ WIDTHS[5] }>(),
    ];

    const fn first<const A: usize>() -> [[Loop; 6]; 6] {
        [
            Self::second::<A, { WIDTHS[0] }>(),
            Self::second::<A, { WIDTHS[1] }>(),
            Self::second::<A, { WIDTHS[2] }>(),
            Self::second::<A, { WIDTHS[3] }>(),
            Self::second::<A, { WIDTHS[4] }>(),
            Self::second::<A, { WIDTHS[5] }>(),
        ]
    }

    const fn second<const A: usize, const B: usize>() -> [Loop; 6] {
        [
            Self::three::<A, B, { WIDTHS[0] }>,
            Self::three::<A, B, { WIDTHS[1] }>,
            Self::three::<A, B, { WIDTHS[2] }>,
            Self::three::<A, B, { WIDTHS[3] }>,
            Self::three::<A, B, { WIDTHS[4] }>,
            Self::three::<A, B, { WIDTHS[5] }>,
        ]
    }

    /// # Safety
    /// The three pieces must be accessible on both sides, in each of the records.
    unsafe fn three<const A: usize, const B: usize, const C: usize>(
        pieces: [Piece; 3],
        memory: *mut u8,
        stride: isize,
        packed: *mut u8,
        size: usize,
        count: usize,
    ) {
        let (mut memory, mut packed) = (memory, packed);
        // Ended by the address, whose step is not known to the compiler: it would unroll a loop
        // that it can count, and there are many of these loops.
        let end = packed.wrapping_add(count * size);
        while packed != end {
            let [from, to] = [
                pieces.map(|piece| memory.wrapping_offset(piece.offset)),
                pieces.map(|piece| packed.wrapping_add(piece.start)),
            ];
            // SAFETY: the caller vouches for the pieces.
            unsafe {
                Fixed::<A>.between::<GATHER>(from[0], to[0]);
                Fixed::<B>.between::<GATHER>(from[1], to[1]);
                Fixed::<C>.between::<GATHER>(from[2], to[2]);
            }
            memory = memory.wrapping_offset(stride);
            packed = packed.wrapping_add(size);
        }
    }
}
