//! OpenLAPI: one-sided communication with LAPI's interface.
//!
//! This crate is the core; `capi` puts the C interface on it. The floors, from the top; imports run downwards only:
//!
//! * [`api`]: one file per family of calls of the manual.
//! * [`engine`]: a context that moves: its lock, its dispatcher, handlers, threads and waiting.
//! * [`proto`]: what a message is. [`transport`]: how bytes travel. [`job`]: who is in this job and where.
//! * [`wire`]: byte layouts. [`dgsp`]: the gather/scatter machine.
//! * [`base`]: rings, barriers, bytes.
//!
//! [`abi`] (the types and constants of C), [`error`] and [`config`] may be used from anywhere.

pub mod abi;
pub mod api;
pub mod base;
pub mod config;
pub mod dgsp;
pub mod engine;
pub mod error;
pub mod job;
pub mod proto;
pub mod transport;
pub mod wire;
