//! OpenFAM 3.2: memory that outlives programs.
//!
//! Programs reach it by messages to daemons (`openfamd`). [`wire`] is what the two say to each
//! other, and [`files`] OpenFAM's files of settings; the library and the daemon use both.

pub mod abi;
mod client;
mod error;
pub mod files;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
pub mod meeting;
pub mod reach;
pub mod wire;

pub use error::{Failure, FamError, Result};
