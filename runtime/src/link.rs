//! The link of this process with its launcher: a program of LAPI is one task.

use crate::at_exit::{Registered, run};
use crate::environment::process_env;
use crate::once::Once;
use openlapi::job::Link;

static LINK: Once<Link> = Once::new();

static ENDS: Registered = Registered::by_none();

/// The link of this process. A child of fork has its parent's, whose conversation with the launcher
/// it cannot continue.
pub fn link() -> &'static Link {
    LINK.get(|| Link::new(process_env))
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
    if let Some(link) = LINK.made() {
        link.ends().forget();
    }
}
