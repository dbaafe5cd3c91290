//! How often this process has called gm_init, which a forked child has not.

use super::{CURRENT, Slot, current};
use openlapi_runtime::fork;
use openlapi_runtime::once::Once;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often gm_init was called more than gm_finalize. A forked child begins with another one,
/// because a thread of the parent may have this one locked for ever there.
static COUNT: Once<Mutex<usize>> = Once::new();

/// How often gm_init was called more than gm_finalize, for the one that calls either.
pub fn count() -> MutexGuard<'static, usize> {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    fork::prepare(&REGISTERED, forget_in_child);
    COUNT.get(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The threads that serve the parent's ports are not in the child, nor is the memory of its job.
/// The child has no part in what its parent keeps from others.
extern "C" fn forget_in_child() {
    if let Some(world) = current() {
        world.slots.iter().for_each(Slot::forget_in_child);
        world.carrier.forget_in_child();
    }
    CURRENT.store(ptr::null_mut(), Ordering::Release);
    COUNT.forget();
    fork::in_child();
}
