//! What must be done when the program forks. The child has none of the parent's contexts
//! (`capi` forgets them) and none of its threads; it may open contexts of its own. The parent
//! is not affected.
//!
//! Locks of a context need no care: nothing in the child refers to that context any more.

use crate::{console, environment, link, report};
use openlapi::base::descriptor::sockets;
use openlapi::base::{asymmetric_barrier, known_threads, thread};
use openlapi::dgsp::registry;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes sure that a forked child has no contexts: their threads, and what names them in the job,
/// are the parent's. `in_child` forgets those of one interface, and calls [`in_child`]. The first
/// call of that interface registers it, and notes that in `registered`.
///
/// `registered` is no [`std::sync::Once`]: a child that is forked in the middle of it would wait
/// for ever. Functions that two threads, or two interfaces, have registered are called twice, which
/// does no harm.
pub fn prepare(registered: &AtomicBool, in_child: extern "C" fn()) {
    extern "C" fn before_fork() {
        before();
    }
    extern "C" fn after_fork() {
        in_parent();
    }
    if !registered.load(Ordering::Acquire) {
        // SAFETY: the functions stay as long as the library.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
        registered.store(true, Ordering::Release);
    }
}

/// Before the fork, in the thread that forks.
fn before() {
    // What is determined once must be determined now: if another thread were about to do that, the
    // child would wait for it.
    asymmetric_barrier::registered();
    asymmetric_barrier::own_registered();
    environment::files();
    registry::before_fork();
    sockets::before_fork();
}

/// After the fork, in the parent.
fn in_parent() {
    sockets::after_fork();
    registry::after_fork();
}

/// After the fork, in the child.
pub fn in_child() {
    sockets::close_in_child();
    registry::after_fork();
    thread::forget_in_child();
    known_threads::forget_in_child();
    report::thread::forget_in_child();
    link::forget_in_child();
    // The child is not a task until it opens a context of its own.
    console::set_task(None);
}
