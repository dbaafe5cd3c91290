//! This process: which task it is, how many handles are open, when it reports.

use crate::{handlers, part, record, settings};
use openlapi::base::clock;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

/// The number of this task; meaningless before the first LAPI_Init.
static TASK: AtomicU32 = AtomicU32::new(0);
/// How many tasks there are; 0 before the first LAPI_Init.
static TASKS: AtomicU32 = AtomicU32::new(0);
static OPEN: AtomicI32 = AtomicI32::new(0);
/// Whether anything was done since the last report.
static UNTOLD: AtomicBool = AtomicBool::new(false);
/// Whether a thread reports.
static REPORTING: AtomicBool = AtomicBool::new(false);
static TICKS: AtomicU64 = AtomicU64::new(0);
static MONOTONIC: AtomicU64 = AtomicU64::new(0);
static REALTIME: AtomicU64 = AtomicU64::new(0);

/// The beginning, in ticks: just before the first LAPI_Init.
#[inline]
pub fn origin() -> u64 {
    TICKS.load(Ordering::Relaxed)
}

/// The number of this task.
pub fn task() -> u32 {
    TASK.load(Ordering::Relaxed)
}

/// How many tasks there are; 0 when that is not known yet.
#[inline]
pub fn tasks() -> u32 {
    TASKS.load(Ordering::Relaxed)
}

/// Time since the beginning, and what a tick is worth.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The beginning, in ns of the clock of the day.
    pub started: u64,
    /// How long ago that was, in ns.
    pub wall: u64,
    /// Nanoseconds for each tick.
    pub tick: f64,
}

impl Span {
    /// From the beginning until now.
    pub fn now() -> Self {
        let (ticks, wall) =
            (clock::ticks() - origin(), now(libc::CLOCK_MONOTONIC) - MONOTONIC.load(Ordering::Relaxed));
        let tick = if ticks == 0 { 1.0 } else { wall as f64 / ticks as f64 };
        Self { started: REALTIME.load(Ordering::Relaxed), wall, tick }
    }

    /// So many ticks in ns.
    pub fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.tick) as u64
    }
}

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
    if origin() == 0 {
        settings::warn();
        REALTIME.store(now(libc::CLOCK_REALTIME), Ordering::Relaxed);
        MONOTONIC.store(now(libc::CLOCK_MONOTONIC), Ordering::Relaxed);
        TICKS.store(clock::ticks(), Ordering::Relaxed);
    }
    part::remove_stale(OPEN.load(Ordering::Relaxed) == 0);
}

/// After a LAPI_Init that succeeded.
pub fn opened(task: u32, tasks: u32) {
    if self::tasks() == 0 {
        TASK.store(task, Ordering::Relaxed);
        TASKS.store(tasks, Ordering::Relaxed);
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
        part::report();
    }
    REPORTING.store(false, Ordering::Release);
}

/// A program that ends without LAPI_Term is reported all the same, if it ends by exit.
extern "C" fn at_exit() {
    if tasks() != 0 {
        report();
    }
}

/// The child of a fork has no handle, and what its parent did is the parent's to tell.
extern "C" fn fork_child() {
    record::fork_child();
    record::EVENTS.fork_child();
    handlers::fork_child();
    TASKS.store(0, Ordering::Relaxed);
    TICKS.store(0, Ordering::Relaxed);
    OPEN.store(0, Ordering::Relaxed);
    UNTOLD.store(false, Ordering::Relaxed);
    REPORTING.store(false, Ordering::Relaxed);
}

fn now(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives during the call, which cannot fail for a clock that every Linux has.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
