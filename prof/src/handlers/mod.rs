//! The time in the program's handlers, as far as they can be reached.
//!
//! A header handler that the origin names by an index is called through the target's table, so the target puts a
//! wrapper there. One that the origin names by its address is called by the library itself, at an address that only
//! the program knows: it is not timed, and neither is the completion handler that it names. Completion handlers of a wrapped
//! header handler, and the handlers that LAPI_Xfer takes at the origin, get a wrapper of their own.

mod header;
mod loans;

pub use header::{wrapped_by, wrapper_of};
pub use loans::{completion, give_up, send_completion};

use std::sync::atomic::{AtomicU64, Ordering};

/// Handlers that were not timed because there were too many at once.
static UNTIMED: AtomicU64 = AtomicU64::new(0);

/// How many handlers were not timed for want of room.
pub fn untimed() -> u64 {
    UNTIMED.load(Ordering::Relaxed)
}

fn not_timed() {
    UNTIMED.fetch_add(1, Ordering::Relaxed);
}

/// Forgets what was counted; for the child of a fork.
pub fn fork_child() {
    UNTIMED.store(0, Ordering::Relaxed);
}
