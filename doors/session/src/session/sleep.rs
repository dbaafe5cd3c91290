//! One descriptor for all that ends the sleep of an event loop.

use crate::error::{Error, Result};
use crate::watch::{Watch, add};
use rustix::event::epoll;
use rustix::fs::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// The descriptors of one session.
pub struct Descriptors {
    epoll: OwnedFd,
    timer: OwnedFd,
}

impl Descriptors {
    /// Those of a session with this descriptor of its core.
    ///
    /// # Errors
    /// [`Error::Limit`], [`Error::System`].
    pub fn open(core: BorrowedFd<'_>, watch: &Watch) -> Result<Self> {
        let all = || {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let timer =
                timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            add(&epoll, core)?;
            add(&epoll, timer.as_fd())?;
            watch.register(&epoll)?;
            Ok(Self { epoll, timer })
        };
        all().map_err(|error: rustix::io::Errno| Error::system("the descriptor of a session")(error.into()))
    }

    /// The sleep ends at this time.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn until(&self, due: Instant) -> Result<()> {
        // 0 would be never.
        let left = due.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let timespec = |time: Duration| Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        let timer = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(left) };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer)
            .map(drop)
            .map_err(|error| Error::System("the timer of a session", error.into()))
    }
}

impl AsFd for Descriptors {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
