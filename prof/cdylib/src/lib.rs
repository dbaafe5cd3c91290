//! `liblapiprof.so`: the shared library that programs link or preload. It holds nothing of its own.

// Only names of symbols: there is nothing in it that Rust could call.
pub use openlapi_prof;
