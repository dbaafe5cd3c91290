//! `liblapi_r.so`: the shared library that programs link. It holds nothing of its own.

pub use openlapi_capi::*;
