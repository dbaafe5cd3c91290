//! Every symbol that the library exports to C, and nothing else: each function is one call of `crate::calls`.

// C's names. What each call asks of its caller is the manual's business and said in the calls themselves.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]

mod lapi;
mod plapi;

pub use lapi::*;
pub use plapi::*;

use openlapi::abi::{BYTE_DGSP, PredefinedDgsp};

/// The handle of contiguous bytes; in C, `extern const lapi_dg_handle_t LAPI_BYTE`.
#[unsafe(no_mangle)]
pub static LAPI_BYTE: &PredefinedDgsp = &BYTE_DGSP;
