//! A lossy device: what carries datagrams, and nothing else. The reliable core above it repairs
//! what the device and the network lose; real sockets ([`super::socket`]) and the network of a
//! simulation are devices.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// The most datagrams of a train: what the first kernels with UDP_SEGMENT take.
pub const TRAIN: usize = 64;

/// A datagram to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The address of the device that should receive it.
    pub to: SocketAddr,
    /// The datagram's bytes. Those of datagrams that are sent together best follow each
    /// other in memory.
    pub bytes: &'a [u8],
}

/// Carries datagrams between addresses, and promises little:
///
/// * **Loss.** A datagram that was taken may arrive never, late, twice, and after those that were
///   sent later. No error is reported for it: a datagram that the system refuses (too long for the
///   path, no route, an unreachable port) is lost.
/// * **Whole.** A datagram arrives as long as it was sent, or not at all. Its bytes may have been
///   changed on the way.
/// * **Strangers.** What arrives may come from any host, with any address of origin
///   and any content.
/// * **No waiting.** No method blocks, and none allocates after its first calls.
pub trait Device: Send {
    /// Sends the datagrams in order, and returns how many it has taken, from the first one. Fewer
    /// than all: no room now; the others may be offered again a little later. Their memory is free
    /// when this returns.
    fn send(&mut self, datagrams: &[Datagram<'_>]) -> usize;

    /// Sends the datagrams to one address that follow each other in `bytes`, at most
    /// [`TRAIN`]: each has `segment` bytes, and the last one at most as many. Returns what
    /// [`Self::send`] does.
    fn send_train(&mut self, to: SocketAddr, bytes: &[u8], segment: usize) -> usize {
        with_datagrams(to, bytes, segment, |datagrams| self.send(datagrams))
    }

    /// Sends a datagram that may be longer than the links on the way take: the system may send it
    /// in parts, of which all must arrive. Whether it was taken, as by [`Self::send`].
    fn send_in_parts(&mut self, datagram: &Datagram<'_>) -> bool {
        self.send(std::slice::from_ref(datagram)) != 0
    }

    /// Passes datagrams that have arrived to `take`, each with the address that it names as its
    /// origin, and returns how many these were. It takes a bounded number of them; 0 means that
    /// none is there. The bytes are valid during the call of `take`, which may change them, and
    /// start at any address.
    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, &mut [u8])) -> usize;

    /// Whether the program has closed the device's descriptor (closefrom(3)): its number may be
    /// that of another one, which must neither be read nor written. Takes a call of the kernel.
    fn is_lost(&self) -> bool {
        false
    }

    /// Readable while a datagram is there that was not received, and sometimes although
    /// there is none.
    fn event_fd(&self) -> BorrowedFd<'_>;
}

/// Calls `send` with the datagrams of a train ([`Device::send_train`]).
pub(super) fn with_datagrams<R>(
    to: SocketAddr,
    bytes: &[u8],
    segment: usize,
    send: impl FnOnce(&[Datagram<'_>]) -> R,
) -> R {
    let (mut datagrams, mut count) = ([Datagram { to, bytes }; TRAIN], 0);
    for (datagram, bytes) in datagrams.iter_mut().zip(bytes.chunks(segment)) {
        datagram.bytes = bytes;
        count += 1;
    }
    send(&datagrams[..count])
}
