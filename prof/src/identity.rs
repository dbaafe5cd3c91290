//! The number of this task, how many there are, and when the task began: known from the
//! first LAPI_Init on.

use openlapi::base::clock;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The number of this task; meaningless before the first LAPI_Init.
static TASK: AtomicU32 = AtomicU32::new(0);
/// How many tasks there are; 0 before the first LAPI_Init.
static TASKS: AtomicU32 = AtomicU32::new(0);
/// The tasks with which this one uses shared memory, itself included; null before the first
/// LAPI_Init. A list is never freed: another thread may read it.
static SHARING: AtomicPtr<Vec<u32>> = AtomicPtr::new(null_mut());
static TICKS: AtomicU64 = AtomicU64::new(0);
static MONOTONIC: AtomicU64 = AtomicU64::new(0);
static REALTIME: AtomicU64 = AtomicU64::new(0);
static CPU: AtomicU64 = AtomicU64::new(0);

/// Starts the clock.
pub fn begin() {
    CPU.store(now(libc::CLOCK_PROCESS_CPUTIME_ID), Ordering::Relaxed);
    let (ticks, monotonic) = both_clocks();
    // In this order: the ticks say that the clock runs.
    REALTIME.store(now(libc::CLOCK_REALTIME) - (now(libc::CLOCK_MONOTONIC) - monotonic), Ordering::Relaxed);
    MONOTONIC.store(monotonic, Ordering::Relaxed);
    TICKS.store(ticks, Ordering::Relaxed);
}

/// Sets the number of this task, how many there are, and with which of them this one uses
/// shared memory.
pub fn set(task: u32, tasks: u32, sharing: Vec<u32>) {
    SHARING.store(Box::into_raw(Box::new(sharing)), Ordering::Release);
    TASK.store(task, Ordering::Relaxed);
    TASKS.store(tasks, Ordering::Relaxed);
}

/// Forgets everything; for the child of a fork.
pub fn fork_child() {
    TASKS.store(0, Ordering::Relaxed);
    TICKS.store(0, Ordering::Relaxed);
}

/// The beginning, in ticks: just before the first LAPI_Init.
#[inline]
pub fn origin() -> u64 {
    TICKS.load(Ordering::Relaxed)
}

/// The number of this task.
pub fn task() -> u32 {
    TASK.load(Ordering::Relaxed)
}

/// Whether this task and that one use shared memory, or are the same.
pub fn shares_memory(task: u32) -> bool {
    // SAFETY: null, or made from a box and never freed.
    let sharing = unsafe { SHARING.load(Ordering::Acquire).as_ref() };
    sharing.is_none_or(|sharing| sharing.contains(&task))
}

/// How many tasks there are; 0 before the first LAPI_Init.
#[inline]
pub fn tasks() -> u32 {
    TASKS.load(Ordering::Relaxed)
}

/// The time since the beginning, and the length of a tick.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The beginning, in ns of the clock of the day.
    pub started: u64,
    /// The time since then, in ns.
    pub wall: u64,
    /// How long the process has used a processor since then, in ns.
    pub cpu: u64,
    /// Nanoseconds for each tick.
    pub tick: f64,
}

impl Span {
    /// From the beginning until now.
    pub fn now() -> Self {
        let (ticks, monotonic) = both_clocks();
        let (ticks, wall) = (ticks - origin(), monotonic - MONOTONIC.load(Ordering::Relaxed));
        let tick = if ticks == 0 { 1.0 } else { wall as f64 / ticks as f64 };
        let cpu = now(libc::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(CPU.load(Ordering::Relaxed));
        Self { started: REALTIME.load(Ordering::Relaxed), wall, cpu, tick }
    }

    /// A number of ticks in ns.
    pub fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.tick) as u64
    }
}

/// The ticks and the monotonic clock of one moment. Another task may get the processor between two
/// readings, and in a short job that would change the length of a tick: of a few tries the
/// shortest counts.
fn both_clocks() -> (u64, u64) {
    let read = || {
        let (before, monotonic, after) = (clock::ticks(), now(libc::CLOCK_MONOTONIC), clock::ticks());
        (after.saturating_sub(before), (before, monotonic))
    };
    (0..5).map(|_| read()).min_by_key(|(apart, _)| *apart).map_or((0, 0), |(_, both)| both)
}

fn now(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives during the call, which cannot fail for a clock that
    // every Linux has.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
