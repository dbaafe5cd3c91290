//! Functions that run when the process ends by `exit`, or by returning from `main`.

use openlapi::base::sync::{AtomicU32, Ordering};

/// Runs a function when this process exits. In a forked child the function asks `registered`, which
/// is the function's own; it runs once however often it was asked for.
pub fn run(registered: &'static Registered, function: extern "C" fn()) {
    let me = std::process::id();
    if registered.0.swap(me, Ordering::AcqRel) == me {
        return;
    }
    // SAFETY: the function takes and returns nothing, and is in this library, which the C library
    // keeps in mind: where the library is unloaded earlier, the function runs then.
    unsafe { libc::atexit(function) };
}

/// The process that has registered a function.
pub struct Registered(AtomicU32);

impl Registered {
    /// No process yet.
    pub const fn by_none() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Whether this is that process, and not a forked child of it.
    pub fn is_this_process(&self) -> bool {
        self.0.load(Ordering::Acquire) == std::process::id()
    }
}
