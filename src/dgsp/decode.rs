//! Instructions out of an array of ints. Safe for any numbers in it: what does not lie in the
//! array is an error.

use crate::abi::{
    LAPI_DGSM_BLOCK_SIZE, LAPI_DGSM_CONTROL, LAPI_DGSM_CONTROL_SIZE, LAPI_DGSM_COPY, LAPI_DGSM_COPY_SIZE,
    LAPI_DGSM_GOSUB, LAPI_DGSM_GOSUB_SIZE, LAPI_DGSM_ITERATE, LAPI_DGSM_ITERATE_SIZE, LAPI_DGSM_MCOPY,
    LAPI_DGSM_MCOPY_SIZE, LAPI_ERR_DGSP_BRANCH, LAPI_ERR_DGSP_COPY_SZ, LAPI_ERR_DGSP_OPC, LAPI_ERR_DGSP_REPS,
    lapi_dgsm_block_t, lapi_dgsm_control_t, lapi_dgsm_copy_t, lapi_dgsm_gosub_t, lapi_dgsm_iterate_t,
    lapi_dgsm_mcopy_t,
};
use crate::error::{Error, Result};
use libc::{c_int, c_long};
use std::mem::offset_of;

/// One instruction; places are indices into the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// `len` bytes at `offset`; then on at `next`.
    Copy { len: u64, offset: i64, next: usize },
    /// `count` blocks, read by [`Code::block`] from `first` on.
    Mcopy { count: usize, first: usize, next: usize },
    /// The routine at `to`, `reps` times.
    Gosub { to: usize, reps: u64, offset: i64, stride: i64, next: usize },
    /// The end of a routine that has started at `start`, if its author has given it.
    Iterate { start: Option<usize> },
    /// What is to be done with the runs that follow.
    Control { operation: c_int, operand: c_int, next: usize },
}

/// The code of a program.
#[derive(Clone, Copy)]
pub(super) struct Code<'a>(pub(super) &'a [c_int]);

const fn index(bytes: usize) -> usize {
    bytes / size_of::<c_int>()
}

impl Code<'_> {
    /// The instruction at `at`.
    pub(super) fn instruction(self, at: usize) -> Result<Instruction> {
        let opcode = *self.0.get(at).ok_or_else(|| outside(at))?;
        match opcode as u32 {
            LAPI_DGSM_COPY => {
                self.room(at, LAPI_DGSM_COPY_SIZE as usize)?;
                Ok(Instruction::Copy {
                    len: length(at, self.long(at, offset_of!(lapi_dgsm_copy_t, bytes)))?,
                    offset: self.long(at, offset_of!(lapi_dgsm_copy_t, offset)),
                    next: at + LAPI_DGSM_COPY_SIZE as usize,
                })
            }
            LAPI_DGSM_MCOPY => {
                let head = (LAPI_DGSM_MCOPY_SIZE - LAPI_DGSM_BLOCK_SIZE) as usize;
                self.room(at, head)?;
                let count = self.int(at, offset_of!(lapi_dgsm_mcopy_t, count));
                let count = usize::try_from(count).map_err(|_| {
                    Error::new(LAPI_ERR_DGSP_COPY_SZ, format!("count {count} of the MCOPY at code[{at}]"))
                })?;
                // The count is an int, so that this cannot overflow where a size has 64 bits; where
                // it has 32, the code could not be in memory.
                let size = count.saturating_mul(LAPI_DGSM_BLOCK_SIZE as usize).saturating_add(head);
                self.room(at, size)?;
                Ok(Instruction::Mcopy {
                    count,
                    first: at + index(offset_of!(lapi_dgsm_mcopy_t, block)),
                    next: at + size,
                })
            }
            LAPI_DGSM_GOSUB => {
                self.room(at, LAPI_DGSM_GOSUB_SIZE as usize)?;
                let reps = self.long(at, offset_of!(lapi_dgsm_gosub_t, reps));
                Ok(Instruction::Gosub {
                    to: self.place(at, self.int(at, offset_of!(lapi_dgsm_gosub_t, to_loc)))?,
                    reps: u64::try_from(reps).map_err(|_| {
                        Error::new(LAPI_ERR_DGSP_REPS, format!("reps {reps} of the GOSUB at code[{at}]"))
                    })?,
                    offset: self.long(at, offset_of!(lapi_dgsm_gosub_t, offset)),
                    stride: self.long(at, offset_of!(lapi_dgsm_gosub_t, stride)),
                    next: self.place(at, self.int(at, offset_of!(lapi_dgsm_gosub_t, ret_loc)))?,
                })
            }
            LAPI_DGSM_ITERATE => {
                self.room(at, LAPI_DGSM_ITERATE_SIZE as usize)?;
                let back = self.int(at, offset_of!(lapi_dgsm_iterate_t, iter_loc));
                Ok(Instruction::Iterate { start: self.place(at, back).ok() })
            }
            LAPI_DGSM_CONTROL => {
                self.room(at, LAPI_DGSM_CONTROL_SIZE as usize)?;
                Ok(Instruction::Control {
                    operation: self.int(at, offset_of!(lapi_dgsm_control_t, operation)),
                    operand: self.int(at, offset_of!(lapi_dgsm_control_t, operand)),
                    next: at + LAPI_DGSM_CONTROL_SIZE as usize,
                })
            }
            _ => Err(Error::new(LAPI_ERR_DGSP_OPC, format!("opcode {opcode} at code[{at}]"))),
        }
    }

    /// Length and offset of block `i` of the MCOPY whose blocks start at `first`.
    pub(super) fn block(self, first: usize, i: usize) -> Result<(u64, i64)> {
        let at = first + i * LAPI_DGSM_BLOCK_SIZE as usize;
        let len = length(at, self.long(at, offset_of!(lapi_dgsm_block_t, block_len)))?;
        Ok((len, self.long(at, offset_of!(lapi_dgsm_block_t, block_disp))))
    }

    /// Whether `size` ints from `at` on are all code.
    fn room(self, at: usize, size: usize) -> Result<()> {
        if self.0.len() - at < size { Err(outside(at.saturating_add(size))) } else { Ok(()) }
    }

    /// Where a jump by `distance` from `at` leads.
    fn place(self, at: usize, distance: c_int) -> Result<usize> {
        let to = at as i64 + i64::from(distance);
        usize::try_from(to).ok().filter(|&to| to < self.0.len()).ok_or_else(|| {
            Error::new(LAPI_ERR_DGSP_BRANCH, format!("from code[{at}] to code[{to}] of {}", self.0.len()))
        })
    }

    fn int(self, at: usize, offset: usize) -> c_int {
        self.0[at + index(offset)]
    }

    /// A long at an int's place: in memory it may be less aligned than its type.
    fn long(self, at: usize, offset: usize) -> i64 {
        const INTS: usize = index(size_of::<c_long>());
        let at = at + index(offset);
        let mut bytes = [0; size_of::<c_long>()];
        for (to, int) in bytes.chunks_exact_mut(size_of::<c_int>()).zip(&self.0[at..at + INTS]) {
            to.copy_from_slice(&int.to_ne_bytes());
        }
        c_long::from_ne_bytes(bytes) as i64
    }
}

fn length(at: usize, bytes: i64) -> Result<u64> {
    u64::try_from(bytes)
        .map_err(|_| Error::new(LAPI_ERR_DGSP_COPY_SZ, format!("{bytes} bytes in the copy at code[{at}]")))
}

fn outside(at: usize) -> Error {
    Error::new(LAPI_ERR_DGSP_BRANCH, format!("the program runs on to code[{at}], behind its end"))
}
