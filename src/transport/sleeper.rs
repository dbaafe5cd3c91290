//! One descriptor on which the threads of a task sleep: over an event of the task's own and, while
//! it is watched, the descriptors of the network.

use crate::base::poll::is_event;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

pub(super) struct Sleeper {
    event: OwnedFd,
    epoll: OwnedFd,
    /// The network's descriptors are watched by `epoll`.
    watching: bool,
}

impl Sleeper {
    pub(super) fn new() -> Result<Self, Errno> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &event, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        Ok(Self { event, epoll, watching: false })
    }

    /// Makes the descriptor readable, unless the program has closed the event.
    pub(super) fn signal(&self) {
        if is_event(self.event.as_fd()) {
            // It fails only when the count is at its top: then the descriptor is readable already.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }

    /// Takes back the signals so far.
    pub(super) fn clear(&self) {
        if is_event(self.event.as_fd()) {
            // Nothing to read means that there was no signal.
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
    }

    /// Watches the descriptors of the network, or not any more: the same ones as before. Whether
    /// that is so now; where there is nothing to watch, it is.
    pub(super) fn watch<'a>(
        &mut self,
        network: impl IntoIterator<Item = BorrowedFd<'a>, IntoIter: Clone>,
        wanted: bool,
    ) -> bool {
        if self.watching == wanted {
            return true;
        }
        let network = network.into_iter();
        let remove = |descriptor| epoll::delete(&self.epoll, descriptor);
        let add = |descriptor| {
            epoll::add(&self.epoll, descriptor, epoll::EventData::new_u64(1), epoll::EventFlags::IN)
        };
        let done =
            if wanted { network.clone().try_for_each(add) } else { network.clone().try_for_each(remove) };
        match done {
            Ok(()) => self.watching = wanted && network.clone().next().is_some(),
            Err(_) if wanted => network.for_each(|descriptor| _ = remove(descriptor)),
            Err(_) => {}
        }
        done.is_ok()
    }
}

impl AsFd for Sleeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
