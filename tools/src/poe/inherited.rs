//! What `poe` was started with and changes for itself: its mask of signals, and what some of them
//! do. The programs that it starts get back what it was started with.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::error::Error;

/// Signals that do something else in `poe` than in the tasks.
const CHANGED: [Signal; 3] = [Signal::SIGCHLD, Signal::SIGPIPE, Signal::SIGXFSZ];

/// What `poe` was started with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inherited {
    /// The signals that were blocked.
    pub mask: SigSet,
    /// Which of [`CHANGED`] were ignored.
    ignored: [bool; CHANGED.len()],
}

impl Inherited {
    /// Notes it, and begins to ignore what would end `poe` without a word: a file that may not
    /// grow is an error. `poe` takes note of the end of its children, also if the process that
    /// started it did not want to.
    pub(super) fn take() -> Result<Self, Error> {
        let failed = |errno| Error::system("signals", errno);
        let own = Self::note().map_err(failed)?;
        set(Signal::SIGCHLD, false).map_err(failed)?;
        set(Signal::SIGXFSZ, true).map_err(failed)?;
        Ok(own)
    }

    /// Notes it, and changes nothing.
    pub(super) fn note() -> nix::Result<Self> {
        let mut ignored = [false; CHANGED.len()];
        for (signal, ignored) in CHANGED.into_iter().zip(&mut ignored) {
            *ignored = is_ignored(signal);
        }
        Ok(Self { mask: SigSet::thread_get_mask()?, ignored })
    }

    /// The signals for a launcher: it must take note of the end of its children.
    pub(super) fn for_launcher(mut self) -> Self {
        let children = CHANGED.iter().position(|signal| *signal == Signal::SIGCHLD);
        self.ignored[children.expect("it is one of them")] = false;
        self
    }

    /// In a child that is about to become another program. Only makes system calls.
    pub(super) fn restore(&self) -> io::Result<()> {
        for (signal, ignored) in CHANGED.into_iter().zip(self.ignored) {
            set(signal, ignored)?;
        }
        Ok(self.mask.thread_set_mask()?)
    }
}

/// Ignores a signal, or lets it do what it does by default.
fn set(signal: Signal, ignored: bool) -> nix::Result<()> {
    let handler = if ignored { SigHandler::SigIgn } else { SigHandler::SigDfl };
    let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    // SAFETY: no handler is installed or replaced: this program has none for these signals.
    unsafe { sigaction(signal, &action) }.map(drop)
}

/// Whether this process was started to ignore a signal.
fn is_ignored(signal: Signal) -> bool {
    if signal == Signal::SIGPIPE { PIPE_WAS_IGNORED.load(Ordering::Relaxed) } else { now_ignored(signal) }
}

/// Whether this process ignores a signal now.
pub(crate) fn now_ignored(signal: Signal) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: writes into `action` alone, which is as large as it wants; all zeros are
    // a value of it.
    unsafe {
        libc::sigaction(signal as i32, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Rust's run-time ignores SIGPIPE before `main`: what was inherited is seen before that only.
static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

#[used]
// SAFETY: the section has addresses of functions that are called before `main`, and this is one.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn note() {
        PIPE_WAS_IGNORED.store(now_ignored(Signal::SIGPIPE), Ordering::Relaxed);
    }
    note
};
