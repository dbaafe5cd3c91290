//! Vectors (the manual's chapter 6, and the man page of LAPI_Amsendv).

use super::{lapi_long_t, lapi_vectype_t};
use libc::{c_uint, c_ulong, c_void};

/// A list of buffers, or a strided one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_vec_t {
    /// The shape.
    pub vec_type: lapi_vectype_t,
    /// How many buffers, or how many blocks.
    pub num_vecs: c_uint,
    /// The addresses; of a strided vector: base, block size, stride.
    pub info: *mut *mut c_void,
    /// The lengths in bytes; not read of a strided vector.
    pub len: *mut c_ulong,
}

/// A vector whose addresses have 64 bits in 32-bit programs too.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_lvec_t {
    /// The shape.
    pub vec_type: lapi_vectype_t,
    /// How many buffers, or how many blocks.
    pub num_vecs: c_uint,
    /// The addresses; of a strided vector: base, block size, stride.
    pub info: *mut lapi_long_t,
    /// The lengths in bytes; not read of a strided vector.
    pub len: *mut c_ulong,
}
