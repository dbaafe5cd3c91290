//! The task's connection to its launcher: a socket that the launcher has left to it.
//! `wire::launcher` has the messages.
//!
//! LAPI_REPORT_FD names it by number and inode, and says whether the launcher only looks on
//! (`looks`): such a one asks for what a viewer shows, and gets nothing else. The program may be
//! a script that starts the LAPI program, or may have closed all descriptors and opened files of
//! its own, so the inode is compared before every use: what is not the launcher's socket any more
//! is never written to.
//! While a task uses it no program that the task starts inherits it: two readers would take each
//! other's requests.

use crate::base::descriptor::Foreign;
use crate::config::Env;
use crate::wire::launcher::{Cause, FromLauncher, FromTask, LONGEST, LOOKS};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// How long a message waits for the launcher to make room.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The socket. The descriptor stays open when this is dropped: the next context of the
/// task will want it.
pub struct LauncherSocket {
    socket: Foreign,
    /// The launcher only looks on: reports are printed here, and nothing is said unasked.
    looks: bool,
}

impl LauncherSocket {
    /// The socket that the environment names, if it exists.
    pub fn from_env(env: &Env<'_>) -> Option<Self> {
        let value = env("LAPI_REPORT_FD")?;
        let (number, rest) = value.trim().split_once(':')?;
        let (inode, looks) = match rest.split_once(':') {
            Some((inode, LOOKS)) => (inode, true),
            Some(_) => return None,
            None => (rest, false),
        };
        let socket = Self { socket: Foreign::parse(number, inode)?, looks };
        let fd = socket.fd()?;
        let _ = fcntl_setfd(fd, FdFlags::CLOEXEC);
        Some(socket)
    }

    /// The socket's descriptor, where messages arrive; `None` when it does not exist any more.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.socket.socket()
    }

    /// The next message that has arrived, if one has that is understood.
    pub fn receive(&self) -> Option<FromLauncher> {
        // Most calls find nothing, and need no memory.
        recv(self.fd()?, &mut [0; 1][..], RecvFlags::DONTWAIT | RecvFlags::PEEK).ok()?;
        let mut bytes = vec![0; LONGEST];
        loop {
            let (count, _) = recv(self.fd()?, &mut bytes[..], RecvFlags::DONTWAIT).ok()?;
            if let Some(message) = FromLauncher::decode(&String::from_utf8_lossy(&bytes[..count])) {
                return Some(message);
            }
        }
    }

    /// Sends one message; `false` when the launcher is gone, does not read for a second, or does
    /// not want it.
    pub fn send(&self, message: &FromTask) -> bool {
        let reply = matches!(message, FromTask::Report(report) if matches!(report.cause, Cause::Looked(_)));
        if self.looks && !reply {
            return false;
        }
        let text = message.encode();
        let until = Instant::now() + TIMEOUT;
        loop {
            let Some(fd) = self.fd() else { return false };
            match send(fd, text.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(_) => return true,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return false,
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let left = left.try_into().ok();
            let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)], left.as_ref());
        }
    }
}

impl Drop for LauncherSocket {
    fn drop(&mut self) {
        if let Some(fd) = self.fd() {
            let _ = fcntl_setfd(fd, FdFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::fstat;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixDatagram;

    fn named(fd: i32, inode: u64) -> Option<LauncherSocket> {
        LauncherSocket::from_env(&move |name| (name == "LAPI_REPORT_FD").then(|| format!("{fd}:{inode}")))
    }

    #[test]
    fn messages_go_both_ways() {
        let (here, there) = UnixDatagram::pair().expect("sockets");
        let inode = fstat(&there).expect("a socket").st_ino;
        let socket = named(there.as_raw_fd(), inode).expect("the socket exists");
        assert!(socket.receive().is_none());
        here.send(b"an unknown message").expect("room");
        here.send(FromLauncher::Ask(3).encode().as_bytes()).expect("room");
        assert_eq!(socket.receive(), Some(FromLauncher::Ask(3)));
        let message = FromTask::Ready { pid: 12 };
        assert!(socket.send(&message));
        let mut bytes = vec![0; 512];
        let count = here.recv(&mut bytes).expect("a message");
        assert_eq!(FromTask::decode(&String::from_utf8_lossy(&bytes[..count])), Some(message));
    }

    #[test]
    fn who_only_looks_gets_what_he_has_asked_for() {
        let (here, there) = UnixDatagram::pair().expect("sockets");
        let (fd, inode) = (there.as_raw_fd(), fstat(&there).expect("a socket").st_ino);
        let of = |rest: &'static str| {
            let value = format!("{fd}:{inode}{rest}");
            LauncherSocket::from_env(&move |name| (name == "LAPI_REPORT_FD").then(|| value.clone()))
        };
        assert!(of(":others").is_none() && of(":").is_none(), "another version");
        let socket = of(":looks").expect("the socket exists");
        let report = |cause: &str| {
            let text = format!("LAPI-REPORT 1 {cause}\npid 1\n\n");
            FromTask::decode(&text).expect("a report")
        };
        for unasked in [FromTask::Ready { pid: 12 }, report("stall"), report("signal"), report("asked 3")] {
            assert!(!socket.send(&unasked), "{unasked:?}");
        }
        assert!(socket.send(&report("looked 3")));
        here.send(FromLauncher::Look(4).encode().as_bytes()).expect("room");
        assert_eq!(socket.receive(), Some(FromLauncher::Look(4)));
        let mut bytes = vec![0; 512];
        let count = here.recv(&mut bytes).expect("a message");
        assert_eq!(FromTask::decode(&String::from_utf8_lossy(&bytes[..count])), Some(report("looked 3")));
        here.set_nonblocking(true).expect("it is a socket");
        assert!(here.recv(&mut bytes).is_err(), "nothing else");
    }

    #[test]
    fn what_is_not_the_socket_is_not_used() {
        let (here, there) = UnixDatagram::pair().expect("sockets");
        let inode = fstat(&there).expect("a socket").st_ino;
        assert!(named(there.as_raw_fd(), inode + 100_000).is_none(), "another inode");
        let file = std::fs::File::open("/dev/null").expect("a file");
        assert!(named(file.as_raw_fd(), fstat(&file).expect("a file").st_ino).is_none(), "no socket");
        assert!(named(-1, inode).is_none() && named(1 << 20, inode).is_none(), "not open");
        for text in ["", "7", "a:b", ":"] {
            assert!(LauncherSocket::from_env(&move |_| Some(text.to_owned())).is_none(), "{text}");
        }
        let socket = named(there.as_raw_fd(), inode).expect("the socket exists");
        // As a program does that closes everything and opens a file of its own.
        let mut there: std::os::fd::OwnedFd = there.into();
        rustix::io::dup2(&file, &mut there).expect("another file in its place");
        assert!(!socket.send(&FromTask::Ready { pid: 1 }) && socket.receive().is_none());
        drop(here);
    }
}
