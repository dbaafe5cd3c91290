//! How many sessions of this process have an endpoint of libfabric over connections of TCP.
//!
//! `ofi_rxm` gives each endpoint 2,048 buffers for a packet, and takes no smaller number: 71 MB for
//! a session. UDP needs a few hundred KiB, so further sessions use it where both sides may.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Sessions at a time that have such an endpoint though UDP would do.
const MOST: usize = 4;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The right to one of the endpoints; given back when this is dropped.
pub(super) struct Endpoint(());

impl Endpoint {
    /// `None`: as many sessions have one as may.
    pub(super) fn take() -> Option<Self> {
        let more = |taken| (taken < MOST).then_some(taken + 1);
        let taken = TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        // One that was not taken must not be made: its drop would give one back.
        taken.is_ok().then(|| Self(()))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        TAKEN.fetch_sub(1, Ordering::Relaxed);
    }
}
