//! Accesses of one copy by the key of all memory of a peer: each is one operation of the provider, and takes no memory.

use super::FabricTransport;
use super::ofi::Slot;
use crate::transport::{Access, COPIED_MAX, Copy, EndedCopy, Task};
use rustix::io::Errno as System;
use std::collections::VecDeque;
use std::io;
use std::ptr;

/// Copies under way at a time.
pub(super) const SINGLES: usize = 64;

/// The longest copy, in bytes: from 1 MiB on packets, which several processors carry at a time, are faster than one copy.
const LONGEST: usize = 1 << 19;

/// The copies that are under way, and those that have ended.
pub(super) struct Singles {
    /// The first of the slots; the others follow.
    first: Slot,
    free: Vec<u16>,
    list: Box<[Single; SINGLES]>,
    /// The data of those that were copied.
    copied: Box<[[u8; COPIED_MAX]; SINGLES]>,
    ended: VecDeque<EndedCopy>,
}

#[derive(Clone, Copy)]
struct Single {
    state: State,
    peer: Task,
    cookie: u64,
    access: Access,
    copy: Copy,
    copied: bool,
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
        copied: false,
    };

    #[inline]
    fn ended(&self, outcome: io::Result<()>, copied: &[u8; COPIED_MAX]) -> EndedCopy {
        let Self { peer, cookie, access, copy, .. } = *self;
        let data = (outcome.is_err() && self.copied).then(|| copied[..copy.len].into());
        EndedCopy { peer, cookie, access, copy, outcome, data }
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
            copied: Box::new([[0; COPIED_MAX]; SINGLES]),
            ended: VecDeque::with_capacity(SINGLES),
        }
    }

    /// Whether this is the slot of a copy.
    #[inline]
    pub(super) fn has(&self, slot: Slot) -> bool {
        (self.first..self.first + SINGLES).contains(&slot)
    }

    /// The slot of another copy, if one is free, and where its data is to be.
    #[inline]
    fn begin(
        &mut self,
        peer: Task,
        cookie: u64,
        access: Access,
        copy: Copy,
        copied: bool,
    ) -> Option<(Slot, *mut u8)> {
        let at = usize::from(self.free.pop()?);
        self.list[at] = Single { state: State::UnderWay, peer, cookie, access, copy, copied };
        Some((self.first + at, if copied { self.copied[at].as_mut_ptr() } else { copy.local }))
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
            let outcome = failure.map_or(Ok(()), |why| Err(io::Error::other(why)));
            self.ended.push_back(single.ended(outcome, &self.copied[at]));
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
        let Self { list, ended, copied, .. } = self;
        for (single, copied) in list.iter_mut().zip(copied.iter()) {
            if single.state == State::UnderWay && single.peer == peer {
                ended.push_back(single.ended(Err(System::SRCH.into()), copied));
                single.state = State::Recalled;
            }
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
    /// Starts a copy, of data that is copied itself if `copied`: whether it was started.
    ///
    /// # Safety
    /// As for [`crate::transport::RemoteAccess::start_copy`], or for [`crate::transport::RemoteAccess::write_copied`] if `copied`.
    #[inline]
    pub(super) unsafe fn start_single(
        &mut self,
        access: Access,
        peer: Task,
        copy: Copy,
        cookie: u64,
        copied: bool,
    ) -> bool {
        if copy.len > if copied { COPIED_MAX } else { LONGEST } || self.closed {
            return false;
        }
        let Some(key) = self.key_of_all(peer) else { return false };
        let Some(address) = self.peer(peer).and_then(|peer| peer.address) else { return false };
        let begun = self.accesses.singles.begin(peer, cookie, access, copy, copied);
        let Some((slot, local)) = begun else { return false };
        if copied {
            // SAFETY: the caller's promise; the slot has room for the data.
            unsafe { local.copy_from_nonoverlapping(copy.local, copy.len) };
        }
        let there = (key.target(copy.remote), key.key);
        // SAFETY: the caller's promise, or memory of the slot, which is free and used for nothing else until the operation has ended.
        let started = unsafe { self.device.access(access, (local, copy.len), None, address, there, slot) };
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
