//! Whether this process is a child of the one that has connected: it has no use of its parent's
//! connections, whose memory both share.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// How many calls of fork lie between the first process and this one.
#[inline]
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Counts from now on.
pub fn watch() {
    extern "C" fn child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the function changes one atomic number.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(child)) };
    });
}
