//! `liblapi_r.so`: the shared library that programs link. It holds nothing of its own.

pub use openlapi_capi::*;
// Only names of symbols: there is nothing in it that Rust could call.
pub use openlapi_fortran;
