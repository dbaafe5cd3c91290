//! Waits for operations on several connections.

use super::connection::Connection;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

/// How long a thread looks for progress before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// How long it sleeps at most, where another thread sleeps on the descriptors.
const NAP: Duration = Duration::from_micros(200);
/// How long it sleeps at most on the descriptors: they end the sleep.
const SLEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Waits until a condition holds that operations on these connections make true, or none of these
/// is under way any more: other connections may have got some meanwhile.
pub fn until(connections: &[Arc<Connection>], condition: impl Fn() -> bool) {
    let busy: Vec<&Arc<Connection>> = connections.iter().filter(|one| one.open() != 0).collect();
    if busy.is_empty() {
        // An operation begins, or ends, in another thread.
        return std::thread::yield_now();
    }
    let condition = || condition() || busy.iter().all(|one| one.open() == 0);
    if let [only] = busy[..] {
        return only.wait(condition);
    }
    // One thread of the process arms sessions at a time.
    static SLEEPER: Mutex<()> = Mutex::new(());
    let mut last = Instant::now();
    while !condition() {
        let mut moved = false;
        for one in &busy {
            moved |= one.progress();
        }
        if moved {
            last = Instant::now();
        } else if last.elapsed() < SPIN {
            std::thread::yield_now();
        } else {
            match SLEEPER.try_lock() {
                Ok(_) | Err(TryLockError::Poisoned(_)) => sleep(&busy, &condition),
                Err(TryLockError::WouldBlock) => std::thread::sleep(NAP),
            }
        }
    }
}

fn sleep(connections: &[&Arc<Connection>], condition: &impl Fn() -> bool) {
    let mut may_sleep = true;
    for one in connections {
        may_sleep &= one.arm();
    }
    if may_sleep && !condition() {
        let mut all: Vec<_> =
            connections.iter().map(|one| PollFd::from_borrowed_fd(one.descriptor(), PollFlags::IN)).collect();
        // A signal ends it, too.
        let _ = poll(&mut all, Some(&SLEEP));
    }
    for one in connections {
        one.progress();
    }
}
