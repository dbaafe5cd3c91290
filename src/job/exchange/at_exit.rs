//! What has to be done when the process ends: launchers call the end of a task abnormal when it has begun a conversation with
//! them and not ended it.

use crate::base::sync::{AtomicU32, Ordering};

/// Runs a function when this process ends by `exit`, or by returning from `main`. In a forked child the function asks `registered`, which is the
/// function's own; it runs once however often it was asked for.
pub(super) fn run(registered: &'static AtFork, function: extern "C" fn()) {
    let me = std::process::id();
    if registered.0.swap(me, Ordering::AcqRel) == me {
        return;
    }
    // SAFETY: the function takes and returns nothing, and is in this library, which the C library keeps in mind: where the library
    // is unloaded earlier, the function runs then.
    unsafe { libc::atexit(function) };
}

/// The process that has registered a function.
pub(super) struct AtFork(AtomicU32);

impl AtFork {
    /// No process yet.
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Whether this is that process, and not a forked child of it.
    pub(super) fn is_this_process(&self) -> bool {
        self.0.load(Ordering::Acquire) == std::process::id()
    }
}
