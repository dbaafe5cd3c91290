//! Marks of open files that have no inode of their own: all event, timer and epoll descriptors of a
//! machine have one in common, and before Linux 6.9 those of processes, too. A program that has
//! closed those of the library (closefrom(3)), and has opened its own under their numbers, is found
//! out by the mark alone.
//!
//! The mark is the number of the signal that an open file sends where O_ASYNC is set (F_SETSIG).
//! That is never set for these; so the number means nothing, and costs one system call to look at.
//! It belongs to the open file: a process that is passed the descriptor finds the mark, too.

use rustix::fs::{FileType, fstat};
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Requests of fcntl, the same on every machine.
const F_SETSIG: c_int = 10;
const F_GETSIG: c_int = 11;

/// Programs that have signals sent for their own files ask for SIGIO or for one of real time, which
/// have higher numbers.
const MARKS: u32 = 28;

/// The system has refused a mark.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// The mark of a descriptor of the library; two of them seldom have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(c_int);

/// Whether this is a descriptor that shares its inode with others.
fn is_anonymous(fd: impl AsFd) -> bool {
    fstat(fd).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Unknown)
}

/// Marks a descriptor that was just opened, if it needs one.
pub(super) fn set(fd: impl AsFd) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    if !is_anonymous(&fd) {
        return;
    }
    let mark = 1 + NEXT.fetch_add(1, Ordering::Relaxed) % MARKS;
    // SAFETY: it changes nothing but this number.
    if unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), F_SETSIG, mark) } != 0 {
        REFUSED.store(true, Ordering::Relaxed);
    }
}

/// The mark that the descriptor has now.
pub(super) fn of(fd: impl AsFd) -> Option<Mark> {
    // SAFETY: it reads a number.
    let found = unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), F_GETSIG) };
    (1..=MARKS as c_int).contains(&found).then_some(Mark(found))
}

/// Whether this number names a descriptor of the library that has a mark, or would have one if the
/// system had not refused it.
pub(super) fn is_ours(fd: impl AsFd) -> bool {
    of(&fd).is_some() || REFUSED.load(Ordering::Relaxed) && is_anonymous(fd)
}
