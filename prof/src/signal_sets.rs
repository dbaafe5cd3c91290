//! The signals that end a process, and how a thread blocks them.

use libc::c_int;
use std::ptr::null_mut;

/// Signals that ask a process to end.
pub const REQUESTS: [c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
/// Signals that a mistake of the program raises.
pub const FAULTS: [c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];

/// The name of a signal of either set.
pub fn name(signal: i32) -> &'static str {
    match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGTERM => "SIGTERM",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGABRT => "SIGABRT",
        _ => "a signal",
    }
}

/// While it lives, the calling thread gets no signal that asks for a part; or none at all.
pub struct Blocked(libc::sigset_t);

impl Blocked {
    /// Blocks the signals that ask the process to end.
    pub fn new() -> Self {
        Self::block(&REQUESTS)
    }

    /// Blocks all signals but those that a fault of the thread itself raises.
    pub fn all() -> Self {
        let all: Vec<c_int> = (1..32).filter(|signal| !FAULTS.contains(signal)).collect();
        Self::block(&all)
    }

    fn block(signals: &[c_int]) -> Self {
        // SAFETY: the sets are initialised by the calls that fill them.
        unsafe {
            let (mut set, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&mut set);
            signals.iter().for_each(|signal| {
                libc::sigaddset(&mut set, *signal);
            });
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before);
            Self(before)
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: a whole set, from `block`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, null_mut()) };
    }
}
