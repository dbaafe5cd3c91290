//! The course of this process: how many handles are open, and when it reports.

use crate::{handlers, identity, merge, part, record, settings};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static OPEN: AtomicI32 = AtomicI32::new(0);
/// Whether anything was done since the last report.
static UNTOLD: AtomicBool = AtomicBool::new(false);
/// Whether a thread reports.
static REPORTING: AtomicBool = AtomicBool::new(false);

/// Before any LAPI_Init: the first one starts the clock.
pub fn before_init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: functions of ours that take nothing and live as long as the process does.
        unsafe {
            libc::pthread_atfork(None, None, Some(fork_child));
            libc::atexit(at_exit);
        }
    });
    if identity::origin() == 0 {
        settings::warn();
        identity::begin();
    }
    part::remove_stale(OPEN.load(Ordering::Relaxed) == 0);
}

/// After a LAPI_Init that succeeded.
pub fn opened(task: u32, tasks: u32) {
    if identity::tasks() == 0 {
        identity::set(task, tasks);
        if settings::get().out.is_some() {
            record::EVENTS.open(settings::get().events);
        }
    }
    OPEN.fetch_add(1, Ordering::Relaxed);
    UNTOLD.store(true, Ordering::Relaxed);
}

/// After a LAPI_Term that succeeded: the last one reports.
pub fn closed() {
    if OPEN.fetch_sub(1, Ordering::AcqRel) == 1 {
        report();
    }
}

fn report() {
    // A second thread that comes here has opened and closed a handle meanwhile: what it did is told at its next end.
    if REPORTING.swap(true, Ordering::Acquire) {
        return;
    }
    if UNTOLD.swap(false, Ordering::Relaxed) {
        let part = part::print();
        let written = settings::get().out.as_ref().map_or(Ok(()), |out| {
            part::write(out, &part)?;
            merge::if_complete(out, &part)
        });
        if let Err(error) = written {
            eprintln!("lapiprof: task {}: {error}", part.task);
        }
    }
    REPORTING.store(false, Ordering::Release);
}

/// A program that ends without LAPI_Term is reported all the same, if it ends by exit.
extern "C" fn at_exit() {
    if identity::tasks() != 0 {
        report();
    }
}

/// The child of a fork has no handle, and what its parent did is the parent's to tell.
extern "C" fn fork_child() {
    record::fork_child();
    record::EVENTS.fork_child();
    handlers::fork_child();
    identity::fork_child();
    OPEN.store(0, Ordering::Relaxed);
    UNTOLD.store(false, Ordering::Relaxed);
    REPORTING.store(false, Ordering::Relaxed);
}
