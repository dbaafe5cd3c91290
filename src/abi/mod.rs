//! The C types, constants and handler types of LAPI, by the names C knows them.
//!
//! One file per concept. What a C compiler sees of it is `include/lapi.h`; a test compares every
//! size, offset and value of that header with the ones here, and `layout.rs` asserts the 64-bit
//! layout at compile time.
//!
//! Arguments and fields that are enumerations in C are plain integers here (`lapi_query_t` is
//! a `c_uint`), because a C program may put any number into them and a Rust enum must never
//! hold a wrong one.

// These are C's names: a reader who knows LAPI must find `lapi_am_t` and `Xfer_type` here,
// not translations.
#![allow(non_camel_case_types, non_snake_case)]

mod calls;
mod checkpoint;
mod constants;
mod counter;
mod dgsp;
mod error_codes;
mod handle;
mod handlers;
mod init;
mod layout;
mod message;
mod statistics;
mod util;
mod vector;
mod xfer;

pub use checkpoint::*;
pub use constants::*;
pub use counter::*;
pub use dgsp::*;
pub use error_codes::*;
pub use handle::*;
pub use handlers::*;
pub use init::*;
pub use message::*;
pub use statistics::*;
pub use util::*;
pub use vector::*;
pub use xfer::*;

/// The longest message that can be meant: LAPI_MAX_MSG_SZ, or all addresses of a process. What is
/// longer comes from a length of the wrong kind, such as a Fortran INTEGER of 4 bytes, whose
/// neighbour is read too.
pub(crate) const LONGEST: u64 = {
    let (limit, addresses) = (LAPI_MAX_MSG_SZ as usize as u64, 1 << 47);
    if limit < addresses { limit } else { addresses }
};

/// A length of C's, as wide in programs of 32 bits as in those of 64: in packets there is
/// only this width.
#[inline]
pub fn wide(length: libc::c_ulong) -> u64 {
    length as usize as u64
}
