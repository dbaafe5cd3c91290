//! `librpmem.so.1`: replication of a memory pool to another host.
//!
//! The client ([`abi`], the calls) starts the daemon `rpmemd` on the other host by ssh, whose
//! standard input and output are the channel of a session. Data goes over the session: into the
//! pool that the daemon has mapped, and the daemon answers when it has flushed it. [`disk`] is the
//! form of pools in files, and [`wire`] what the two sides say to each other; the daemon uses both.

pub mod abi;
mod attributes;
mod bytes;
mod client;
pub mod disk;
mod environment;
mod failure;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod log;
mod ssh;
mod target;
pub mod wire;

pub use attributes::Attributes;
pub use failure::{Failure, Result};
