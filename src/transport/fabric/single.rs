//! Accesses of one copy by the key of all memory of a peer: each is one operation of the provider, and takes no memory.

use super::FabricTransport;
use super::ofi::Slot;
use crate::transport::{Access, Copy, EndedCopy, Task};
use rustix::io::Errno as System;
use std::collections::VecDeque;
use std::io;
use std::ptr;

/// Copies under way at a time.
pub(super) const SINGLES: usize = 64;

/// The longest copy, in bytes.
const LONGEST: usize = 1 << 20;

/// The copies that are under way, and those that have ended.
pub(super) struct Singles {
    /// The first of the slots; the others follow.
    first: Slot,
    free: Vec<u16>,
    list: Box<[Single; SINGLES]>,
    ended: VecDeque<EndedCopy>,
}

#[derive(Clone, Copy)]
struct Single {
    state: State,
    peer: Task,
    cookie: u64,
    access: Access,
    copy: Copy,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    UnderWay,
    /// Under way, and not to be reported.
    Recalled,
}

impl Single {
    const NONE: Self = Self {
        state: State::Free,
        peer: 0,
        cookie: 0,
        access: Access::Read,
        copy: Copy { local: ptr::null_mut(), remote: 0, len: 0 },
    };

    fn ended(&self, outcome: io::Result<()>) -> EndedCopy {
        EndedCopy { peer: self.peer, cookie: self.cookie, access: self.access, copy: self.copy, outcome }
    }
}

// SAFETY: the addresses are the program's; the code that starts a copy promises that they are valid for it.
unsafe impl Send for Singles {}

impl Singles {
    pub(super) fn new(first: Slot) -> Self {
        Self {
            first,
            free: (0..SINGLES as u16).rev().collect(),
            list: Box::new([Single::NONE; SINGLES]),
            ended: VecDeque::with_capacity(SINGLES),
        }
    }

    /// Whether this is the slot of a copy.
    #[inline]
    pub(super) fn has(&self, slot: Slot) -> bool {
        (self.first..self.first + SINGLES).contains(&slot)
    }

    /// The slot of another copy, if one is free.
    #[inline]
    fn begin(&mut self, peer: Task, cookie: u64, access: Access, copy: Copy) -> Option<Slot> {
        let at = usize::from(self.free.pop()?);
        self.list[at] = Single { state: State::UnderWay, peer, cookie, access, copy };
        Some(self.first + at)
    }

    /// It was not started.
    #[cold]
    fn take_back(&mut self, slot: Slot) {
        let at = slot - self.first;
        self.list[at].state = State::Free;
        self.free.push(at as u16);
    }

    /// A copy has ended: with which peer.
    #[inline]
    pub(super) fn end(&mut self, slot: Slot, failure: Option<String>) -> Task {
        let at = slot - self.first;
        let single = self.list[at];
        self.list[at].state = State::Free;
        self.free.push(at as u16);
        if single.state == State::UnderWay {
            self.ended.push_back(single.ended(failure.map_or(Ok(()), |why| Err(io::Error::other(why)))));
        }
        single.peer
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<EndedCopy> {
        self.ended.pop_front()
    }

    #[inline]
    pub(super) fn have_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// How many were not reported.
    pub(super) fn unreported(&self) -> usize {
        self.ended.len() + self.list.iter().filter(|single| single.state == State::UnderWay).count()
    }

    /// Those of the peer are not reported.
    pub(super) fn recall(&mut self, peer: Task) {
        self.ended.retain(|ended| ended.peer != peer);
        self.of(peer).for_each(|single| single.state = State::Recalled);
    }

    /// Those under way with the peer have failed, although the provider does not end them.
    pub(super) fn give_up(&mut self, peer: Task) {
        let Self { list, ended, .. } = self;
        let under_way = |single: &&mut Single| single.state == State::UnderWay && single.peer == peer;
        for single in list.iter_mut().filter(under_way) {
            ended.push_back(single.ended(Err(System::SRCH.into())));
            single.state = State::Recalled;
        }
    }

    /// Whether some are under way with the peer.
    pub(super) fn use_memory_of(&self, peer: Task) -> bool {
        self.slots_of(peer).next().is_some()
    }

    /// The slots of those under way with the peer.
    pub(super) fn slots_of(&self, peer: Task) -> impl Iterator<Item = Slot> + '_ {
        let of_peer = move |single: &Single| single.state != State::Free && single.peer == peer;
        self.list.iter().enumerate().filter(move |(_, single)| of_peer(single)).map(|(at, _)| self.first + at)
    }

    fn of(&mut self, peer: Task) -> impl Iterator<Item = &mut Single> {
        self.list.iter_mut().filter(move |single| single.state != State::Free && single.peer == peer)
    }

    /// Nothing is reported any more.
    pub(super) fn clear(&mut self) {
        self.ended.clear();
    }
}

impl FabricTransport {
    /// Starts a copy: whether it was started.
    ///
    /// # Safety
    /// As for [`crate::transport::RemoteAccess::start_copy`].
    #[inline]
    pub(super) unsafe fn start_single(
        &mut self,
        access: Access,
        peer: Task,
        copy: Copy,
        cookie: u64,
    ) -> bool {
        if copy.len > LONGEST || self.closed {
            return false;
        }
        let Some(key) = self.key_of_all(peer) else { return false };
        let Some(address) = self.peer(peer).and_then(|peer| peer.address) else { return false };
        let Some(slot) = self.accesses.singles.begin(peer, cookie, access, copy) else { return false };
        let there = (key.target(copy.remote), key.key);
        // SAFETY: the caller's promise; the slot is free.
        let started =
            unsafe { self.device.access(access, (copy.local, copy.len), None, address, there, slot) };
        if let Err(errno) = started {
            self.accesses.singles.take_back(slot);
            if !errno.is_again() {
                self.note_refusal(peer);
            }
            return false;
        }
        self.rest.note_access();
        self.notify();
        true
    }

    /// The peer's memory is not accessed by its key any more in this connection.
    #[cold]
    pub(super) fn note_refusal(&mut self, peer: Task) {
        if let Some(peer) = self.peer_mut(peer) {
            peer.has_refused = true;
        }
    }
}
