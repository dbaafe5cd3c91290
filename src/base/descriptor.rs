//! Descriptors by number: a program may have closed those of the library (closefrom(3)), and opened
//! something of its own under their numbers, which the library must not close.

pub mod sockets;

use super::mark::{self, Mark};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

/// What a descriptor is, on its file system.
pub type FileId = [u64; 2];

/// What the descriptor is now; `None` when it is not open.
pub fn identity(fd: impl AsFd) -> Option<FileId> {
    fstat(fd).ok().map(|found| [found.st_dev, found.st_ino])
}

/// Takes those of the numbers 0 to 2 that are not open, for as long as the process lives: sockets
/// and files of the library, and of libraries that it loads, would get them, and the program prints
/// there. Reads and writes of the program fail as before (`EBADF`), and a program that it executes
/// finds them closed.
///
/// # Errors
/// One of them is not open, and the process may open no more; the system's reason.
pub fn take_standard() -> Result<(), Errno> {
    while (0..=2).any(|number| opened(number).is_none()) {
        // A name that exists in every process, also without /dev.
        let taken = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        if taken.as_raw_fd() <= 2 {
            let _ = taken.into_raw_fd();
        }
    }
    Ok(())
}

/// A descriptor of the library. It is closed when this is dropped, unless its number is
/// another one's then.
#[derive(Debug)]
pub struct Descriptor {
    /// `None` while this is dropped alone.
    fd: Option<OwnedFd>,
    identity: Option<Identity>,
    /// A forked child closes its copy.
    is_socket: bool,
}

/// How a descriptor is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    /// An inode that no other descriptor has.
    File(FileId),
    /// The mark of one without such an inode.
    Mark(Mark),
}

impl Descriptor {
    /// One that was just opened.
    pub fn new(fd: OwnedFd) -> Self {
        mark::set(&fd);
        Self::passed(fd)
    }

    /// The socket that `open` makes, of which a forked child closes its copy ([`sockets`]).
    ///
    /// # Errors
    /// Those of `open`.
    pub fn socket<E>(open: impl FnOnce() -> Result<OwnedFd, E>) -> Result<Self, E> {
        let mut all = sockets::lock();
        let mut socket = Self::new(open()?);
        socket.is_socket = true;
        all.insert(socket.as_fd().as_raw_fd(), socket.identity());
        Ok(socket)
    }

    /// An event descriptor ([`Self::signal`]).
    ///
    /// # Errors
    /// The process may open no more; the system's reason.
    pub fn event() -> Result<Self, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Self::new)
    }

    /// One that another process has opened and passed to this one.
    pub fn passed(fd: OwnedFd) -> Self {
        let identity = mark::of(&fd).map(Identity::Mark);
        let identity = identity.or_else(|| identity_of_file(&fd));
        Self { fd: Some(fd), identity, is_socket: false }
    }

    /// What it was when it was opened; `None` for one without an inode of its own.
    fn identity(&self) -> Option<FileId> {
        match self.identity? {
            Identity::File(file) => Some(file),
            Identity::Mark(_) => None,
        }
    }

    /// The descriptor, if it is still what it was: one system call.
    pub fn get(&self) -> Option<BorrowedFd<'_>> {
        let fd = self.fd.as_ref()?.as_fd();
        let now = match self.identity? {
            Identity::File(_) => identity_of_file(fd),
            Identity::Mark(_) => mark::of(fd).map(Identity::Mark),
        };
        (now == self.identity).then_some(fd)
    }

    /// Makes an event descriptor readable, unless the program has closed it.
    pub fn signal(&self) {
        if let Some(event) = self.get() {
            // It fails only when the count is at its top: then the descriptor is readable already.
            let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
        }
    }

    /// Takes back the signals of an event descriptor so far.
    pub fn drain(&self) {
        if let Some(event) = self.get() {
            // Nothing to read means that there was no signal.
            let _ = rustix::io::read(event, &mut [0; 8]);
        }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("it is open until it is dropped").as_fd()
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        let own = self.get().is_some();
        let Some(fd) = self.fd.take() else { return };
        let number = fd.as_raw_fd();
        if own {
            drop(fd);
        } else {
            let _ = fd.into_raw_fd();
        }
        if self.is_socket {
            sockets::forget(number, self.identity());
        }
    }
}

/// A descriptor that another program has opened, such as the launcher, by number and inode: the
/// program may have closed it, and opened another one in its place. It is never closed here.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    number: i32,
    inode: u64,
}

impl Foreign {
    /// The one that a launcher names, by number and inode.
    pub fn parse(number: &str, inode: &str) -> Option<Self> {
        Some(Self { number: number.parse().ok()?, inode: inode.parse().ok()? })
    }

    /// The socket that has this number now.
    pub fn socket_now(number: i32) -> Option<Self> {
        let (_, found) = opened(number).filter(|(_, found)| is_socket(found))?;
        Some(Self { number, inode: found.st_ino })
    }

    /// The descriptor and what it is, if it is still the same one; to be used at once, since the
    /// program may close it.
    pub fn get(self) -> Option<(BorrowedFd<'static>, Stat)> {
        opened(self.number).filter(|(_, found)| found.st_ino == self.inode)
    }

    /// The descriptor, if it is still the same one and a socket; as [`Self::get`].
    pub fn socket(self) -> Option<BorrowedFd<'static>> {
        self.get().filter(|(_, found)| is_socket(found)).map(|(fd, _)| fd)
    }
}

fn identity_of_file(fd: impl AsFd) -> Option<Identity> {
    identity(fd).map(Identity::File)
}

fn opened(number: i32) -> Option<(BorrowedFd<'static>, Stat)> {
    if number < 0 {
        return None;
    }
    // SAFETY: looked at only to see whether it is what it should be, and used right after that.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    Some((fd, fstat(fd).ok()?))
}

fn is_socket(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Socket
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::poll::is_event;
    use rustix::event::{Timespec, epoll};
    use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create, timerfd_gettime};
    use std::io::{Read, Write};
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_number_of_another_one_is_not_closed() {
        let (own, mut other) = UnixStream::pair().expect("sockets");
        let own = Descriptor::new(own.into());
        assert!(own.get().is_some());
        drop(own);
        assert_eq!(other.read(&mut [0]).expect("an end"), 0);
        // As a program does that has closed everything, and opens something of its own.
        let (own, mut other) = UnixStream::pair().expect("sockets");
        let fd = OwnedFd::from(own);
        let mut wrong = Descriptor::new(fd.try_clone().expect("a copy"));
        wrong.identity = Some(Identity::File([0, 0]));
        let number = wrong.as_fd().as_raw_fd();
        assert!(wrong.get().is_none());
        drop(wrong);
        drop(fd);
        // SAFETY: it was not closed, and nothing else owns it.
        let mut kept = UnixStream::from(unsafe { OwnedFd::from_raw_fd(number) });
        kept.write_all(b"x").expect("it is open");
        other.read_exact(&mut [0]).expect("it is open");
    }

    /// A number, and what looks whether it can be used as one of this kind.
    type Kind = (fn() -> OwnedFd, fn(BorrowedFd<'_>) -> bool);

    /// All descriptors of these kinds have one inode.
    #[test]
    fn the_number_of_another_one_of_its_kind_is_not_closed() {
        let kinds: [Kind; 3] = [
            (
                || eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor"),
                |fd| rustix::io::write(fd, &1_u64.to_ne_bytes()).is_ok(),
            ),
            (
                || epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor"),
                |fd| epoll::wait(fd, &mut [MaybeUninit::uninit(); 1], Some(&Timespec::default())).is_ok(),
            ),
            (
                || timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).expect("a timer"),
                |fd| timerfd_gettime(fd).is_ok(),
            ),
        ];
        for (open, works) in kinds {
            let own = Descriptor::new(open());
            let passed = Descriptor::passed(own.as_fd().try_clone_to_owned().expect("a copy"));
            assert!(own.get().is_some() && passed.get().is_some() && is_event(own.as_fd()));
            let (number, open_now) = (own.as_fd().as_raw_fd(), open());
            // SAFETY: as a program does that has closed everything, and opens something of its own.
            assert_eq!(unsafe { libc::dup2(open_now.as_raw_fd(), number) }, number);
            assert!(own.get().is_none() && passed.get().is_some() && !is_event(own.as_fd()));
            drop(own);
            // SAFETY: it was not closed, and nothing else owns it.
            let kept = unsafe { OwnedFd::from_raw_fd(number) };
            assert!(works(kept.as_fd()), "it is open");
        }
    }
}
