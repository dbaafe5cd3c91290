//! A context and its progress, in four modules. Imports run downwards only, between the modules and
//! inside of each:
//!
//! * [`progress`]: what makes progress in a context: the dispatcher, waiting, the library's
//!   threads, lost and returning tasks.
//! * [`transfer`]: how one operation goes: at its origin, at its target, and back.
//! * [`plan`]: which way an operation goes.
//! * [`context`]: the state behind a handle and its lock.

pub mod context;
pub mod plan;
pub mod progress;
pub mod transfer;

#[cfg(test)]
mod tests;
