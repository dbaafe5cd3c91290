//! Data in blocks with gaps between them: as vectors, and as a gather/scatter program.

use std::mem::MaybeUninit;

use nix::libc::{c_long, c_ulong, c_void};
use openlapi::abi::*;

use super::task::Task;
use crate::lapi_perf::error::Result;

/// Blocks, each followed by a gap of its size. Data that is no longer than a block has no gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lapi_perf) struct Blocks {
    /// All data, in bytes.
    pub(in crate::lapi_perf) size: u64,
    /// A block.
    pub(in crate::lapi_perf) block: u64,
}

impl Blocks {
    pub(in crate::lapi_perf) fn new(size: u64, block: u64) -> Self {
        Self { size, block: block.min(size).max(1) }
    }

    fn count(self) -> u64 {
        self.size.div_ceil(self.block)
    }

    /// From the first byte to behind the last one.
    pub(in crate::lapi_perf) fn extent(self) -> u64 {
        if self.size == 0 {
            return 0;
        }
        let before = self.count() - 1;
        before * self.block * 2 + (self.size - before * self.block)
    }

    /// Which byte of the data lies at an offset; none in a gap.
    pub(in crate::lapi_perf) fn index(self, offset: u64) -> Option<u64> {
        let (block, within) = (offset / (self.block * 2), offset % (self.block * 2));
        let index = block * self.block + within;
        (within < self.block && index < self.size).then_some(index)
    }
}

/// A vector of LAPI, with what it points at.
pub(super) struct Vector {
    info: Box<[*mut c_void]>,
    len: Box<[c_ulong]>,
    whole: Box<lapi_vec_t>,
}

impl Vector {
    /// One block size and one distance.
    pub(super) fn strided(start: u64, blocks: Blocks) -> Self {
        let info = [start, blocks.block, blocks.block * 2];
        Self::new(
            LAPI_GEN_STRIDED_XFER,
            blocks.count(),
            info.map(|word| word as *mut c_void).into(),
            [].into(),
        )
    }

    /// A list.
    pub(super) fn pieces(start: u64, blocks: Blocks) -> Self {
        let starts = (0..blocks.count()).map(|at| (start + at * blocks.block * 2) as *mut c_void);
        let lengths =
            (0..blocks.count()).map(|at| (blocks.size - at * blocks.block).min(blocks.block) as c_ulong);
        Self::new(LAPI_GEN_IOVECTOR, blocks.count(), starts.collect(), lengths.collect())
    }

    fn new(shape: lapi_vectype_t, count: u64, mut info: Box<[*mut c_void]>, mut len: Box<[c_ulong]>) -> Self {
        let (info_at, len_at) = (info.as_mut_ptr(), len.as_mut_ptr());
        let whole = lapi_vec_t { vec_type: shape, num_vecs: count as _, info: info_at, len: len_at };
        Self { info, len, whole: Box::new(whole) }
    }

    /// For a call.
    pub(super) fn as_ptr(&self) -> *mut lapi_vec_t {
        debug_assert!(!self.info.is_empty() && (self.len.is_empty() || self.len.len() == self.info.len()));
        (&raw const *self.whole).cast_mut()
    }
}

/// A registered gather/scatter program.
pub(super) struct Program<'task> {
    task: &'task Task,
    pub(super) handle: lapi_dg_handle_t,
}

#[repr(C)]
struct Code(lapi_dgsm_copy_t, lapi_dgsm_iterate_t);

impl<'task> Program<'task> {
    /// One block, and the next one two blocks further.
    pub(super) fn register(task: &'task Task, blocks: Blocks) -> Result<Self> {
        let block = blocks.block as c_long;
        let mut code = Code(
            lapi_dgsm_copy_t { opcode: LAPI_DGSM_COPY, bytes: block, offset: 0 },
            lapi_dgsm_iterate_t { opcode: LAPI_DGSM_ITERATE, iter_loc: -LAPI_DGSM_COPY_SIZE },
        );
        let mut description = lapi_dgsp_descr_t {
            code: (&raw mut code).cast(),
            code_size: LAPI_DGSM_COPY_SIZE + LAPI_DGSM_ITERATE_SIZE,
            depth: 1,
            density: LAPI_DGSM_SPARSE,
            size: block,
            extent: block * 2,
            lext: 0,
            rext: block,
            atom_size: 0,
        };
        // SAFETY: numbers and pointers, all of which may be 0.
        let mut command: lapi_util_t = unsafe { MaybeUninit::zeroed().assume_init() };
        command.RegDgsp.Util_type = LAPI_REGISTER_DGSP;
        command.RegDgsp.idgsp = &raw mut description;
        // SAFETY: the library makes a copy of the program; both live during the call.
        let code = unsafe { (task.calls().util)(task.handle, &raw mut command) };
        task.checked("LAPI_Util of LAPI_REGISTER_DGSP", code)?;
        // SAFETY: written by the call that has just succeeded.
        Ok(Self { task, handle: unsafe { command.RegDgsp.dgsp_handle } })
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: numbers and pointers, all of which may be 0.
        let mut command: lapi_util_t = unsafe { MaybeUninit::zeroed().assume_init() };
        command.DrefDgsp.Util_type = LAPI_UNRESERVE_DGSP;
        command.DrefDgsp.dgsp_handle = self.handle;
        // SAFETY: the handle is this value's own. A failure would leave the program registered,
        // which harms nothing.
        unsafe { (self.task.calls().util)(self.task.handle, &raw mut command) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_the_data_has_one_place() {
        for (size, block) in [(1, 256), (8, 8), (100, 8), (1024, 256), (1000, 256), (256, 1)] {
            let blocks = Blocks::new(size, block);
            let places: Vec<u64> = (0..blocks.extent()).filter_map(|at| blocks.index(at)).collect();
            assert_eq!(places, (0..size).collect::<Vec<u64>>(), "{blocks:?}");
            assert!(blocks.index(blocks.extent() - 1).is_some() && blocks.index(blocks.extent()).is_none());
        }
    }
}
