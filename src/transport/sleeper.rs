//! One descriptor on which the threads of a task sleep: over an event of the task's own, others
//! that are watched for good and, while it is watched, the descriptor of the network.

use crate::base::descriptor::Descriptor;
use rustix::event::epoll;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};

pub(super) struct Sleeper {
    event: Descriptor,
    epoll: Descriptor,
    /// The network's descriptor is watched by `epoll`.
    watching: bool,
    /// Something has happened since the task was last armed that a thread waits for.
    noted: bool,
    /// A thread may sleep.
    pub(super) armed: bool,
}

impl Sleeper {
    pub(super) fn new() -> Result<Self, Errno> {
        let event = Descriptor::event()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &event, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        Ok(Self { event, epoll: Descriptor::new(epoll), watching: false, noted: false, armed: false })
    }

    /// Watches another descriptor for good.
    pub(super) fn add(&self, other: BorrowedFd<'_>) -> Result<(), Errno> {
        let epoll = self.epoll.get().ok_or(Errno::BADF)?;
        epoll::add(epoll, other, epoll::EventData::new_u64(2), epoll::EventFlags::IN)
    }

    /// Something may have happened that a thread waits for.
    #[inline]
    pub(super) fn note(&mut self, happened: bool) {
        self.noted |= happened;
    }

    /// Whether it has since this was last asked.
    pub(super) fn take_noted(&mut self) -> bool {
        std::mem::take(&mut self.noted)
    }

    /// Whether a thread may sleep that is to learn of something.
    #[inline]
    pub(super) fn must_signal(&self) -> bool {
        self.armed && self.noted
    }

    /// Makes the descriptor readable, unless the program has closed the event.
    pub(super) fn signal(&self) {
        self.event.signal();
    }

    /// Takes back the signals so far.
    pub(super) fn clear(&self) {
        self.event.drain();
    }

    /// Watches the descriptor of the network, or not any more: the same one as before. Whether that
    /// is so now; where there is nothing to watch, it is. What the program has opened under the
    /// number of the task's own is left alone.
    pub(super) fn watch(&mut self, network: Option<BorrowedFd<'_>>, wanted: bool) -> bool {
        let Some(network) = network.filter(|_| self.watching != wanted) else { return true };
        let Some(epoll) = self.epoll.get() else { return false };
        let done = if wanted {
            epoll::add(epoll, network, epoll::EventData::new_u64(1), epoll::EventFlags::IN)
        } else {
            epoll::delete(epoll, network)
        };
        if done.is_ok() {
            self.watching = wanted;
        }
        done.is_ok()
    }
}

impl AsFd for Sleeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::os::unix::net::UnixStream;

    #[test]
    fn sockets_of_the_program_under_its_numbers_are_not_closed() {
        let sleeper = Sleeper::new().expect("descriptors");
        let numbers = [sleeper.event.as_fd().as_raw_fd(), sleeper.epoll.as_fd().as_raw_fd()];
        let replaced = numbers.map(|number| {
            let (own, other) = UnixStream::pair().expect("sockets");
            // SAFETY: the library is to see that the number is not its own any more.
            assert_eq!(unsafe { libc::dup2(own.as_raw_fd(), number) }, number);
            // SAFETY: from now on the number is the program's.
            (unsafe { UnixStream::from_raw_fd(number) }, other)
        });
        sleeper.signal();
        sleeper.clear();
        drop(sleeper);
        for (mut own, mut other) in replaced {
            own.write_all(b"x").expect("it is open");
            let mut found = [0];
            other.read_exact(&mut found).expect("it is open");
            assert_eq!(&found, b"x", "nothing else was written");
        }
    }

    #[test]
    fn what_the_program_waits_with_under_its_number_is_not_changed() {
        let mut sleeper = Sleeper::new().expect("descriptors");
        let (network, _other) = UnixStream::pair().expect("sockets");
        let own = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor");
        let number = sleeper.epoll.as_fd().as_raw_fd();
        // SAFETY: the library is to see that the number is not its own any more.
        assert_eq!(unsafe { libc::dup2(own.as_raw_fd(), number) }, number);
        assert!(!sleeper.watch(Some(network.as_fd()), true));
        assert_eq!(epoll::delete(&own, &network), Err(Errno::NOENT), "it was added");
        assert_eq!(sleeper.add(network.as_fd()), Err(Errno::BADF));
        // What both of them watch stays watched.
        sleeper.watching = true;
        epoll::add(&own, &network, epoll::EventData::new_u64(1), epoll::EventFlags::IN).expect("room");
        assert!(!sleeper.watch(Some(network.as_fd()), false));
        assert_eq!(epoll::delete(&own, &network), Ok(()), "it was taken out");
        drop(sleeper);
        // SAFETY: from now on the number is the program's.
        drop(unsafe { std::os::fd::OwnedFd::from_raw_fd(number) });
    }
}
