//! Signals that end the process: a task writes its part before it ends.
//!
//! Handlers are installed after the first LAPI_Init. For a signal that asks the process to end, the
//! profiler's handler has the watcher write the part and then does what would have happened without
//! it: it calls the handler that the program had installed, or lets the system's default end the
//! process. A signal that the program ignores stays ignored. For a signal that a fault raises, the
//! profiler installs a handler only where the program has none: a program may use such signals for
//! memory that it maps on demand. A handler that the program installs later replaces the profiler's
//! for good: it may call the profiler's, which it has found, and must not be called by that one.

use crate::signal_sets::{FAULTS, REQUESTS};
use crate::watcher;
use libc::{c_int, c_void, sigaction, siginfo_t};
use openlapi::base::loader::object_at;
use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, transmute};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

/// What was installed for each signal before. An entry is written before the profiler's handler is
/// installed, and read by that handler alone.
struct Before(UnsafeCell<[MaybeUninit<sigaction>; 32]>);
// SAFETY: written before a reader exists, as above.
unsafe impl Sync for Before {}
static BEFORE: Before = Before(UnsafeCell::new([const { MaybeUninit::uninit() }; 32]));
/// The signals for which the profiler's handler has been installed, as bits.
static CAUGHT: AtomicU32 = AtomicU32::new(0);

/// Installs the handlers. In the child of a fork, which inherits its parent's, this does
/// nothing for those.
pub fn catch() {
    for signal in REQUESTS.into_iter().chain(FAULTS) {
        // SAFETY: `sigaction` fills in the first structure; the second is made of it, and its
        // handler is ours.
        unsafe {
            let mut before: sigaction = std::mem::zeroed();
            if libc::sigaction(signal, null(), &mut before) != 0 || !wanted(signal, &before) {
                continue;
            }
            (*BEFORE.0.get())[signal as usize].write(before);
            CAUGHT.fetch_or(1 << signal, Ordering::Relaxed);
            let mut ours = before;
            ours.sa_sigaction = on_signal as *const () as usize;
            ours.sa_flags = libc::SA_SIGINFO
                | if before.sa_sigaction == libc::SIG_DFL {
                    libc::SA_RESTART | libc::SA_ONSTACK
                } else {
                    before.sa_flags & (libc::SA_RESTART | libc::SA_ONSTACK | libc::SA_NODEFER)
                };
            libc::sigaction(signal, &ours, null_mut());
        }
    }
}

/// Whether the profiler takes the place of what is installed for this signal.
fn wanted(signal: c_int, before: &sigaction) -> bool {
    let default = before.sa_sigaction == libc::SIG_DFL;
    let ignored = before.sa_sigaction == libc::SIG_IGN;
    // Of the child of a fork: ours is there, or one that may lead to it.
    let later = CAUGHT.load(Ordering::Relaxed) & 1 << signal != 0;
    default || of_library(before) || (REQUESTS.contains(&signal) && !later && !ignored)
}

/// Whether LAPI has installed it: it describes a fault (LAPI_BACKTRACE), and ends the process.
fn of_library(before: &sigaction) -> bool {
    // SAFETY: both texts end with a zero.
    object_at(before.sa_sigaction)
        .is_some_and(|object| unsafe { !libc::strstr(object.file.as_ptr(), c"liblapi_r".as_ptr()).is_null() })
}

/// Async-signal-safe: atomics, system calls and the program's own handler.
unsafe extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: errno is the thread's own.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: written before this handler was installed.
    let before = unsafe { (*BEFORE.0.get())[signal as usize].assume_init_ref() };
    let ends = before.sa_sigaction == libc::SIG_DFL;
    if watcher::watches() {
        // Of a fault, LAPI's own handler is replaced at most, which ends the process too.
        watcher::ask(signal, ends || FAULTS.contains(&signal));
    }
    // SAFETY: errno is the thread's own.
    unsafe { *libc::__errno_location() = errno };
    if ends {
        // SAFETY: the arguments of this handler.
        return unsafe { default(signal, info) };
    }
    if before.sa_flags & libc::SA_RESETHAND != 0 {
        reset(signal);
    }
    // SAFETY: the program's handler, of the type that its flags say, gets what the
    // system has passed.
    unsafe {
        if before.sa_flags & libc::SA_SIGINFO != 0 {
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = transmute(before.sa_sigaction);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(c_int) = transmute(before.sa_sigaction);
            handler(signal);
        }
    }
}

/// Lets the signal end the process as it would have done without the profiler.
///
/// # Safety
///
/// `info` is what a signal handler got.
unsafe fn default(signal: c_int, info: *const siginfo_t) {
    reset(signal);
    // A fault is raised again by the same instruction when this handler returns, so that a core
    // file shows where. A signal that a process has sent is sent again; it is blocked until this
    // handler returns.
    // SAFETY: as the caller says.
    let sent = unsafe { (*info).si_code } <= 0;
    if sent || REQUESTS.contains(&signal) {
        // SAFETY: no preconditions.
        unsafe { libc::raise(signal) };
    }
}

fn reset(signal: c_int) {
    // SAFETY: all zeroes is the system's default with no flags and an empty mask.
    unsafe {
        let default: sigaction = std::mem::zeroed();
        libc::sigaction(signal, &default, null_mut());
    }
}
