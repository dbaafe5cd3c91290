//! A process by its number and its start, and whether it still runs.

use super::descriptor::Descriptor;
use super::poll::await_readable;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// A process, as other processes of its numbering find it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The process number.
    pub pid: u32,
    /// When it was started, in ticks since the start of the kernel: another process that gets the
    /// number later has another time. 0: unknown.
    pub started: u64,
}

impl Process {
    /// The calling one.
    pub fn own() -> Self {
        Self::of(std::process::id())
    }

    /// The one that has this number now.
    pub fn of(pid: u32) -> Self {
        Self { pid, started: Stat::of(pid).map_or(0, |stat| stat.started) }
    }

    /// A number that the processes that follow each other as one task do not share.
    pub fn life(self) -> u32 {
        self.pid ^ (self.started as u32).rotate_left(12)
    }

    /// Whether it is known to have ended. One whose start is unknown is not.
    pub fn is_gone(self) -> bool {
        self.started != 0 && Handle::open(self).is_none()
    }
}

/// What `/proc/PID/stat` says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The number of the process that has started it, or has taken its place.
    pub parent: u32,
    /// When the process was started, as [`Process::started`] has it.
    pub started: u64,
    /// All its threads have ended, but it was not waited for. While some go on after the first
    /// one has ended, the state is that of the dead one, too.
    ended: bool,
}

impl Stat {
    /// What `/proc` says of the process with this number. `None` when no process has it, when the
    /// process is hidden (programs that may not be read are, where `/proc` is mounted with
    /// `hidepid`), and where `/proc` has the numbers of another namespace (`unshare --pid` leaves
    /// it as it was).
    pub fn of(pid: u32) -> Option<Self> {
        let own = std::process::id();
        let name = if pid == own { "self".to_owned() } else { pid.to_string() };
        let known = pid == own || std::fs::read_link("/proc/self").is_ok_and(|link| link == own.to_string());
        known.then(|| Self::parse(&std::fs::read(format!("/proc/{name}/stat")).ok()?))?
    }

    fn parse(text: &[u8]) -> Option<Self> {
        // Its name, in parentheses, may contain anything.
        let after = text.iter().rposition(|byte| *byte == b')')? + 1;
        let mut words = std::str::from_utf8(&text[after..]).ok()?.split_ascii_whitespace();
        let state = words.next()?;
        // The 4th, the 20th and the 22nd word of all; the state is the third.
        let parent = words.next()?.parse().ok()?;
        let threads: u64 = words.nth(15)?.parse().ok()?;
        let started = words.nth(1)?.parse().ok()?;
        Some(Self { parent, started, ended: state == "X" || state == "Z" && threads <= 1 })
    }
}

/// Whether a watched process still runs.
#[derive(Debug)]
pub struct Handle {
    process: Process,
    /// `None` where the system has none.
    descriptor: Option<Descriptor>,
}

impl Handle {
    /// Begins to watch a process; `None` when it has ended. The system is asked for the number:
    /// that `/proc` does not show a process says nothing.
    pub fn open(process: Process) -> Option<Self> {
        #[cfg(test)]
        if let Some(runs) = super::simulation::runs(process) {
            return runs.then_some(Self { process, descriptor: None });
        }
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw)?;
        let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
            // No process's number, or that of a thread of another process.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return None,
            Ok(fd) if is_readable(fd.as_fd()) => return None,
            Ok(fd) => Some(Descriptor::new(fd)),
            // The system has no such descriptors, or refuses them.
            Err(_) if test_kill_process(pid) == Err(Errno::SRCH) => return None,
            Err(_) => None,
        };
        // Another process may have got the number since: it is looked at after the
        // descriptor was opened.
        let other = Stat::of(process.pid).is_some_and(|found| {
            process.started != 0 && found.started != process.started || descriptor.is_none() && found.ended
        });
        (!other).then_some(Self { process, descriptor })
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        // The program may have closed the descriptor, and opened its own under the number: where it
        // says that the process has ended, the system is asked again. The number of one that was
        // waited for may be another process's: the descriptor itself knows.
        match self.descriptor.as_ref().and_then(Descriptor::get) {
            Some(fd) if !is_readable(fd) => return false,
            Some(fd) if was_waited_for(fd) => return true,
            Some(_) | None => {}
        }
        match Self::open(self.process) {
            Some(again) => {
                *self = again;
                false
            }
            None => true,
        }
    }
}

/// A process's descriptor is, when all its threads have ended.
fn is_readable(fd: BorrowedFd<'_>) -> bool {
    await_readable(&[fd], Some(Duration::ZERO))[0]
}

/// Whether this is the descriptor of a process that has ended, and that another one has waited for.
fn was_waited_for(fd: BorrowedFd<'_>) -> bool {
    let (no_signal, nothing, no_flags) = (0, std::ptr::null::<libc::siginfo_t>(), 0);
    // SAFETY: it sends nothing, and reads nothing of this process.
    let sent =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd.as_raw_fd(), no_signal, nothing, no_flags) };
    sent != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
