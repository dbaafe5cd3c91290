//! The file in which the tasks count how often they have opened LAPI (`LAPI_JOB_FD`): a task may be a script that starts several
//! programs, and those of one job that belong together find each other by these counts.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::stat::fstat;
use openlapi::wire::board;

/// The lowest number of its descriptor: none that programs use for themselves.
const FIRST_PLACE: RawFd = 101;

/// The file, and how tasks find it.
pub(super) struct Openings {
    file: OwnedFd,
    /// The value of the variable.
    pub value: String,
}

impl Openings {
    /// Makes the file for `tasks` tasks of the job with this number.
    pub(super) fn create(tasks: usize, partition: &str) -> io::Result<Self> {
        // SAFETY: the name ends, and the call makes a descriptor that is owned by nothing else.
        let made = unsafe {
            let number = libc::memfd_create(c"lapi-job".as_ptr(), libc::MFD_CLOEXEC);
            if number < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(number)
        };
        nix::unistd::ftruncate(&made, board::size(tasks as u32) as libc::off_t)?;
        let number = fcntl(&made, FcntlArg::F_DUPFD_CLOEXEC(FIRST_PLACE))?;
        // SAFETY: just made, and owned by nothing else.
        let file = unsafe { OwnedFd::from_raw_fd(number) };
        let value = format!("{number}:{}@{partition}", fstat(&file)?.st_ino);
        Ok(Self { file, value })
    }

    /// For [`inherit`].
    pub(super) fn number(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// In the child, just before it becomes the task's program: it inherits the file. Only makes a system call.
pub(super) fn inherit(number: RawFd) {
    // SAFETY: changes a flag of a descriptor of this process alone.
    unsafe { libc::fcntl(number, libc::F_SETFD, 0) };
}
