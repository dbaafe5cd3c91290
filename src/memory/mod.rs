//! The program's memory: what names its bytes, and all that touches them. Everything else of the
//! core carries places, and calls these functions: packets are filled and emptied by [`bytes`],
//! gather/scatter programs move their blocks by `blocks`, counters and variables are changed by
//! [`counter`] and [`word`].
//!
//! The memory of this process is one kind of memory: its processors copy it. Memory of another
//! kind has its own copies here, for each pair of kinds, and `engine::plan` the ways that
//! reach it.

#[cfg(not(loom))]
pub(crate) mod blocks;
pub mod bytes;
#[cfg(not(loom))]
pub mod counter;
#[cfg(not(loom))]
pub mod word;
