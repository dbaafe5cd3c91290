//! Where the bytes of one message lie in memory: one set of operations for every layout.

use super::Program;
use super::copy::{self, Copier};
use super::merge::Merger;
use super::selected::Selected;
use super::shape::Dim;
use super::vector::{Template, Vector};
use super::walk::{Sink, grid};
use crate::abi::{LAPI_ERR_DGSP_CTL, LAPI_ERR_DGSP_OTHER, ddm_func_p};
use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where the bytes of one message lie. A position is the number of a byte in the message.
#[derive(Debug)]
pub struct Layout(LayoutKind);

#[derive(Debug)]
enum LayoutKind {
    Contiguous { at: *mut u8, len: u64 },
    Pieces(Pieces),
    Strided { base: *mut u8, block: usize, dim: Dim, len: u64 },
    Program { program: Arc<Program>, base: *mut u8, len: u64, function: ddm_func_p },
    Selected { whole: Arc<Layout>, ranges: Selected },
}

// SAFETY: the pointers are only followed by the unsafe methods, whose callers vouch for what is
// there and for what else uses it.
unsafe impl Send for Layout {}
// SAFETY: shared, the pointers are not followed either but by these methods.
unsafe impl Sync for Layout {}

/// A program that gathers has no CONTROL.
pub(super) fn check_gather(program: &Program) -> Result<()> {
    if program.has_control() {
        return Err(Error::new(LAPI_ERR_DGSP_CTL, "a CONTROL in a program that gathers"));
    }
    Ok(())
}

/// A program that moves no bytes cannot move some.
pub(super) fn check_bytes(program: &Program, bytes: u64) -> Result<()> {
    if program.size() == 0 && bytes != 0 {
        return Err(Error::new(LAPI_ERR_DGSP_OTHER, format!("{bytes} bytes by a program of none")));
    }
    Ok(())
}

/// A list of pieces, none of them empty, and none touching the next.
#[derive(Debug)]
struct Pieces {
    /// The last entry is the position after the last piece.
    list: Box<[Piece]>,
    /// The piece at which the last operation ended: most operations continue where the
    /// one before ended.
    hint: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    at: *mut u8,
    /// The piece's position in the layout.
    start: u64,
}

impl Layout {
    /// `len` contiguous bytes.
    pub fn contiguous(at: *mut u8, len: u64) -> Self {
        Self(LayoutKind::Contiguous { at, len })
    }

    /// `count` blocks of `block` bytes, `stride` apart.
    pub fn strided(base: *mut u8, block: u64, stride: u64, count: u64) -> Self {
        let len = block.saturating_mul(count);
        match usize::try_from(block) {
            Ok(size) if block != stride && count > 1 && block != 0 => {
                let dim = Dim { count, stride: stride as i64, size: block };
                Self(LayoutKind::Strided { base, block: size, dim, len })
            }
            _ => Self::contiguous(base, len),
        }
    }

    /// Pieces one after the other: address and length in bytes. Empty ones may have any address.
    /// Beyond 2^64 - 1 bytes the rest is left out.
    pub fn pieces(pieces: impl IntoIterator<Item = (*mut u8, u64)>) -> Self {
        let pieces = pieces.into_iter();
        let mut list: Vec<Piece> = Vec::with_capacity(pieces.size_hint().0 + 1);
        let mut total = 0u64;
        for (at, len) in pieces {
            let Some(end) = total.checked_add(len) else { break };
            let touches =
                list.last().is_some_and(|last| last.at.wrapping_add((total - last.start) as usize) == at);
            if len != 0 && !touches {
                list.push(Piece { at, start: total });
            }
            total = end;
        }
        match list[..] {
            [] => Self::contiguous(std::ptr::null_mut(), 0),
            [Piece { at, .. }] => Self::contiguous(at, total),
            _ => {
                list.push(Piece { at: std::ptr::null_mut(), start: total });
                Self(LayoutKind::Pieces(Pieces { list: list.into(), hint: AtomicUsize::new(0) }))
            }
        }
    }

    /// Ranges of another layout, one after the other, each given by its first byte and its length.
    /// What lies behind the end of `whole` is left out.
    pub fn selected(whole: Arc<Self>, ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let ranges = Selected::new(whole.len(), ranges);
        match (ranges.only(), whole.as_contiguous()) {
            _ if ranges.len() == 0 => Self::contiguous(std::ptr::null_mut(), 0),
            (Some(from), Some((at, _))) => Self::contiguous(at.wrapping_add(from as usize), ranges.len()),
            _ => Self(LayoutKind::Selected { whole, ranges }),
        }
    }

    /// The layout of a vector; its arrays are not needed afterwards. The addresses of a vector at
    /// another task may be longer than pointers, and are cut: there only the description counts.
    pub fn vector(vector: &Vector) -> Self {
        let pointer = |at: u64| std::ptr::with_exposed_provenance_mut(at as usize);
        match vector.template() {
            Some(Template { base, block, stride }) => {
                Self::strided(pointer(base), block, stride, vector.count() as u64)
            }
            None => Self::pieces(vector.pieces().map(|(at, len)| (pointer(at), len))),
        }
    }

    /// The first `bytes` bytes of a program's stream, to gather from.
    ///
    /// # Errors
    /// - LAPI_ERR_DGSP_CTL: the program has a CONTROL.
    /// - LAPI_ERR_DGSP_OTHER: the program moves no bytes, and would never have moved this many.
    pub fn origin_program(program: Arc<Program>, base: *const u8, bytes: u64) -> Result<Self> {
        check_gather(&program)?;
        Self::target_program(program, base.cast_mut(), bytes, None)
    }

    /// The first `bytes` bytes of a program's stream, to scatter to; `function` is what
    /// CONTROL calls.
    ///
    /// # Errors
    /// - LAPI_ERR_DGSP_CTL: the program has a CONTROL, but there is no function.
    /// - LAPI_ERR_DGSP_OTHER: the program moves no bytes, and would never have moved this many.
    pub fn target_program(
        program: Arc<Program>,
        base: *mut u8,
        bytes: u64,
        function: ddm_func_p,
    ) -> Result<Self> {
        check_bytes(&program, bytes)?;
        if program.has_control() && function.is_none() {
            return Err(Error::new(LAPI_ERR_DGSP_CTL, "a CONTROL, but no function is registered"));
        }
        if let Some(at) = program.contiguous(bytes) {
            return Ok(Self::contiguous(base.wrapping_offset(at), bytes));
        }
        let function = function.filter(|_| program.distributes());
        Ok(Self(LayoutKind::Program { program, base, len: bytes, function }))
    }

    /// How many bytes.
    pub fn len(&self) -> u64 {
        match &self.0 {
            LayoutKind::Contiguous { len, .. }
            | LayoutKind::Strided { len, .. }
            | LayoutKind::Program { len, .. } => *len,
            LayoutKind::Pieces(pieces) => pieces.list[pieces.list.len() - 1].start,
            LayoutKind::Selected { ranges, .. } => ranges.len(),
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Address and length, if all bytes are contiguous.
    pub fn as_contiguous(&self) -> Option<(*mut u8, u64)> {
        match self.0 {
            LayoutKind::Contiguous { at, len } => Some((at, len)),
            _ => None,
        }
    }

    /// About how many runs there are, rounded up: the number of calls to expect from
    /// [`Layout::runs`].
    pub fn run_count(&self) -> u64 {
        match &self.0 {
            LayoutKind::Contiguous { len, .. } => u64::from(*len != 0),
            LayoutKind::Strided { dim, .. } => dim.count,
            LayoutKind::Pieces(pieces) => pieces.list.len() as u64 - 1,
            LayoutKind::Program { program, len, .. } => program.pieces(*len),
            LayoutKind::Selected { whole, ranges } => {
                whole.run_count().saturating_add(ranges.count()).min(ranges.len())
            }
        }
    }

    /// Bytes of a run, on average, and at least 1.
    pub fn mean_run(&self) -> u32 {
        (self.len() / self.run_count().max(1)).clamp(1, u64::from(u32::MAX)) as u32
    }

    /// The address of the program's function that takes the bytes that are scattered, if one does:
    /// then they cannot be written directly.
    pub fn function(&self) -> Option<usize> {
        match self.0 {
            LayoutKind::Program { function: Some(function), .. } => Some(function as usize),
            LayoutKind::Selected { ref whole, .. } => whole.function(),
            _ => None,
        }
    }

    /// Packs the bytes `from..from + len` into `out`. What lies behind the end is left out.
    ///
    /// # Safety
    /// The bytes must be readable, and `out` writable for `len` bytes. The two may overlap, to an
    /// undefined content.
    pub unsafe fn gather(&self, from: u64, len: usize, out: *mut u8) {
        let len = self.within(from, len as u64);
        // SAFETY: the caller vouches for these bytes on both sides.
        unsafe {
            match &self.0 {
                LayoutKind::Contiguous { at, .. } => {
                    copy::bytes::<true>(at.wrapping_add(from as usize), out, len as usize)
                }
                LayoutKind::Pieces(pieces) => pieces.copy::<true>(from, len, out),
                LayoutKind::Strided { base, block, dim, .. } => {
                    strided(*dim, *block, from, len, &mut Copier::gather(*base, out));
                }
                LayoutKind::Program { program, base, .. } => program.gather(*base, from, len as usize, out),
                LayoutKind::Selected { whole, ranges } => {
                    ranges.visit(from, len, |at, len, done| whole.gather(at, len, out.wrapping_add(done)));
                }
            }
        }
    }

    /// Unpacks `data`, the bytes `from..from + len`. What lies behind the end is dropped.
    ///
    /// # Safety
    /// The bytes must be writable, `data` readable for `len` bytes, and the function, if there is
    /// one, sound to call with them. The two may overlap, to an undefined content.
    pub unsafe fn scatter(&self, from: u64, data: *const u8, len: usize) {
        let len = self.within(from, len as u64);
        // SAFETY: the caller vouches for these bytes on both sides, and for the function.
        unsafe {
            match &self.0 {
                LayoutKind::Contiguous { at, .. } => {
                    copy::bytes::<false>(at.wrapping_add(from as usize), data.cast_mut(), len as usize);
                }
                LayoutKind::Pieces(pieces) => pieces.copy::<false>(from, len, data.cast_mut()),
                LayoutKind::Strided { base, block, dim, .. } => {
                    strided(*dim, *block, from, len, &mut Copier::scatter(*base, data));
                }
                LayoutKind::Program { program, base, function: None, .. } => {
                    program.scatter(*base, from, data, len as usize);
                }
                LayoutKind::Program { program, base, function: Some(function), .. } => {
                    program.scatter_ddm(*base, from, data, len as usize, *function);
                }
                LayoutKind::Selected { whole, ranges } => {
                    ranges.visit(from, len, |at, len, done| whole.scatter(at, data.wrapping_add(done), len));
                }
            }
        }
    }

    /// Passes on the runs of the bytes `from..from + len` in their order: address and length. Runs
    /// that touch are passed on as one. What lies behind the end is left out.
    pub fn runs(&self, from: u64, len: u64, mut each: impl FnMut(*mut u8, usize)) {
        let len = self.within(from, len);
        match &self.0 {
            LayoutKind::Contiguous { at, .. } => {
                if len != 0 {
                    each(at.wrapping_add(from as usize), len as usize);
                }
            }
            LayoutKind::Pieces(pieces) => pieces.visit(from, len, each),
            LayoutKind::Strided { base, block, dim, .. } => {
                let mut merger = Merger::new(|at, len| each(base.wrapping_offset(at), len));
                strided(*dim, *block, from, len, &mut merger);
                merger.finish();
            }
            LayoutKind::Program { program, base, .. } => {
                program.runs(from, len, |at, len| each(base.wrapping_offset(at), len));
            }
            LayoutKind::Selected { whole, ranges } => {
                let (mut last, mut run) = (std::ptr::null_mut::<u8>(), 0);
                // Of one type, however deep layouts are nested.
                let merge: &mut dyn FnMut(*mut u8, usize) = &mut |at, len| {
                    if run != 0 && last.wrapping_add(run) == at {
                        run += len;
                        return;
                    }
                    if run != 0 {
                        each(last, run);
                    }
                    (last, run) = (at, len);
                };
                ranges.visit(from, len, |from, len, _| whole.runs(from, len as u64, &mut *merge));
                if run != 0 {
                    each(last, run);
                }
            }
        }
    }

    /// How many of the bytes from `from` on are there.
    fn within(&self, from: u64, len: u64) -> u64 {
        len.min(self.len().saturating_sub(from))
    }
}

fn strided(dim: Dim, block: usize, from: u64, len: u64, sink: &mut impl Sink) {
    if len != 0 {
        grid(&[dim], block, 0, from, len, sink);
    }
}

impl Pieces {
    /// # Safety
    /// The bytes must be accessible, and `packed` for `len` bytes.
    unsafe fn copy<const GATHER: bool>(&self, from: u64, len: u64, mut packed: *mut u8) {
        self.visit(from, len, |at, len| {
            // SAFETY: the caller vouches for these bytes on both sides.
            unsafe { copy::bytes::<GATHER>(at, packed, len) };
            packed = packed.wrapping_add(len);
        });
    }

    #[inline]
    fn visit(&self, from: u64, len: u64, mut each: impl FnMut(*mut u8, usize)) {
        if len == 0 {
            return;
        }
        let mut i = self.find(from);
        let mut skip = from - self.list[i].start;
        let mut left = len;
        loop {
            let there = self.list[i + 1].start - self.list[i].start - skip;
            let here = there.min(left);
            each(self.list[i].at.wrapping_add(skip as usize), here as usize);
            left -= here;
            if left == 0 {
                break;
            }
            skip = 0;
            i += 1;
        }
        // Only a hint: it may be stale or from another thread, it always names a piece.
        self.hint.store(i, Ordering::Relaxed);
    }

    /// The piece in which the byte `from` lies; there must be one.
    fn find(&self, from: u64) -> usize {
        let hint = self.hint.load(Ordering::Relaxed);
        let holds = |i: usize| self.list[i].start <= from && from < self.list[i + 1].start;
        if holds(hint) {
            hint
        } else if hint + 2 < self.list.len() && holds(hint + 1) {
            hint + 1
        } else {
            self.list.partition_point(|piece| piece.start <= from) - 1
        }
    }
}
