//! Writes by the key of all memory of a peer: each is one operation of the provider, and
//! takes no memory.

use super::ofi::Slot;
use crate::transport::{COPIED_MAX, Copy, EndedWrite, Task};
use rustix::io::Errno as System;
use std::collections::VecDeque;
use std::io;
use std::ptr;

/// Writes under way at a time.
pub(super) const SINGLES: usize = 64;

/// The longest write, in bytes: from 1 MiB on packets, which several processors carry at a time,
/// are faster than one write.
pub(super) const LONGEST: usize = 1 << 19;

/// The writes that are under way, and those that have ended.
pub(super) struct Singles {
    /// The first of the slots; the others follow.
    first: Slot,
    free: Vec<u16>,
    list: Box<[Single; SINGLES]>,
    /// The data of those that were copied.
    copied: Box<[[u8; COPIED_MAX]; SINGLES]>,
    ended: VecDeque<EndedWrite>,
}

#[derive(Clone, Copy)]
struct Single {
    state: State,
    peer: Task,
    cookie: u64,
    copy: Copy,
    copied: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    UnderWay,
    /// Under way, and not to be reported.
    Recalled,
    /// Recalled, and the provider has not ended it in time: it ends with the connection, or when
    /// the peer runs again.
    GivenUp,
}

impl Single {
    const NONE: Self = Self {
        state: State::Free,
        peer: 0,
        cookie: 0,
        copy: Copy { local: ptr::null_mut(), remote: 0, len: 0 },
        copied: false,
    };

    fn is_awaited(&self, peer: Task) -> bool {
        matches!(self.state, State::UnderWay | State::Recalled) && self.peer == peer
    }

    #[inline]
    fn ended(&self, outcome: io::Result<()>, copied: &[u8; COPIED_MAX]) -> EndedWrite {
        let Self { peer, cookie, copy, .. } = *self;
        let data = (outcome.is_err() && self.copied).then(|| copied[..copy.len].into());
        EndedWrite { peer, cookie, copy, outcome, data }
    }
}

// SAFETY: the addresses are the program's; the code that starts a write promises that they
// are valid for it.
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

    /// Whether this is the slot of a write.
    #[inline]
    pub(super) fn has(&self, slot: Slot) -> bool {
        (self.first..self.first + SINGLES).contains(&slot)
    }

    /// The slot of another write, if one is free, and where its data is to be.
    #[inline]
    pub(super) fn begin(
        &mut self,
        peer: Task,
        cookie: u64,
        copy: Copy,
        copied: bool,
    ) -> Option<(Slot, *mut u8)> {
        let at = usize::from(self.free.pop()?);
        self.list[at] = Single { state: State::UnderWay, peer, cookie, copy, copied };
        Some((self.first + at, if copied { self.copied[at].as_mut_ptr() } else { copy.local }))
    }

    /// Takes back an access that was not started.
    #[cold]
    pub(super) fn take_back(&mut self, slot: Slot) {
        let at = slot - self.first;
        self.list[at].state = State::Free;
        self.free.push(at as u16);
    }

    /// A write has ended: with which peer, if that is still of interest.
    #[inline]
    pub(super) fn end(&mut self, slot: Slot, failure: Option<String>) -> Option<Task> {
        let at = slot - self.first;
        let single = self.list[at];
        self.list[at].state = State::Free;
        self.free.push(at as u16);
        if single.state != State::UnderWay {
            return None;
        }
        let outcome = failure.map_or(Ok(()), |why| Err(io::Error::other(why)));
        self.ended.push_back(single.ended(outcome, &self.copied[at]));
        Some(single.peer)
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<EndedWrite> {
        self.ended.pop_front()
    }

    #[inline]
    pub(super) fn have_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// How many were not reported.
    #[cfg(test)]
    pub(super) fn unreported(&self) -> usize {
        self.ended.len() + self.list.iter().filter(|single| single.state == State::UnderWay).count()
    }

    /// Those of the peer are not reported.
    pub(super) fn recall(&mut self, peer: Task) {
        self.ended.retain(|ended| ended.peer != peer);
        let of_peer = self.list.iter_mut().filter(|single| single.is_awaited(peer));
        of_peer.for_each(|single| single.state = State::Recalled);
    }

    /// Those under way with the peer have failed, although the provider does not end them. They are
    /// not awaited any more.
    pub(super) fn give_up(&mut self, peer: Task) {
        let Self { list, ended, copied, .. } = self;
        for (single, copied) in list.iter_mut().zip(copied.iter()) {
            if !single.is_awaited(peer) {
                continue;
            }
            if single.state == State::UnderWay {
                ended.push_back(single.ended(Err(System::SRCH.into()), copied));
            }
            single.state = State::GivenUp;
        }
    }

    /// The slots of those under way with the peer whose end is awaited.
    pub(super) fn slots_of(&self, peer: Task) -> impl Iterator<Item = Slot> + '_ {
        self.list
            .iter()
            .enumerate()
            .filter(move |(_, single)| single.is_awaited(peer))
            .map(|(at, _)| self.first + at)
    }

    /// Nothing is reported any more.
    pub(super) fn clear(&mut self) {
        self.ended.clear();
    }
}
