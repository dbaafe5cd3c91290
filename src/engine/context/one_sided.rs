//! What this task puts into the memory of others without their help, by one write each. They hear
//! of it in time: of several puts together, because a packet for each would cost as much as the
//! put.

use crate::transport::{EndedWrite, Task};
use std::collections::VecDeque;

/// Puts that are announced together, at most.
const MOST: u32 = 256;
/// They are announced when the last of them ended this many ticks ago, 30 to 150 microseconds, and
/// none is under way: a program that goes on has started another one by then.
const QUIET: u64 = 150_000;
/// And when the first one ended this many ticks ago, 0.5 to 3 milliseconds.
const LONGEST: u64 = 3_000_000;

/// The puts that this task makes alone.
#[derive(Default)]
pub struct OneSided {
    possible: bool,
    /// How many writes the transport will report.
    under_way: usize,
    /// Writes that it has reported, for the next round of the dispatcher.
    ended: VecDeque<EndedWrite>,
    /// What is to be announced, in the order of tasks.
    list: Vec<Access>,
    puts: u32,
    /// When the first and the last put ended, in ticks.
    first: u64,
    last: u64,
}

/// What is to be announced to one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The task.
    pub target: Task,
    /// Bytes of puts.
    pub written: u64,
}

impl OneSided {
    /// None under way. `possible`: this task may have keys of all memory of others.
    pub fn new(possible: bool) -> Self {
        Self { possible, ..Self::default() }
    }

    /// Whether this task may have keys of all memory of others.
    #[inline]
    pub fn are_possible(&self) -> bool {
        self.possible
    }

    /// A write was given to the transport, which will report it.
    #[inline]
    pub fn begin(&mut self) {
        self.under_way += 1;
    }

    /// The operation of a write has ended.
    #[inline]
    pub fn end(&mut self) {
        self.under_way -= 1;
    }

    /// How many writes are under way.
    #[inline]
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// The transport has reported a write.
    pub fn note_ended(&mut self, write: EndedWrite) {
        self.ended.push_back(write);
    }

    /// Whether it has, and nothing was done for that yet.
    #[inline]
    pub fn have_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Takes a write that was reported.
    #[inline]
    pub fn next_ended(&mut self) -> Option<EndedWrite> {
        self.ended.pop_front()
    }

    /// Whether a write is under way, or its target is still to hear of it.
    #[inline]
    pub fn are_active(&self) -> bool {
        self.under_way != 0 || !self.list.is_empty()
    }

    /// Whether no target is still to hear of a write.
    pub fn announces_nothing(&self) -> bool {
        self.list.is_empty()
    }

    /// Puts to this task have ended now.
    #[inline]
    pub fn note(&mut self, access: Access, now: u64) {
        if self.list.is_empty() {
            (self.puts, self.first) = (0, now);
        }
        (self.puts, self.last) = (self.puts + 1, now);
        match self.list.iter_mut().find(|entry| entry.target >= access.target) {
            Some(entry) if entry.target == access.target => entry.written += access.written,
            _ => self.insert(access),
        }
    }

    #[cold]
    fn insert(&mut self, access: Access) {
        let at = self.list.partition_point(|entry| entry.target < access.target);
        self.list.insert(at, access);
    }

    /// Whether there is something to be announced, and it is time.
    #[inline]
    pub fn announcement_is_due(&self, now: u64) -> bool {
        !self.list.is_empty()
            && (self.puts >= MOST
                || self.under_way == 0 && now.wrapping_sub(self.last) >= QUIET
                || now.wrapping_sub(self.first) >= LONGEST)
    }

    /// What is to be announced, which nothing else remembers.
    pub fn take(&mut self) -> Vec<Access> {
        std::mem::take(&mut self.list)
    }

    /// The target was given up, and with it this number of operations.
    pub fn abandon(&mut self, target: Task, operations: usize) {
        self.under_way -= operations;
        self.ended.retain(|write| write.peer != target);
        self.list.retain(|entry| entry.target != target);
    }
}

#[cfg(test)]
#[path = "one_sided_tests.rs"]
mod tests;
