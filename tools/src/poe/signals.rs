//! The signals of `poe` itself: they are queued, and taken between its other work.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::PollTimeout;
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::error::{Error, say_more};
use super::inherited::Inherited;
use super::processes::bit;
use super::waiting::await_any;

/// How often messages that have found no room are tried again.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// The signals that `poe` takes in its own time instead of being interrupted.
pub(super) struct Signals {
    queue: SignalFd,
    inherited: Inherited,
}

impl Signals {
    /// Begins to queue all signals that mean something to a job. What `poe` was started to ignore
    /// stays ignored.
    pub(super) fn take(inherited: Inherited) -> Result<Self, Error> {
        let failed = |errno: Errno| Error::system("signals", errno);
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let meant = [
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGQUIT,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
            Signal::SIGTSTP,
            Signal::SIGCONT,
        ];
        let taken: SigSet = meant.into_iter().filter(|signal| !bit(&status, "SigIgn:", *signal)).collect();
        taken.thread_block().map_err(failed)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let queue = SignalFd::with_flags(&taken, flags).map_err(failed)?;
        Ok(Self { queue, inherited })
    }

    /// What the tasks get back.
    pub(super) fn inherited(&self) -> Inherited {
        self.inherited
    }

    /// Waits until all that was said has found room. A signal that ends a job ends that.
    pub(super) fn await_readers(&self) {
        while say_more() && self.next_end().is_none() {
            let looks_again = PollTimeout::try_from(LOOK).expect("a short time");
            let _ = await_any([Some(self.as_fd())], looks_again);
        }
    }

    /// Where no tasks are left: a signal that ends a job. Others stop `poe`, or do nothing.
    pub(super) fn next_end(&self) -> Option<Signal> {
        std::iter::from_fn(|| self.next()).find(|signal| match signal {
            Signal::SIGTSTP => {
                let _ = raise(Signal::SIGSTOP);
                false
            }
            Signal::SIGCONT | Signal::SIGUSR1 | Signal::SIGUSR2 => false,
            _ => true,
        })
    }

    pub(super) fn next(&self) -> Option<Signal> {
        let info = self.queue.read_signal().ok()??;
        Signal::try_from(info.ssi_signo as i32).ok()
    }
}

impl AsFd for Signals {
    /// Readable when there is a next signal.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
