//! The thread that writes a task's part before the task ends: every LAPIPROF_INTERVAL seconds,
//! and at a signal.
//!
//! Neither allocation nor a lock is allowed in a signal handler, so the handler only stores the
//! signal's number in a word, wakes this thread, and waits for it in the kernel ([`ask`]). The wait
//! has a limit: the interrupted thread may hold a lock of the C library that this thread needs.

use crate::settings;
use crate::signal_sets::{Blocked, name};
use openlapi::base::patient;
use rustix::event::Timespec;
use rustix::thread::futex::{self, Flags};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a signal's handler waits for the part. poe kills tasks 5 s after it has
/// asked them to end.
const LIMIT: Duration = Duration::from_secs(3);

/// In place of a signal's number: the task calls `_exit`.
pub const EXIT: i32 = 1000;

/// The process whose signals are watched; 0: none. Not the same as the process that asks in the
/// child of a fork, or of a clone that ran no handlers of pthread_atfork.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// The watcher's own thread.
static THREAD: AtomicI32 = AtomicI32::new(0);
/// The signal that asks for a part, or 0. The watcher sleeps on it.
///
/// Relaxed is enough here and in `WRITTEN`: the words carry no data but their own value, and all
/// that a part holds is read from atomics that may change at any time.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// How many parts were written because of a signal. Handlers sleep on it.
static WRITTEN: AtomicU32 = AtomicU32::new(0);
/// Whether the process ends: the part that names the reason is the last one.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Writes what the task has done so far, with the reason; and prints the table, if the flag is set.
pub type Report = fn(&str, bool);

/// Starts the thread for this process, which calls `report`; `false` when there can be none. It has
/// allocated memory when this returns: a thread's first allocation may map memory, and what the
/// program maps later must lie at the same address in all tasks.
pub fn start(report: Report) -> bool {
    ASKED.store(0, Ordering::Relaxed);
    THREAD.store(0, Ordering::Relaxed);
    ENDS.store(false, Ordering::Relaxed);
    // Inherited by the thread: the program's handlers run on the program's threads.
    let blocked = Blocked::all();
    // SAFETY: the attributes are initialised before they are used, and the function is ours.
    let failed = unsafe {
        let mut attributes = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let mut thread = std::mem::zeroed();
        let failed = libc::pthread_create(&mut thread, &attributes, run, report as *mut libc::c_void);
        libc::pthread_attr_destroy(&mut attributes);
        failed
    };
    drop(blocked);
    if failed != 0 {
        let reason = std::io::Error::from_raw_os_error(failed);
        let lost = "an interrupted task leaves no profile";
        patient::say(format!("lapiprof: no thread can be started: {reason}; {lost}\n").as_bytes());
        return false;
    }
    while THREAD.load(Ordering::Relaxed) == 0 {
        // The outcome does not matter: the word is read again.
        let _ = futex::wait(word(&THREAD), Flags::PRIVATE, 0, None);
    }
    PROCESS.store(this_process(), Ordering::Relaxed);
    true
}

/// Whether this process, as opposed to a child of it, has a watcher, and the calling thread is not
/// the watcher. Async-signal-safe.
pub fn watches() -> bool {
    PROCESS.load(Ordering::Relaxed) == this_process() && THREAD.load(Ordering::Relaxed) != this_thread()
}

/// Asks for a part because of this signal, or [`EXIT`], and waits until it is written, but no
/// longer than the limit. `ends`: the process ends afterwards, so no part of the usual kind may
/// replace this one. Async-signal-safe.
pub fn ask(signal: i32, ends: bool) {
    let before = WRITTEN.load(Ordering::Relaxed);
    if ends {
        ENDS.store(true, Ordering::Relaxed);
    }
    // When another signal has asked already, one part is enough for both.
    let _ = ASKED.compare_exchange(0, signal as u32, Ordering::Relaxed, Ordering::Relaxed);
    let _ = futex::wake(&ASKED, Flags::PRIVATE, 1);
    let until = Instant::now() + LIMIT;
    while WRITTEN.load(Ordering::Relaxed) == before {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let _ = futex::wait(&WRITTEN, Flags::PRIVATE, before, Some(&timespec(left)));
    }
}

/// The child of a fork has no watcher.
pub fn fork_child() {
    PROCESS.store(0, Ordering::Relaxed);
}

extern "C" fn run(report: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: what `start` has passed.
    let report: Report = unsafe { std::mem::transmute(report) };
    // SAFETY: this thread itself, and a zero-terminated name.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), c"lapiprof".as_ptr()) };
    // Makes the allocator's memory for this thread now.
    drop(std::hint::black_box(Box::new([0_u8; 64])));
    THREAD.store(this_thread(), Ordering::Relaxed);
    let _ = futex::wake(word(&THREAD), Flags::PRIVATE, 1);
    let settings = settings::get();
    let interval = settings.interval.filter(|_| settings.out.is_some());
    let mut next = interval.map(|interval| Instant::now() + interval);
    loop {
        if ENDS.load(Ordering::Relaxed) {
            next = None;
        }
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        if left.is_none_or(|left| !left.is_zero()) {
            let _ = futex::wait(&ASKED, Flags::PRIVATE, 0, left.map(timespec).as_ref());
        }
        let signal = ASKED.load(Ordering::Relaxed);
        if signal != 0 {
            report(reason(signal as i32), true);
            ASKED.store(0, Ordering::Relaxed);
            WRITTEN.fetch_add(1, Ordering::Relaxed);
            let _ = futex::wake(&WRITTEN, Flags::PRIVATE, i32::MAX as u32);
            next = interval.map(|interval| Instant::now() + interval);
        } else if next.is_some_and(|next| next <= Instant::now()) {
            report("running", false);
            next = interval.map(|interval| Instant::now() + interval);
        }
    }
}

fn reason(signal: i32) -> &'static str {
    if signal == EXIT { "_exit" } else { name(signal) }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

fn word(number: &AtomicI32) -> &AtomicU32 {
    // SAFETY: both have the same layout, and every value of one is a value of the other.
    unsafe { &*std::ptr::from_ref(number).cast() }
}

fn this_process() -> i32 {
    // SAFETY: no preconditions; a system call.
    unsafe { libc::getpid() }
}

fn this_thread() -> i32 {
    // SAFETY: no preconditions; a system call.
    unsafe { libc::gettid() }
}
