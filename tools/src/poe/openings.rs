//! The file in which the tasks count how often they have opened LAPI (`LAPI_JOB_FD`): a task may be
//! a script that starts several programs, and those of one job that belong together find each other
//! by these counts. Tasks on several machines also exchange their addresses in it.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::stat::fstat;
use openlapi::wire::board;

/// The lowest number of its descriptor: none that programs use for themselves. Where the limit of
/// open files is no higher, half of that.
const FIRST_PLACE: RawFd = 101;

/// The file, and how tasks find it.
pub(super) struct Openings {
    file: OwnedFd,
    /// Where a task reports that it has changed the file.
    bell: Option<OwnedFd>,
    partition: String,
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
        Ok(Self { file: place(&made)?, bell: None, partition: partition.to_owned() })
    }

    /// The file once more, for the process that passes changes on, and the socket that has a
    /// message after each change.
    pub(super) fn share(&mut self) -> io::Result<(File, UnixDatagram)> {
        let (bell, theirs) = UnixDatagram::pair()?;
        bell.set_nonblocking(true)?;
        self.bell = Some(place(&theirs)?);
        Ok((File::from(self.file.try_clone()?), bell))
    }

    /// The value of the variable.
    pub(super) fn value(&self) -> io::Result<String> {
        let mut value = String::new();
        for fd in [Some(&self.file), self.bell.as_ref()].into_iter().flatten() {
            let before = if value.is_empty() { "" } else { ":" };
            let _ = write!(value, "{before}{}:{}", fd.as_raw_fd(), fstat(fd)?.st_ino);
        }
        Ok(format!("{value}@{}", self.partition))
    }

    /// For [`inherit`].
    pub(super) fn numbers(&self) -> [Option<RawFd>; 2] {
        [Some(self.file.as_raw_fd()), self.bell.as_ref().map(AsRawFd::as_raw_fd)]
    }
}

/// A copy of a descriptor with a number that programs do not use for themselves.
fn place(made: &impl AsFd) -> io::Result<OwnedFd> {
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let first = if limit > FIRST_PLACE as u64 { FIRST_PLACE } else { limit as RawFd / 2 };
    let number = fcntl(made.as_fd(), FcntlArg::F_DUPFD_CLOEXEC(first))?;
    // SAFETY: just made, and owned by nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// In the child, just before it becomes the task's program: it inherits these. Only
/// makes system calls.
pub(super) fn inherit(numbers: [Option<RawFd>; 2]) {
    for number in numbers.into_iter().flatten() {
        // SAFETY: changes a flag of a descriptor of this process alone.
        unsafe { libc::fcntl(number, libc::F_SETFD, 0) };
    }
}
