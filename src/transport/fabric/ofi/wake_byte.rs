//! The byte by which libfabric's provider `tcp` wakes its own sleepers.
//!
//! Whenever an operation on a connection ends, the provider of libfabric 1.17 writes a byte to a pair of sockets, unless the byte before
//! was not read yet; it reads the byte when it is polled next, and is then polled once more. That is three of the six system calls of
//! a small message. The socket is one of the members of a set of descriptors (epoll), beside the provider's connections. When it is
//! taken out of the set, the first byte is not read, and no other one is written.
//!
//! What comes from the network still wakes a sleeper, by the connections. Only an operation that ends in a call of this task, while another
//! of its threads sleeps, does not. Nor does it with later versions (1.18, 1.20, 1.21, 2.2 and 2.4 were observed), which leave the descriptor
//! as it is then, whatever is in the set. So the caller asks [`Device::wakes_sleepers`] after each call in which an awaited
//! operation may end. An injected message is not awaited.

use super::Device;
use crate::transport::fabric::sockets::is_local;
use libfabric_sys::version;
use rustix::event::epoll;
use std::os::fd::{BorrowedFd, RawFd};

/// The version that was observed. Others have other sets.
const OBSERVED: u32 = version(1, 17);

impl Device {
    /// Takes the byte out of the provider's way, where that is known to be possible: whether it was. To be called before the endpoint has
    /// connections.
    pub(in crate::transport::fabric) fn drop_wake_byte(&self) -> bool {
        let observed = self.info.library.version() == OBSERVED && self.info.provider() == "tcp;ofi_rxm";
        observed && self.wait.is_some_and(remove)
    }

    /// Whether a thread that sleeps on [`Self::descriptor`] wakes when that is needed. `false` when an operation has ended in a call
    /// after [`Self::may_sleep`], and nothing in the descriptor shows it.
    #[inline]
    pub(in crate::transport::fabric) fn wakes_sleepers(&self) -> bool {
        !self.is_silent || self.may_sleep()
    }
}

/// Whether what ends in a call of this task may leave the descriptor of the completion queue as it is, with this provider.
pub(super) fn may_be_silent(provider: &str) -> bool {
    matches!(provider, "tcp" | "tcp;ofi_rxm" | "net" | "net;ofi_rxm")
}

/// Takes the socket out of the set. The queue's set has the set of the connections as a member, which has no other member than the
/// socket before the first connection. Without effect when that is not so.
fn remove(queue: RawFd) -> bool {
    let alone = |set: RawFd| match members(set)[..] {
        [socket] => Some((set, socket)),
        _ => None,
    };
    let sets: Vec<(RawFd, RawFd)> = members(queue).into_iter().filter_map(alone).collect();
    let &[(set, socket)] = &sets[..] else { return false };
    // SAFETY: both belong to the queue, which is open, and closes them when it is closed.
    let (set, socket) = unsafe { (BorrowedFd::borrow_raw(set), BorrowedFd::borrow_raw(socket)) };
    is_local(socket) && epoll::delete(set, socket).is_ok()
}

/// The members of a set of descriptors; none when it is something else.
fn members(set: RawFd) -> Vec<RawFd> {
    let text = std::fs::read_to_string(format!("/proc/thread-self/fdinfo/{set}")).unwrap_or_default();
    let member = |line: &str| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok();
    text.lines().filter_map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::fabric::{SHORTER, provider};
    use std::os::fd::{AsFd, AsRawFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    fn set(of: &[BorrowedFd<'_>]) -> OwnedFd {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a set");
        for member in of {
            epoll::add(&set, member, epoll::EventData::new_u64(0), epoll::EventFlags::IN).expect("a member");
        }
        set
    }

    #[test]
    fn the_version_that_was_observed_has_sets_as_expected() {
        let preferences = provider::Preferences {
            provider: Some("tcp;ofi_rxm".into()),
            one_machine: true,
            ..provider::Preferences::default()
        };
        let Ok((info, _)) = provider::choose(&preferences, SHORTER) else {
            eprintln!("SKIPPED: no provider tcp;ofi_rxm");
            return;
        };
        let observed = info.library.version() == OBSERVED;
        let device = Device::open(info, 4, SHORTER, true).map_err(|(what, _)| what).expect("an endpoint");
        assert_eq!(device.drop_wake_byte(), observed);
    }

    #[test]
    fn only_the_socket_that_is_alone_in_a_set_is_removed() {
        let (one, other) = UnixStream::pair().expect("a pair");
        let (connections, events) = (set(&[one.as_fd()]), set(&[one.as_fd(), other.as_fd()]));
        let queue = set(&[one.as_fd(), events.as_fd(), connections.as_fd()]);
        assert!(remove(queue.as_raw_fd()));
        assert_eq!(members(connections.as_raw_fd()), []);
        assert_eq!(members(events.as_raw_fd()).len(), 2);
        assert_eq!(members(queue.as_raw_fd()).len(), 3);
        assert!(!remove(queue.as_raw_fd()), "it was removed");
    }

    #[test]
    fn nothing_is_removed_from_sets_that_are_not_as_expected() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
        let (first, second, third) = (set(&[one.as_fd()]), set(&[one.as_fd()]), set(&[listener.as_fd()]));
        let two = set(&[first.as_fd(), second.as_fd()]);
        let of_network = set(&[third.as_fd()]);
        for queue in [&two, &of_network, &first] {
            assert!(!remove(queue.as_raw_fd()));
        }
        assert_eq!([&first, &second, &third].map(|set| members(set.as_raw_fd()).len()), [1; 3]);
        assert_eq!(members(one.as_raw_fd()), []);
    }
}
