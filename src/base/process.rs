//! A process by its number and its start, and whether it still runs.

use super::poll::await_readable;
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::time::Duration;

/// A process, as other processes of its numbering find it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it was started, in ticks since the start of the kernel: another process that gets the number later has another time.
    /// 0: unknown.
    pub started: u64,
}

impl Process {
    /// The calling one.
    pub fn own() -> Self {
        Self::of(std::process::id())
    }

    /// The one that has this number now.
    pub fn of(pid: u32) -> Self {
        Self { pid, started: started(pid).unwrap_or_default() }
    }

    /// A number that the processes that follow each other as one task do not share.
    pub fn life(self) -> u32 {
        self.pid ^ (self.started as u32).rotate_left(12)
    }

    /// Whether it is known to have ended, by its number alone: two files of the system are read. One whose start is unknown is not.
    pub fn is_gone(self) -> bool {
        #[cfg(test)]
        if let Some(runs) = super::simulation::runs(self) {
            return !runs;
        }
        self.started != 0 && started(self.pid) != Some(self.started) && started(std::process::id()).is_some()
    }
}

/// When the process with this number was started; `None` when there is none that runs, or where that cannot be read.
fn started(pid: u32) -> Option<u64> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // Its name, in parentheses, may contain anything.
    let after = text.iter().rposition(|byte| *byte == b')')? + 1;
    let mut words = std::str::from_utf8(&text[after..]).ok()?.split_ascii_whitespace();
    let state = words.next()?;
    // The 22nd word of all; the state is the third.
    let time = words.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(time)
}

/// Whether a watched process still runs.
#[derive(Debug)]
pub struct Handle {
    process: Process,
    /// Its descriptor, and what that is on its file system; `None` where the system has none.
    descriptor: Option<(OwnedFd, [u64; 2])>,
}

impl Handle {
    /// Begins to watch a process; `None` when it has ended.
    pub fn open(process: Process) -> Option<Self> {
        #[cfg(test)]
        if super::simulation::active() {
            return (!process.is_gone()).then_some(Self { process, descriptor: None });
        }
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw)?;
        let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return None,
            opened => opened.ok().and_then(|fd| identity(&fd).map(|identity| (fd, identity))),
        };
        // The descriptor may be that of a process that has got the number since: it is looked at after it was opened.
        (!process.is_gone()).then_some(Self { process, descriptor })
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        let Some((fd, known)) = &self.descriptor else { return self.process.is_gone() };
        if identity(fd) == Some(*known) {
            return await_readable(&[fd.as_fd()], Some(Duration::ZERO))[0];
        }
        // The program has closed the descriptor; its number may name one of the program's own.
        if let Some((fd, _)) = self.descriptor.take() {
            let _ = fd.into_raw_fd();
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

fn identity(fd: &OwnedFd) -> Option<[u64; 2]> {
    fstat(fd).ok().map(|found| [found.st_dev, found.st_ino])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    fn of(child: &std::process::Child) -> Process {
        Process { pid: child.id(), started: started(child.id()).expect("it runs") }
    }

    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
        let process = of(&child);
        let mut handle = Handle::open(process).expect("it runs");
        let mut blind = Handle { process, descriptor: None };
        let mut late = Handle::open(process).expect("it runs");
        assert!(!handle.has_ended() && !blind.has_ended());
        // Another descriptor in the place of the handle's.
        let other = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("a descriptor");
        late.descriptor = Some((other, [0, 0]));
        assert!(!late.has_ended());
        drop(child.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(60);
        for handle in [&mut handle, &mut blind, &mut late] {
            // It has not been waited for: its number is still in use.
            while !handle.has_ended() {
                assert!(Instant::now() < deadline, "its end is not seen");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert!(Handle::open(process).is_none());
        child.wait().expect("its status");
        assert!(Handle::open(process).is_none());
    }

    #[test]
    fn another_process_with_the_number_is_not_taken_for_it() {
        let own = Process::own();
        assert!(own.started != 0 && Handle::open(own).is_some());
        let before = Process { started: own.started - 1, ..own };
        assert!(Handle::open(before).is_none() && before.life() != own.life());
    }
}
