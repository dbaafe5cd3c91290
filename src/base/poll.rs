//! Waiting for descriptors.

use rustix::event::{PollFd, PollFlags, Timespec};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Waits until one of the descriptors is readable; returns which are.
pub fn await_readable(descriptors: &[BorrowedFd<'_>], at_most: Option<Duration>) -> Vec<bool> {
    let mut polled: Vec<_> =
        descriptors.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let limit = at_most
        .map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) });
    // An interrupted or failed wait is a wait that ended early: every caller checks again anyway.
    let _ = rustix::event::poll(&mut polled, limit.as_ref());
    polled.iter().map(|fd| !fd.revents().is_empty()).collect()
}
