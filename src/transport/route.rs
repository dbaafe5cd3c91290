//! A job on several hosts: one transport for the tasks of this host, another one for the others,
//! behind one set of traits.
//!
//! It is built only for a job in which this task has peers of both kinds; a job on one machine has
//! shared memory itself. The two sides share nothing but the descriptor to sleep on, which is
//! readable when either side's is.

use super::{
    Access, AccessId, Copy, EndedWrite, Endpoint, Exposure, Inbound, Key, Limits, Outgoing, PeerStanding,
    Peers, Piece, Properties, Reach, RemoteAccess, SendOutcome, Started, Tally, Task, Ticket, Transport,
    View, Wakeup, Want,
};
use crate::abi::LAPI_ERR_CSS_LOAD_FAILED;
use crate::error::{Error, Result};
use rustix::event::epoll;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// Two transports of one task, and which peer is reached by which.
pub struct Route<N, F> {
    near: N,
    far: F,
    /// By task: whether it is on this host. This task itself is.
    here: Box<[bool]>,
    /// The side that is asked for a packet first.
    turn: Side,
    poll: OwnedFd,
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
        Ok(Self { near, far, here, turn: Side::Near, poll })
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
    fn properties(&self) -> Properties {
        let (near, far) = (self.near.properties(), self.far.properties());
        Properties {
            name: far.name,
            keeps_time: near.keeps_time || far.keeps_time,
            standing_keys: near.standing_keys || far.standing_keys,
        }
    }

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

    fn completed(&mut self) -> Option<Ticket> {
        if let Some(Ticket(own)) = self.near.completed() {
            return Some(Ticket(Side::Near.number(own)));
        }
        self.far.completed().map(|Ticket(own)| Ticket(Side::Far.number(own)))
    }

    fn recall(&mut self, peer: Task) {
        self.side_mut(peer).recall(peer);
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

    fn hold(&mut self, peer: Task, held: bool) {
        self.side_mut(peer).hold(peer, held);
    }

    #[inline]
    fn release(&mut self, packet: Inbound) {
        if self.is_here(packet.src) { self.near.release(packet) } else { self.far.release(packet) }
    }

    fn flush(&mut self) {
        self.near.flush();
        self.far.flush();
    }

    fn due(&self) -> Option<Instant> {
        match (self.near.due(), self.far.due()) {
            (Some(near), Some(far)) => Some(near.min(far)),
            (near, far) => near.or(far),
        }
    }

    fn serve(&mut self) {
        self.near.serve();
        self.far.serve();
    }

    fn settled(&self) -> bool {
        self.near.settled() && self.far.settled()
    }

    fn acknowledge_every(&mut self, datagrams: u16) {
        self.near.acknowledge_every(datagrams);
        self.far.acknowledge_every(datagrams);
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

    fn wake(&self) {
        self.near.wake();
    }
}

impl<N: Transport, F: Transport> Peers for Route<N, F> {
    fn standing(&self, peer: Task) -> PeerStanding {
        self.side(peer).standing(peer)
    }

    fn want(&mut self, peer: Task, what: Want) {
        self.side_mut(peer).want(peer, what);
    }

    fn is_open(&self, peer: Task) -> bool {
        self.side(peer).is_open(peer)
    }

    fn set_polling(&mut self, polling: bool, now: u64) {
        self.near.set_polling(polling, now);
        self.far.set_polling(polling, now);
    }

    fn polls(&self, peer: Task) -> bool {
        self.side(peer).polls(peer)
    }

    fn signal(&mut self, peer: Task, number: u32) -> bool {
        self.is_here(peer) && self.near.signal(peer, number)
    }

    fn signalled(&self, peer: Task, number: u32) -> bool {
        self.is_here(peer) && self.near.signalled(peer, number)
    }

    fn view(&self, peer: Task) -> View {
        self.side(peer).view(peer)
    }

    fn part(&mut self, peer: Task) {
        self.side_mut(peer).part(peer);
    }

    fn rejoin(&mut self, peer: Task, epoch: u64) -> Result<()> {
        self.side_mut(peer).rejoin(peer, epoch)
    }

    fn rejoined(&mut self) -> Option<(Task, u64)> {
        self.near.rejoined().or_else(|| self.far.rejoined())
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

    fn standing_key(&mut self, peer: Task) -> Option<Key> {
        self.side_mut(peer).standing_key(peer)
    }

    fn withdraw(&mut self, peer: Task, key: Key) {
        self.side_mut(peer).withdraw(peer, key);
    }

    unsafe fn start(
        &mut self,
        access: Access,
        peer: Task,
        key: Option<Key>,
        copies: &[Copy],
    ) -> io::Result<Started> {
        let side = if self.is_here(peer) { Side::Near } else { Side::Far };
        // SAFETY: the caller's promise.
        match unsafe { self.side_mut(peer).start(access, peer, key, copies)? } {
            Started::Pending(AccessId(own)) => Ok(Started::Pending(AccessId(side.number(own)))),
            Started::Done => Ok(Started::Done),
        }
    }

    unsafe fn write(&mut self, peer: Task, copy: Copy, cookie: u64, copied: bool) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.side_mut(peer).write(peer, copy, cookie, copied) }
    }

    fn ended_write(&mut self) -> Option<EndedWrite> {
        self.far.ended_write().or_else(|| self.near.ended_write())
    }

    fn unreported_writes(&mut self) -> usize {
        self.near.unreported_writes() + self.far.unreported_writes()
    }

    fn poll(&mut self) -> Option<(AccessId, io::Result<()>)> {
        let near = self.near.poll().map(|report| (Side::Near, report));
        let (side, (AccessId(own), outcome)) =
            near.or_else(|| self.far.poll().map(|report| (Side::Far, report)))?;
        Some((AccessId(side.number(own)), outcome))
    }

    fn count_fetched(&mut self, peer: Task, bytes: u64) {
        self.side_mut(peer).count_fetched(peer, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::conformance;
    use crate::transport::mem::{MemOptions, MemTransport, network};

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
