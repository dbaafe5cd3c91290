//! The life of this process as the profiler sees it: how many handles are open, and when
//! the task reports.
//!
//! A task reports at its last LAPI_Term, or at exit. While handles are open, [`crate::watcher`]
//! writes what the task has done so far, every few seconds and when a signal ends the process.

use crate::{handlers, identity, long_calls, merge, part, record, settings, signal_sets, signals, watcher};
use openlapi::base::{loader, patient};
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

static OPEN: AtomicI32 = AtomicI32::new(0);
/// Whether the task has done anything since its last report.
static UNREPORTED: AtomicBool = AtomicBool::new(false);

/// Held by the thread that writes a report. The child of a fork makes its own: the parent's may be
/// locked there by a thread that the child does not have.
static WRITING: AtomicPtr<Mutex<()>> = AtomicPtr::new(null_mut());

/// Before any LAPI_Init: the first one starts the clock.
pub fn before_init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        loader::prepare();
        record::prepare();
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

/// After a LAPI_Init that succeeded. `sharing` returns the tasks with which this one uses
/// shared memory.
pub fn opened(task: u32, tasks: u32, sharing: impl FnOnce() -> Vec<u32>) {
    let first = identity::tasks() == 0;
    if first {
        identity::set(task, tasks, sharing());
        record::reserve();
        long_calls::watch();
        handlers::watch();
        record::repeated::watch();
        record::set_period(settings::get().sample);
        if settings::get().out.is_some() {
            record::EVENTS.open(settings::get().events);
        }
    }
    OPEN.fetch_add(1, Ordering::Relaxed);
    UNREPORTED.store(true, Ordering::Relaxed);
    if first && watcher::start(report_interim) {
        signals::catch();
    }
}

/// After a LAPI_Term that succeeded: the last one reports.
pub fn closed() {
    if OPEN.fetch_sub(1, Ordering::AcqRel) == 1 {
        report();
    }
}

/// Writes what the task has done so far, before its end. `why`: the reason, which the part names.
/// `table`: prints the table too.
fn report_interim(why: &str, table: bool) {
    let _writing = writing();
    if !UNREPORTED.load(Ordering::Relaxed) {
        return;
    }
    let part = part::gather(Some(why));
    if let Some(out) = settings::get().out.as_ref() {
        complain(part.task, part::write(out, &part));
    }
    if table {
        part::print(&part);
    }
}

/// The report at the end of the task.
fn report() {
    // A signal whose handler waits for the watcher must not interrupt the thread for which the
    // watcher waits.
    let _blocked = signal_sets::Blocked::new();
    let _writing = writing();
    if !UNREPORTED.swap(false, Ordering::Relaxed) {
        return;
    }
    let part = part::gather(None);
    part::print(&part);
    let written = settings::get().out.as_ref().map_or(Ok(()), |out| {
        part::write(out, &part)?;
        merge::if_complete(out, &part)
    });
    complain(part.task, written);
}

fn complain(task: u32, written: Result<(), String>) {
    if let Err(error) = written {
        patient::say(format!("lapiprof: task {task}: {error}\n").as_bytes());
    }
}

/// Waits until no other thread writes a report.
fn writing() -> MutexGuard<'static, ()> {
    let mut lock = WRITING.load(Ordering::Acquire);
    if lock.is_null() {
        let fresh = Box::into_raw(Box::new(Mutex::new(())));
        match WRITING.compare_exchange(null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => lock = fresh,
            Err(other) => {
                // SAFETY: made above, and seen by this thread alone.
                drop(unsafe { Box::from_raw(fresh) });
                lock = other;
            }
        }
    }
    // SAFETY: made as a box and never freed once it is here.
    let lock = unsafe { &*lock.cast_const() };
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports a program that exits without LAPI_Term.
extern "C" fn at_exit() {
    if identity::tasks() != 0 {
        report();
    }
}

/// The child of a fork has no handle, and its parent reports what the parent did.
extern "C" fn fork_child() {
    record::fork_child();
    record::EVENTS.fork_child();
    identity::fork_child();
    watcher::fork_child();
    OPEN.store(0, Ordering::Relaxed);
    UNREPORTED.store(false, Ordering::Relaxed);
    WRITING.store(ptr::null_mut(), Ordering::Relaxed);
}
