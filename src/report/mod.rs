//! What each thread of a context waits for, for a user who asks why nothing moves: a snapshot of
//! each context, rendered by `text`. A job without reports pays nothing for it.

pub mod attach;
pub mod bell;
pub mod console;
pub mod crash;
pub mod lines;
mod look;
mod message;
mod process;
mod text;
pub mod thread;

use crate::engine::context::active_handler::Run;
use crate::engine::context::completion_queue::RunningHandler;
use std::time::Duration;

/// Why a context's lock cannot be taken.
#[derive(Clone, Debug)]
pub struct Locked {
    /// The thread that holds it (see [`crate::base::known_threads::this_thread`]); 0: one
    /// after another.
    pub owner: usize,
    /// The handler that runs in it.
    pub run: Option<Run>,
    /// The program holds it by itself (the manual's chapter 12).
    pub by_program: bool,
    /// For how long at least this has been the case.
    pub at_least: Duration,
}

/// Completion handlers of a context.
#[derive(Clone, Debug)]
pub struct Handlers {
    /// How many are queued.
    pub queued: usize,
    /// Those that run.
    pub running: Vec<RunningHandler>,
}
