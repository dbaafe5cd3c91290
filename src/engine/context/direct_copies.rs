//! The copies across address spaces that are under way.

use crate::engine::context::direct_copy::DirectCopy;
use crate::proto::outbox::SendDone;
use crate::transport::{AccessId, Task};
use std::collections::VecDeque;
use std::io;

/// The copies under way.
#[derive(Default)]
pub struct DirectCopies {
    list: VecDeque<DirectCopy>,
    /// How many of them wait until the transport reports an access.
    waiting: usize,
    /// Accesses that the transport has reported, for the next round of the dispatcher.
    ended: VecDeque<(AccessId, io::Result<()>)>,
    /// Copies whose peer was asked for more parts. Nothing is to be done for them until it
    /// sends these.
    awaiting_parts: Vec<DirectCopy>,
}

impl DirectCopies {
    /// A copy continues later, or when the transport reports its accesses.
    pub fn push(&mut self, copy: DirectCopy) {
        self.waiting += usize::from(copy.waits());
        self.list.push_back(copy);
    }

    /// Takes out a copy that waits for no report.
    pub fn take_ready(&mut self) -> Option<DirectCopy> {
        let at = self.list.iter().position(|copy| !copy.waits())?;
        self.list.remove(at)
    }

    /// The transport has reported an access.
    pub fn note_ended(&mut self, access: AccessId, outcome: io::Result<()>) {
        self.ended.push_back((access, outcome));
    }

    /// Takes out a copy of which an access has ended, with the access's bytes and outcome.
    pub fn next_ended(&mut self) -> Option<(DirectCopy, usize, io::Result<()>)> {
        while let Some((id, outcome)) = self.ended.pop_front() {
            let waits = |copy: &DirectCopy| copy.waits.iter().position(|(access, _)| *access == id);
            let found = self.list.iter().enumerate().find_map(|(at, copy)| Some((at, waits(copy)?)));
            if let Some((at, access)) = found
                && let Some(mut copy) = self.list.remove(at)
            {
                self.waiting -= 1;
                let (_, bytes) = copy.waits.swap_remove(access);
                return Some((copy, bytes, outcome));
            }
        }
        None
    }

    /// Keeps a copy until parts arrive for it.
    pub fn await_parts(&mut self, copy: DirectCopy) {
        self.awaiting_parts.push(copy);
    }

    /// Takes out the copy that waits for parts of the peer's operation `cookie`.
    pub fn take_awaiting(&mut self, peer: Task, cookie: u64) -> Option<DirectCopy> {
        let at = self.awaiting_parts.iter().position(|copy| copy.is_of(peer, cookie))?;
        Some(self.awaiting_parts.swap_remove(at))
    }

    /// Gives up the copies from and to `peer`. Returns the send operations that end by that.
    pub fn abandon(&mut self, peer: Task) -> Vec<SendDone> {
        let done =
            self.list.iter().filter(|copy| copy.peer == peer).filter_map(DirectCopy::abandoned).collect();
        self.list.retain(|copy| copy.peer != peer);
        self.awaiting_parts.retain(|copy| copy.peer != peer);
        self.ended.retain(|(id, _)| self.list.iter().any(|copy| copy.awaits(*id)));
        self.waiting = self.list.iter().filter(|copy| copy.waits()).count();
        done
    }

    /// Whether one of them can continue at once.
    #[inline]
    pub fn are_ready(&self) -> bool {
        self.list.len() != self.waiting || !self.ended.is_empty()
    }

    /// How many of them wait until the transport reports an access.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether there are none, but for those that wait for parts.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them but those that wait for parts.
    pub fn iter(&self) -> impl Iterator<Item = &DirectCopy> {
        self.list.iter()
    }

    /// Those that wait for parts.
    pub fn awaiting_parts(&self) -> impl Iterator<Item = &DirectCopy> {
        self.awaiting_parts.iter()
    }
}
