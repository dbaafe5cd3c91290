//! Accesses of one copy by the key of all memory of a peer: each is one operation of the provider, and takes no memory, once its buffers are
//! as long as the program's data.
//!
//! What is read arrives in a buffer of the transport. A peer that was stopped may send it when this task has given it up long
//! ago, and there is no way to end a read: the memory of the program is its own again then.

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

/// Bytes of all buffers for longer reads, at most.
const BUFFERS: usize = 8 << 20;

/// The copies that are under way, and those that have ended.
pub(super) struct Singles {
    /// The first of the slots; the others follow.
    first: Slot,
    free: Vec<u16>,
    list: Box<[Single; SINGLES]>,
    /// The data of copied writes, and of reads that are as short.
    short: Box<[[u8; COPIED_MAX]; SINGLES]>,
    /// The data of longer reads. A buffer is made or replaced when its slot is used for a read that is longer than those before.
    long: Box<[Vec<u8>; SINGLES]>,
    /// The bytes of these.
    long_bytes: usize,
    ended: VecDeque<EndedCopy>,
}

#[derive(Clone, Copy)]
struct Single {
    state: State,
    peer: Task,
    cookie: u64,
    access: Access,
    copy: Copy,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    UnderWay,
    /// Under way, and not to be reported.
    Recalled,
    /// The same, and the provider has not ended it in time: it ends with the connection, or when the peer runs again.
    GivenUp,
}

/// Where the data is here, while the copy is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the memory of the program.
    Program,
    Short,
    Long,
}

impl Single {
    const NONE: Self = Self {
        state: State::Free,
        peer: 0,
        cookie: 0,
        access: Access::Read,
        copy: Copy { local: ptr::null_mut(), remote: 0, len: 0 },
        place: Place::Program,
    };

    fn is_awaited(&self, peer: Task) -> bool {
        matches!(self.state, State::UnderWay | State::Recalled) && self.peer == peer
    }

    #[inline]
    fn ended(&self, outcome: io::Result<()>, short: &[u8; COPIED_MAX]) -> EndedCopy {
        let Self { peer, cookie, access, copy, .. } = *self;
        let copied = access == Access::Write && self.place == Place::Short;
        let data = (outcome.is_err() && copied).then(|| short[..copy.len].into());
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
            short: Box::new([[0; COPIED_MAX]; SINGLES]),
            long: Box::new([const { Vec::new() }; SINGLES]),
            long_bytes: 0,
            ended: VecDeque::with_capacity(SINGLES),
        }
    }

    /// Whether this is the slot of a copy.
    #[inline]
    pub(super) fn has(&self, slot: Slot) -> bool {
        (self.first..self.first + SINGLES).contains(&slot)
    }

    /// The slot of another copy, if there is room, and where its data is to be.
    #[inline]
    fn begin(
        &mut self,
        peer: Task,
        cookie: u64,
        access: Access,
        copy: Copy,
        copied: bool,
    ) -> Option<(Slot, *mut u8)> {
        let at = usize::from(*self.free.last()?);
        let place = match access {
            Access::Write if !copied => Place::Program,
            _ if copy.len <= COPIED_MAX => Place::Short,
            _ => Place::Long,
        };
        let local = match place {
            Place::Program => copy.local,
            Place::Short => self.short[at].as_mut_ptr(),
            Place::Long => self.long_buffer(at, copy.len)?,
        };
        self.free.pop();
        self.list[at] = Single { state: State::UnderWay, peer, cookie, access, copy, place };
        Some((self.first + at, local))
    }

    /// The buffer of a slot for so many bytes, if there is room.
    #[inline]
    fn long_buffer(&mut self, at: usize, len: usize) -> Option<*mut u8> {
        if self.long[at].len() < len {
            self.lengthen(at, len)?;
        }
        Some(self.long[at].as_mut_ptr())
    }

    #[cold]
    fn lengthen(&mut self, at: usize, len: usize) -> Option<()> {
        let (before, len) = (self.long[at].len(), len.next_power_of_two());
        if self.long_bytes - before + len > BUFFERS {
            return None;
        }
        self.long[at] = vec![0; len];
        self.long_bytes += len - before;
        Some(())
    }

    /// It was not started.
    #[cold]
    fn take_back(&mut self, slot: Slot) {
        let at = slot - self.first;
        self.list[at].state = State::Free;
        self.free.push(at as u16);
    }

    /// A copy has ended: with which peer, if that is still of interest.
    #[inline]
    pub(super) fn end(&mut self, slot: Slot, failure: Option<String>) -> Option<Task> {
        let at = slot - self.first;
        let single = self.list[at];
        self.list[at].state = State::Free;
        self.free.push(at as u16);
        if single.state != State::UnderWay {
            return None;
        }
        if failure.is_none() && single.access == Access::Read {
            let data = if single.place == Place::Short { &self.short[at][..] } else { &self.long[at] };
            let data = &data[..single.copy.len];
            // SAFETY: by the promise of the caller of `start_copy` the place is writable, since the copy was neither reported nor recalled.
            unsafe { single.copy.local.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        }
        let outcome = failure.map_or(Ok(()), |why| Err(io::Error::other(why)));
        self.ended.push_back(single.ended(outcome, &self.short[at]));
        Some(single.peer)
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
        let of_peer = self.list.iter_mut().filter(|single| single.is_awaited(peer));
        of_peer.for_each(|single| single.state = State::Recalled);
    }

    /// Those under way with the peer have failed, although the provider does not end them. They are not awaited any more.
    pub(super) fn give_up(&mut self, peer: Task) {
        let Self { list, ended, short, .. } = self;
        for (single, short) in list.iter_mut().zip(short.iter()) {
            if !single.is_awaited(peer) {
                continue;
            }
            if single.state == State::UnderWay {
                ended.push_back(single.ended(Err(System::SRCH.into()), short));
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
