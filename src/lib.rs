//! OpenLAPI: one-sided communication with LAPI's interface.
//!
//! This crate is the core: it reads no environment, and ends no process. `runtime` has what a
//! process does that uses LAPI, and `capi` puts the C interface on both. The floors, from the top;
//! imports run downwards only:
//!
//! * [`api`]: sessions ([`api::session`]), and one file per family of calls of the manual.
//! * [`engine`]: a context that moves: its lock, its dispatcher, handlers, threads and waiting.
//! * [`proto`]: what a message is. [`transport`]: how bytes travel. [`job`]: the tasks of this job
//!   and their places.
//! * [`wire`]: byte layouts. [`dgsp`]: the gather/scatter machine.
//! * [`base`]: rings, barriers, clocks. [`memory`]: the bytes of the program.
//!
//! [`abi`] (the types and constants of C), [`error`] and [`config`] may be used from anywhere.
//!
//! Under `--cfg loom` there are [`base`] and [`memory`] alone: the lock-free parts are then
//! model-checked.

#[cfg(not(loom))]
pub mod abi;
#[cfg(not(loom))]
pub mod api;
pub mod base;
#[cfg(not(loom))]
pub mod config;
#[cfg(not(loom))]
pub mod dgsp;
#[cfg(not(loom))]
pub mod engine;
#[cfg(not(loom))]
pub mod error;
#[cfg(all(feature = "fuzz", not(loom)))]
#[doc(hidden)]
pub mod fuzz;
#[cfg(not(loom))]
pub mod job;
pub mod memory;
#[cfg(not(loom))]
pub mod proto;
#[cfg(not(loom))]
pub mod transport;
#[cfg(not(loom))]
pub mod wire;
