//! Waiting for descriptors.

use super::mark;
use rustix::event::{PollFd, PollFlags};
#[cfg(test)]
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Waits until one of the descriptors is readable; returns which are.
pub fn await_readable(descriptors: &[BorrowedFd<'_>], at_most: Option<Duration>) -> Vec<bool> {
    let mut polled: Vec<_> =
        descriptors.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    #[cfg(test)]
    if let Some(readable) = super::simulation::readable(at_most, || {
        let _ = rustix::event::poll(&mut polled, Some(&rustix::event::Timespec::default()));
        let timers = descriptors.iter().map(|fd| super::simulation::timer_is_due(fd.as_raw_fd()));
        let readable: Vec<bool> =
            polled.iter().zip(timers).map(|(fd, due)| due || !fd.revents().is_empty()).collect();
        (readable.contains(&true), readable)
    }) {
        return readable;
    }
    let limit = at_most.and_then(|time| time.try_into().ok());
    // An interrupted or failed wait is a wait that ended early: every caller checks again anyway.
    let _ = rustix::event::poll(&mut polled, limit.as_ref());
    polled.iter().map(|fd| !fd.revents().is_empty()).collect()
}

/// A thread whose event descriptor the program has closed looks for news this often.
const BLIND: Duration = Duration::from_millis(1);

/// Whether this number names an event, timer or epoll descriptor of the library, one that
/// [`Descriptor::new`] was given. A program may have closed all descriptors (closefrom(3)) and
/// opened its own, which the library must neither read nor write. Costs a system call.
///
/// [`Descriptor::new`]: super::descriptor::Descriptor::new
pub fn is_event(descriptor: BorrowedFd<'_>) -> bool {
    mark::is_ours(descriptor)
}

/// [`await_readable`] for event and timer descriptors. One that the program has closed is not
/// readable, and while there is such a one the wait ends after a millisecond.
pub fn await_events<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    at_most: Option<Duration>,
) -> [bool; N] {
    let open = descriptors.map(is_event);
    let limit =
        if open.contains(&false) { Some(at_most.map_or(BLIND, |time| time.min(BLIND))) } else { at_most };
    let polled: Vec<_> =
        descriptors.into_iter().zip(open).filter(|(_, open)| *open).map(|(fd, _)| fd).collect();
    let mut ready = await_readable(&polled, limit).into_iter();
    open.map(|open| open && ready.next().unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::descriptor::Descriptor;
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
    use std::os::fd::AsFd;

    #[test]
    fn a_file_in_the_place_of_an_event_descriptor_is_none() {
        let event = eventfd(1, EventfdFlags::CLOEXEC).expect("an event descriptor");
        let theirs = event.try_clone().expect("a copy");
        assert!(!is_event(theirs.as_fd()), "the program's");
        let event = Descriptor::new(event);
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).expect("a timer");
        let timer = Descriptor::new(timer);
        let file = std::fs::File::open("/proc/self/exe").expect("a file");
        let (pipe, _write) = rustix::pipe::pipe().expect("a pipe");
        assert!(is_event(event.as_fd()) && is_event(timer.as_fd()));
        assert!(!is_event(file.as_fd()) && !is_event(pipe.as_fd()));
        // A file is always readable.
        assert_eq!(await_events([file.as_fd(), event.as_fd()], None), [false, true]);
        assert_eq!(await_events([file.as_fd(), timer.as_fd()], None), [false, false]);
    }
}
