//! A program that is ready to run.

use super::compile::{Compiled, compile};
use super::copy::Copier;
use super::ddm::Distributor;
use super::decode::Code;
use super::merge::Merger;
use super::shape::{Part, Shape, forever};
use super::verify;
use super::walk::{Sink, walk};
use crate::abi::{LAPI_ERR_DGSP_ATOM, LAPI_ERR_DGSP_OTHER, ddm_func_t, lapi_dg_handle_t, lapi_dgsp_descr_t};
use crate::error::{Error, Result};
use libc::c_int;
use std::sync::Arc;

/// A compiled DGSP, with its own copy of the descriptor and of the code.
///
/// The packed stream of a program is what its copies move, one after the other; behind the end
/// of the program it goes on with the next application, `extent` bytes further on, for ever.
/// Every operation starts at any byte of that stream, in a time that grows with the depth of
/// the program only.
#[derive(Debug)]
pub struct Program {
    /// What the handle points at. C may read it; nothing here does.
    descriptor: lapi_dgsp_descr_t,
    /// What `descriptor.code` points at.
    _code: Box<[c_int]>,
    /// The program again and again.
    stream: Part,
    once: Part,
    controls: bool,
    distributes: bool,
    /// The run at the start of the stream.
    first_run: (isize, u64),
}

// SAFETY: the only pointer in it is descriptor.code, which points at memory of the program itself;
// nothing is ever written after the program has been made.
unsafe impl Send for Program {}
// SAFETY: nothing is written after the program has been made.
unsafe impl Sync for Program {}

impl Program {
    /// Compiles a program. For any content of the code this ends, reads only what the descriptor
    /// declares as code, and takes memory in proportion to the code: loops stay loops.
    ///
    /// The code counts, not what the descriptor declares about it, except for `extent`. An ITERATE
    /// goes back to the start of what it ends.
    ///
    /// With `verify`, all that the descriptor declares must hold, too: the code moves `size` bytes,
    /// none of them outside of `lext..rext`; it nests no deeper than `depth`; it is as dense as
    /// `density` declares; every ITERATE names the start of what it ends, and no CONTROL has an
    /// operation below LAPI_DGSM_NO_CTL.
    ///
    /// # Errors
    /// - LAPI_ERR_DGSP_OTHER: no code; code that reaches further than a long can hold, or whose
    ///   routines share code in more than a few places. Verified: a wrong `size`, `lext`,
    ///   `rext` or `density`.
    /// - LAPI_ERR_DGSP_OPC: an unknown instruction.
    /// - LAPI_ERR_DGSP_BRANCH: a jump, or an end without ITERATE, out of the code; a routine that
    ///   never ends. Verified: an ITERATE that does not name the start of what it ends.
    /// - LAPI_ERR_DGSP_COPY_SZ: a negative length or number of blocks.
    /// - LAPI_ERR_DGSP_REPS: negative reps.
    /// - LAPI_ERR_DGSP_STACK: a routine that calls itself, or more than [`super::MAX_DEPTH`]
    ///   levels. Verified: more levels than `depth`.
    /// - LAPI_ERR_DGSP_ATOM: a negative atom_size; its upper limit is the context's, see
    ///   [`Program::check_atom`].
    /// - LAPI_ERR_DGSP_CTL. Verified: a CONTROL in a program that is not LAPI_DGSM_SPARSE, or a
    ///   wrong operation.
    ///
    /// # Safety
    /// `code` must be null or point at `code_size` readable ints.
    pub unsafe fn compile(descriptor: &lapi_dgsp_descr_t, verify: bool) -> Result<Arc<Self>> {
        let ints = usize::try_from(descriptor.code_size).unwrap_or(0);
        if ints == 0 || descriptor.code.is_null() {
            let what = format!("code at {:p}, {} ints", descriptor.code, descriptor.code_size);
            return Err(Error::new(LAPI_ERR_DGSP_OTHER, what));
        }
        let mut code = vec![0 as c_int; ints].into_boxed_slice();
        // SAFETY: the caller vouches for the ints; bytes are copied, so that they may be
        // aligned in any way.
        unsafe {
            std::ptr::copy_nonoverlapping(
                descriptor.code.cast::<u8>(),
                code.as_mut_ptr().cast(),
                ints * size_of::<c_int>(),
            )
        };
        Self::of(descriptor, code, verify).map(Arc::new)
    }

    fn of(descriptor: &lapi_dgsp_descr_t, code: Box<[c_int]>, verify: bool) -> Result<Self> {
        if descriptor.atom_size < 0 {
            return Err(Error::new(LAPI_ERR_DGSP_ATOM, format!("atom_size {}", descriptor.atom_size)));
        }
        let compiled = compile(Code(&code), verify)?;
        if verify {
            verify::descriptor(descriptor, &compiled)?;
        }
        let Compiled { once, controls, distributes, .. } = compiled;
        let stream = forever(descriptor.extent as i64, &once, controls);
        let first_run = first_run(&stream);
        let descriptor = lapi_dgsp_descr_t { code: code.as_ptr().cast_mut(), ..*descriptor };
        Ok(Self { descriptor, _code: code, stream, once, controls, distributes, first_run })
    }

    /// The descriptor, for C to read. Valid as long as the program.
    pub fn handle(&self) -> lapi_dg_handle_t {
        (&raw const self.descriptor).cast_mut()
    }

    /// How many bytes one application moves; 0 for a program that moves nothing.
    pub fn size(&self) -> u64 {
        self.once.node.size
    }

    /// The distance in bytes from one application to the next.
    pub fn extent(&self) -> i64 {
        self.descriptor.extent as i64
    }

    /// The offset of the lowest byte of one application, and the offset behind the highest.
    pub fn bounds(&self) -> (i64, i64) {
        self.once.bounds()
    }

    /// A packet holds a multiple of this many bytes; 0 for any.
    pub fn atom_size(&self) -> usize {
        self.descriptor.atom_size as usize
    }

    /// Whether it has a CONTROL: then it may only scatter, by [`Program::scatter_ddm`].
    pub fn has_control(&self) -> bool {
        self.controls
    }

    /// Whether a CONTROL of it can make the function take what is copied. Without one that does,
    /// every byte is copied to its place.
    pub fn distributes(&self) -> bool {
        self.distributes
    }

    /// About how many runs the first `bytes` bytes of the stream consist of, rounded up.
    pub fn pieces(&self, bytes: u64) -> u64 {
        let node = &self.once.node;
        if matches!(self.stream.node.shape, Shape::Run) || bytes <= self.first_run.1 {
            return u64::from(bytes != 0);
        }
        let pieces = u128::from(node.runs) * u128::from(bytes);
        pieces.div_ceil(u128::from(node.size.max(1))).try_into().unwrap_or(u64::MAX)
    }

    /// Where the first `bytes` bytes of the stream lie, if they are contiguous.
    pub fn contiguous(&self, bytes: u64) -> Option<isize> {
        (bytes <= self.first_run.1 && !self.controls).then_some(self.first_run.0)
    }

    /// Whether atom_size suits packets of `max` bytes.
    ///
    /// # Errors
    /// LAPI_ERR_DGSP_ATOM: it is more than `max` (MAX_ATOM_SIZE).
    pub fn check_atom(&self, max: usize) -> Result<()> {
        if self.atom_size() > max {
            let what = format!("atom_size {} of at most {max}", self.atom_size());
            return Err(Error::new(LAPI_ERR_DGSP_ATOM, what));
        }
        Ok(())
    }

    /// Packs the bytes `from..from + len` of the stream into `out`. A program of no bytes
    /// packs nothing.
    ///
    /// # Safety
    /// What the program describes there must be readable, counted from `base`, and `out` writable
    /// for `len` bytes. The two may overlap, to an undefined content.
    pub unsafe fn gather(&self, base: *const u8, from: u64, len: usize, out: *mut u8) {
        // SAFETY: the caller vouches for exactly the runs that are walked.
        self.walk(from, len as u64, &mut unsafe { Copier::gather(base, out) });
    }

    /// Unpacks `data`, the bytes `from..from + len` of the stream. A CONTROL is disregarded.
    ///
    /// # Safety
    /// What the program describes there must be writable, counted from `base`, and `data` readable
    /// for `len` bytes. The two may overlap, to an undefined content.
    pub unsafe fn scatter(&self, base: *mut u8, from: u64, data: *const u8, len: usize) {
        // SAFETY: the caller vouches for exactly the runs that are walked.
        self.walk(from, len as u64, &mut unsafe { Copier::scatter(base, data) });
    }

    /// Unpacks as [`Program::scatter`] does, but where a CONTROL demands it the function gets the
    /// data instead: one call for each copy of the program, or for the part of it that is in
    /// `data`. A function that returns that it has processed fewer bytes than it was given, but
    /// some, is called again with the rest.
    ///
    /// # Safety
    /// The conditions of [`Program::scatter`] hold, and the function must be sound to call with the
    /// runs and the data.
    pub unsafe fn scatter_ddm(
        &self,
        base: *mut u8,
        from: u64,
        data: *const u8,
        len: usize,
        function: ddm_func_t,
    ) {
        // SAFETY: the caller vouches for exactly the runs that are walked, and for the function.
        self.walk(from, len as u64, &mut unsafe { Distributor::new(base, data, function) });
    }

    /// Passes on the runs of the bytes `from..from + len` of the stream in their order: offset and
    /// length. Runs that touch are passed on as one.
    pub fn runs(&self, from: u64, len: u64, each: impl FnMut(isize, usize)) {
        let mut merger = Merger::new(each);
        self.walk(from, len, &mut merger);
        merger.finish();
    }

    fn walk(&self, from: u64, len: u64, sink: &mut impl Sink) {
        let Part { offset, node } = &self.stream;
        // Only a program of no bytes has fewer than a message can ask for.
        let from = from.min(node.size);
        walk(node, *offset as isize, from, len.min(node.size - from), sink);
    }
}

fn first_run(stream: &Part) -> (isize, u64) {
    let (mut at, mut node) = (stream.offset, &*stream.node);
    loop {
        let part = match &node.shape {
            Shape::Run => return (at as isize, node.size),
            Shape::Grid { block, .. } => return (at as isize, *block as u64),
            Shape::Indexed { block, places } => return (at.wrapping_add(places[0]) as isize, *block as u64),
            Shape::Blocks { list } => return (at.wrapping_add(list[0].offset) as isize, list[1].start),
            Shape::Control => return (0, 0),
            Shape::Loop { body, .. } => {
                node = body;
                continue;
            }
            Shape::Sequence { steps } => &steps[0].part,
        };
        at = at.wrapping_add(part.offset);
        node = &part.node;
    }
}
