//! A context that moves, in three rooms. Imports run downwards only, between the rooms and inside of each:
//!
//! * [`progress`]: what keeps a context going: the dispatcher, waiting, the library's threads, lost and returning tasks.
//! * [`transfer`]: how one operation goes: at its origin, at its target, and back.
//! * [`context`]: the state behind a handle and its lock.

pub mod context;
pub mod progress;
pub mod transfer;

#[cfg(test)]
mod tests;
