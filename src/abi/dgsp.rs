//! Data gather/scatter programs: their descriptor and their instructions (the manual's chapter 6).
//!
//! A program is an array of ints; an instruction starts at any int, so in memory it may be less
//! aligned than its type here and must be read unaligned.

use super::{
    LAPI_DGSM_COPY, LAPI_DGSM_ITERATE, LAPI_DGSM_UNIT, lapi_dg_handle_t, lapi_dgsm_opcode_t,
    lapi_dgsp_density_t,
};
use libc::{c_int, c_long};

/// A program and what LAPI must know of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_dgsp_descr_t {
    /// The program.
    pub code: *mut c_int,
    /// The program's length in ints.
    pub code_size: c_int,
    /// How deep GOSUBs nest, the main program included.
    pub depth: c_int,
    /// Where the layout has gaps.
    pub density: lapi_dgsp_density_t,
    /// How many bytes one run moves.
    pub size: c_long,
    /// The distance in bytes from one run to the next.
    pub extent: c_long,
    /// The offset of the lowest byte.
    pub lext: c_long,
    /// The offset behind the highest byte.
    pub rext: c_long,
    /// A packet holds a multiple of this many bytes; 0 for any.
    pub atom_size: c_int,
}

/// Moves one run of bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_dgsm_copy_t {
    /// LAPI_DGSM_COPY
    pub opcode: lapi_dgsm_opcode_t,
    /// How many bytes.
    pub bytes: c_long,
    /// From where.
    pub offset: c_long,
}

/// One run of an MCOPY.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_dgsm_block_t {
    /// From where.
    pub block_disp: c_long,
    /// How many bytes.
    pub block_len: c_long,
}

/// Moves several runs of bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_dgsm_mcopy_t {
    /// LAPI_DGSM_MCOPY
    pub opcode: lapi_dgsm_opcode_t,
    /// How many blocks follow.
    pub count: c_int,
    /// The first of them.
    pub block: [lapi_dgsm_block_t; 1],
}

/// Runs a part of the program several times. Places count in ints, from this instruction on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_dgsm_gosub_t {
    /// LAPI_DGSM_GOSUB
    pub opcode: lapi_dgsm_opcode_t,
    /// Where the part starts.
    pub to_loc: c_int,
    /// Where to go on afterwards.
    pub ret_loc: c_int,
    /// How often.
    pub reps: c_long,
    /// The base of the first run, in bytes.
    pub offset: c_long,
    /// The distance between runs, in bytes.
    pub stride: c_long,
}

/// Ends a program or a part of one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_dgsm_iterate_t {
    /// LAPI_DGSM_ITERATE
    pub opcode: lapi_dgsm_opcode_t,
    /// Where what it ends has started, in ints from this instruction on.
    pub iter_loc: c_int,
}

/// Hands every run that follows to the function of LAPI_REG_DDM_FUNC.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_dgsm_control_t {
    /// LAPI_DGSM_CONTROL
    pub opcode: lapi_dgsm_opcode_t,
    /// Passed on to the function; LAPI_DGSM_NO_CTL ends the mode.
    pub operation: c_int,
    /// Passed on to the function.
    pub operand: c_int,
}

const fn ints<T>() -> c_int {
    (size_of::<T>() / size_of::<c_int>()) as c_int
}

/// The length of a COPY in ints.
pub const LAPI_DGSM_COPY_SIZE: c_int = ints::<lapi_dgsm_copy_t>();
/// The length of an MCOPY of one block in ints.
pub const LAPI_DGSM_MCOPY_SIZE: c_int = ints::<lapi_dgsm_mcopy_t>();
/// The length of every further block of an MCOPY in ints.
pub const LAPI_DGSM_MCOPY_BLOCK_SIZE: c_int = ints::<lapi_dgsm_block_t>();
/// The length of every further block of an MCOPY in ints, by its type's name.
pub const LAPI_DGSM_BLOCK_SIZE: c_int = LAPI_DGSM_MCOPY_BLOCK_SIZE;
/// The length of a GOSUB in ints.
pub const LAPI_DGSM_GOSUB_SIZE: c_int = ints::<lapi_dgsm_gosub_t>();
/// The length of an ITERATE in ints.
pub const LAPI_DGSM_ITERATE_SIZE: c_int = ints::<lapi_dgsm_iterate_t>();
/// The length of a CONTROL in ints.
pub const LAPI_DGSM_CONTROL_SIZE: c_int = ints::<lapi_dgsm_control_t>();

/// A descriptor that lives as long as the process and is never written.
#[repr(transparent)]
pub struct PredefinedDgsp(lapi_dgsp_descr_t);

// SAFETY: nothing writes to the descriptor or to its code, which are both constant and
// outlive every thread.
unsafe impl Sync for PredefinedDgsp {}

impl PredefinedDgsp {
    /// The handle of the program.
    pub const fn handle(&'static self) -> lapi_dg_handle_t {
        (&raw const self.0).cast_mut()
    }
}

#[repr(C)]
struct ByteCode(lapi_dgsm_copy_t, lapi_dgsm_iterate_t);

static BYTE_CODE: ByteCode = ByteCode(
    lapi_dgsm_copy_t { opcode: LAPI_DGSM_COPY, bytes: 1, offset: 0 },
    lapi_dgsm_iterate_t { opcode: LAPI_DGSM_ITERATE, iter_loc: -LAPI_DGSM_COPY_SIZE },
);

/// What LAPI_BYTE points at: contiguous bytes.
pub static BYTE_DGSP: PredefinedDgsp = PredefinedDgsp(lapi_dgsp_descr_t {
    code: (&raw const BYTE_CODE).cast_mut().cast(),
    code_size: LAPI_DGSM_COPY_SIZE + LAPI_DGSM_ITERATE_SIZE,
    depth: 1,
    density: LAPI_DGSM_UNIT,
    size: 1,
    extent: 1,
    lext: 0,
    rext: 1,
    atom_size: 0,
});
