//! A job on several hosts: one transport for the tasks of this host, another one for the others,
//! behind one set of traits.
//!
//! It is built only for a job in which this task has peers of both kinds; a job on one machine has
//! shared memory itself. The two sides share nothing but the descriptor to sleep on, which is
//! readable when either side's is.

use crate::abi::LAPI_ERR_CSS_LOAD_FAILED;
use crate::base::descriptor::Descriptor;
use crate::error::{Error, Result};
use crate::transport::{
    AccessId, Door, Endpoint, Exposure, Inbound, Key, Limits, Look, Outgoing, PeerStanding, Peers, Piece,
    Reach, RemoteAccess, Report, Seen, SendOutcome, Started, Tally, Task, Ticket, Transfer, Transport, View,
    Wakeup, Want, Withdrawal,
};
use rustix::event::epoll;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

/// Two transports of one task, and which peer is reached by which.
pub struct Route<N, F> {
    near: N,
    far: F,
    /// By task: whether it is on this host. This task itself is.
    here: Box<[bool]>,
    /// The side that is asked for a packet first.
    turn: Side,
    poll: Descriptor,
}

/// One of the two transports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Near,
    Far,
}

impl Side {
    /// A number of this side's, as a number that differs from all of the other side's.
    fn number(self, own: u64) -> u64 {
        own << 1 | self as u64
    }
}

impl<N: Transport, F: Transport> Route<N, F> {
    /// `here` has an entry for each task of the job: whether `near` reaches it.
    ///
    /// # Errors
    /// `LAPI_ERR_CSS_LOAD_FAILED`: the system has no descriptor left.
    pub fn new(near: N, far: F, here: Box<[bool]>) -> Result<Self> {
        let failed = |reason: rustix::io::Errno| {
            Error::new(
                LAPI_ERR_CSS_LOAD_FAILED,
                format!("no descriptor to wait for two transports: {reason}"),
            )
        };
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        for fd in [near.event_fd(), far.event_fd()] {
            epoll::add(&poll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN).map_err(failed)?;
        }
        Ok(Self { near, far, here, turn: Side::Near, poll: Descriptor::new(poll) })
    }

    #[inline]
    fn is_here(&self, peer: Task) -> bool {
        self.here[peer as usize]
    }

    fn side(&self, peer: Task) -> &dyn Transport {
        if self.is_here(peer) { &self.near } else { &self.far }
    }

    fn side_mut(&mut self, peer: Task) -> &mut dyn Transport {
        if self.is_here(peer) { &mut self.near } else { &mut self.far }
    }
}

impl<N: Transport, F: Transport> Endpoint for Route<N, F> {
    fn limits(&self, peer: Task) -> Limits {
        self.side(peer).limits(peer)
    }

    #[inline]
    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> SendOutcome {
        let (side, sent) = if self.is_here(peer) {
            // SAFETY: the caller's promise.
            (Side::Near, unsafe { self.near.try_send(peer, packet) })
        } else {
            // SAFETY: the caller's promise.
            (Side::Far, unsafe { self.far.try_send(peer, packet) })
        };
        match sent {
            SendOutcome::Taken(Ticket(own)) => SendOutcome::Taken(Ticket(side.number(own))),
            other => other,
        }
    }

    #[inline]
    fn door(&mut self, peer: Task) -> Option<&mut Door> {
        if self.is_here(peer) { self.near.door(peer) } else { self.far.door(peer) }
    }

    fn report(&mut self) -> Option<Report> {
        let near = self.near.report().map(|report| (Side::Near, report));
        let (side, report) = near.or_else(|| self.far.report().map(|report| (Side::Far, report)))?;
        Some(match report {
            Report::Free(Ticket(own)) => Report::Free(Ticket(side.number(own))),
            Report::Accessed(AccessId(own), outcome) => Report::Accessed(AccessId(side.number(own)), outcome),
            Report::Written(_) | Report::Joined(..) => report,
        })
    }

    /// The two sides take turns, so that neither starves.
    #[inline]
    fn recv(&mut self) -> Option<Inbound> {
        match self.turn {
            Side::Near => {
                self.turn = Side::Far;
                self.near.recv().or_else(|| self.far.recv())
            }
            Side::Far => {
                self.turn = Side::Near;
                self.far.recv().or_else(|| self.near.recv())
            }
        }
    }

    #[inline]
    fn look(&mut self, look: Look) -> Seen<'_> {
        match (self.near.look(look), self.far.look(look)) {
            (Seen::Nothing, Seen::Nothing) => Seen::Nothing,
            _ => Seen::Something,
        }
    }

    fn want(&mut self, what: Want) {
        match what.peer() {
            Some(peer) => self.side_mut(peer).want(what),
            None => {
                self.near.want(what);
                // The descriptor is readable when that of one side is.
                if what != Want::Wake {
                    self.far.want(what);
                }
            }
        }
    }

    #[inline]
    fn release(&mut self, packet: Inbound) {
        if self.is_here(packet.src) { self.near.release(packet) } else { self.far.release(packet) }
    }

    fn due(&self) -> Option<Instant> {
        match (self.near.due(), self.far.due()) {
            (Some(near), Some(far)) => Some(near.min(far)),
            (near, far) => near.or(far),
        }
    }

    /// Packets within a host are not lost: only the far side counts more than what was fetched.
    fn tally(&self) -> Tally {
        let mut sum = self.near.tally();
        sum += self.far.tally();
        sum
    }

    fn close(&mut self) {
        self.near.close();
        self.far.close();
    }
}

impl<N: Transport, F: Transport> Wakeup for Route<N, F> {
    fn arm(&mut self) -> bool {
        if !self.near.arm() {
            return false;
        }
        let armed = self.far.arm();
        if !armed {
            self.near.disarm();
        }
        armed
    }

    fn disarm(&mut self) {
        self.near.disarm();
        self.far.disarm();
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.poll.as_fd()
    }
}

impl<N: Transport, F: Transport> Peers for Route<N, F> {
    fn standing(&self, peer: Task) -> PeerStanding {
        self.side(peer).standing(peer)
    }

    fn is_open(&self, peer: Task) -> bool {
        self.side(peer).is_open(peer)
    }

    fn view(&self, peer: Task) -> View {
        self.side(peer).view(peer)
    }

    fn withdraw(&mut self, peer: Task, what: Withdrawal) {
        self.side_mut(peer).withdraw(peer, what);
    }

    fn rejoin(&mut self, peer: Task, epoch: u64) -> Result<()> {
        self.side_mut(peer).rejoin(peer, epoch)
    }
}

impl<N: Transport, F: Transport> RemoteAccess for Route<N, F> {
    fn reach(&mut self, peer: Task) -> Reach {
        self.side_mut(peer).reach(peer)
    }

    unsafe fn expose(&mut self, peer: Task, memory: Piece, exposure: Exposure) -> io::Result<Key> {
        // SAFETY: the caller's promise.
        unsafe { self.side_mut(peer).expose(peer, memory, exposure) }
    }

    unsafe fn access(&mut self, peer: Task, transfer: Transfer<'_>) -> io::Result<Started> {
        let side = if self.is_here(peer) { Side::Near } else { Side::Far };
        // SAFETY: the caller's promise.
        match unsafe { self.side_mut(peer).access(peer, transfer)? } {
            Started::Pending(AccessId(own)) => Ok(Started::Pending(AccessId(side.number(own)))),
            Started::Done => Ok(Started::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::conformance;
    use crate::transport::testing::mem::{MemOptions, MemTransport, network};

    /// Tasks whose numbers have the same half are on one host.
    fn hybrid(tasks: u32, near: MemOptions, far: MemOptions) -> Vec<Route<MemTransport, MemTransport>> {
        let here = |task: Task| (0..tasks).map(|other| other / 2 == task / 2).collect();
        let pairs = network(tasks, near).into_iter().zip(network(tasks, far)).enumerate();
        pairs
            .map(|(task, (near, far))| Route::new(near, far, here(task as Task)).expect("a descriptor"))
            .collect()
    }

    /// All are on different hosts, so that every packet goes the far way.
    fn scattered(tasks: u32, far: MemOptions) -> Vec<Route<MemTransport, MemTransport>> {
        let here = |task: Task| (0..tasks).map(|other| other == task).collect();
        let pairs = network(tasks, MemOptions::default()).into_iter().zip(network(tasks, far)).enumerate();
        pairs
            .map(|(task, (near, far))| Route::new(near, far, here(task as Task)).expect("a descriptor"))
            .collect()
    }

    #[test]
    fn conforms() {
        let plain = MemOptions { remote: true, ..MemOptions::default() };
        let later = MemOptions { take: true, pending: true, ..plain };
        conformance::suite(|tasks| hybrid(tasks, plain, later));
        conformance::suite(|tasks| hybrid(tasks, MemOptions { capacity: 2, ..later }, plain));
        conformance::suite(|tasks| hybrid(tasks, plain, MemOptions { lose: 31, ..plain }));
    }

    #[test]
    fn conforms_where_every_task_is_far() {
        let plain = MemOptions { remote: true, ..MemOptions::default() };
        conformance::suite(|tasks| scattered(tasks, plain));
        conformance::suite(|tasks| {
            scattered(tasks, MemOptions { take: true, pending: true, capacity: 3, ..plain })
        });
    }

    #[test]
    fn numbers_of_the_two_sides_differ() {
        assert_ne!(Side::Near.number(7), Side::Far.number(7));
        assert_ne!(Side::Near.number(8), Side::Far.number(7));
    }
}
