//! The link of this process with its launcher: a program of LAPI is one task.

use crate::at_exit::{Registered, run};
use crate::environment::process_env;
use openlapi::job::Link;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Null until it is needed. Not a `OnceLock`: a child that is forked in the middle of it would wait
/// for ever.
static LINK: AtomicPtr<Link> = AtomicPtr::new(ptr::null_mut());

static ENDS: Registered = Registered::by_none();

/// The link of this process. A child of fork has its parent's, whose conversation with the launcher
/// it cannot continue.
pub fn link() -> &'static Link {
    let mut found = LINK.load(Ordering::Acquire);
    if found.is_null() {
        let new = Box::into_raw(Box::new(Link::new(process_env)));
        match LINK.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => found = new,
            Err(theirs) => {
                // SAFETY: made from a box right above, and not shared.
                drop(unsafe { Box::from_raw(new) });
                found = theirs;
            }
        }
    }
    // SAFETY: made from a box, and never freed once it is in `LINK`.
    unsafe { &*found }
}

/// The conversation with the launcher may have begun: it ends when the process exits.
pub fn end_at_exit() {
    extern "C" fn end() {
        if ENDS.is_this_process() {
            link().leave();
        }
    }
    run(&ENDS, end);
}

/// In the child of a fork: it is not a task of the parent's job.
pub fn forget_in_child() {
    // SAFETY: null, or made from a box and never freed.
    if let Some(link) = unsafe { LINK.load(Ordering::Acquire).as_ref() } {
        link.ends().forget();
    }
}
