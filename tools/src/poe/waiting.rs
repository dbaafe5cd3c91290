//! Waiting for several descriptors.

use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Waits until one of these is readable or closed, or for so long: which are. What is absent is not
/// waited for: a closed descriptor is always ready.
pub(super) fn await_any<const N: usize>(
    sources: [Option<BorrowedFd<'_>>; N],
    timeout: PollTimeout,
) -> nix::Result<[bool; N]> {
    let mut polled: Vec<_> =
        sources.iter().flatten().map(|source| PollFd::new(*source, PollFlags::POLLIN)).collect();
    match poll(&mut polled, timeout) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(errno) => return Err(errno),
    }
    let mut polled = polled.iter();
    Ok(sources.map(|source| source.is_some() && polled.next().and_then(PollFd::any).unwrap_or_default()))
}
