//! What each thread of a context waits for, for a user who asks why nothing moves: a snapshot of
//! each context, as text. A job without reports pays nothing for it.

pub mod attach;
pub mod bell;
pub mod crash;
pub mod lines;
mod look;
mod message;
mod process;
pub mod thread;
