//! Zero-copy send endpoints as netio3 has them, on sessions: the C interface that the C++ headers
//! of `include/netio3` are made of. Nothing is thrown here.

mod abi;
mod address;
mod frame;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod receiver;
mod sender;

/// The result of a call whose error is for people.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
