//! What happens in a session beside the results of its calls, and who decides what follows.

use crate::abi::lapi_err_t;
use crate::engine::context::Context;
use crate::error::Error;
use crate::transport::Task;

/// A failure that no call can return (the manual's chapter 5, error handler).
#[derive(Debug)]
pub struct Failure<'a> {
    /// What has happened.
    pub error: &'a Error,
    /// In which kind of operation.
    pub kind: lapi_err_t,
    /// This task.
    pub task: Task,
    /// The task that it is about.
    pub source: Task,
}

/// The owner of a session: gets its events, and decides what the process does about them.
pub trait Events: Send + Sync {
    /// Whether the session ends by this failure. Called with the session's lock held: it must not
    /// call the session.
    fn ends_by(&self, failure: &Failure<'_>) -> bool;

    /// A failure by which the session does not end. Called without the lock; it may call the
    /// session, and end it.
    fn failed(&self, context: &Context, failure: &Failure<'_>);

    /// The session cannot go on, by a failure or for lack of memory: when this returns, every call
    /// returns an error, and waiting ones end. Called with the lock held.
    fn fatal(&self);

    /// A call has waited for [`super::settings::Options::stall`] without progress. Called with the
    /// lock held.
    fn stalled(&self);

    /// The session is closing, and its threads are about to be stopped. With `wait` this may wait
    /// for threads of its own that use the context; otherwise the call comes from a handler, with
    /// the lock held.
    fn closing(&self, context: &Context, wait: bool);
}

/// Ignores all events: a session goes on after a failure, and what has waited for the task that it
/// is about ends with an error, or by its counter. For programs that learn of a failure by that, or
/// otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoEvents;

impl Events for NoEvents {
    fn ends_by(&self, _: &Failure<'_>) -> bool {
        false
    }

    fn failed(&self, _: &Context, _: &Failure<'_>) {}

    fn fatal(&self) {}

    fn stalled(&self) {}

    fn closing(&self, _: &Context, _: bool) {}
}

impl std::fmt::Debug for dyn Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events(..)")
    }
}
