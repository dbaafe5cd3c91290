//! Operations of this task that wait for an answer, and the epochs by which a fence knows its own.
//!
//! The answer names its operation by a cookie. A cookie goes stale when its operation ends, so that a late or forged
//! answer finds nothing.

use crate::proto::content::Sink;
use crate::proto::outbox::SendDone;
use crate::wire::frame::Task;
use slotmap::{Key, KeyData, SlotMap, new_key_type};
use std::collections::VecDeque;

new_key_type! {
    struct OpKey;
}

/// What an operation waits for, and what it does then. Addresses are of the program's memory; 0 is none.
#[derive(Clone, Debug)]
pub enum Op {
    /// A put or active message whose completion the program wants to see.
    Completion {
        /// The completion counter.
        cmpl_cntr: usize,
    },
    /// An active message whose data the target fetches.
    Rendezvous {
        /// What follows when the target has it.
        done: SendDone,
        /// The completion counter, or 0.
        cmpl_cntr: usize,
        /// The message's number.
        id: u32,
        /// The data.
        data: usize,
        /// Its length.
        len: usize,
        /// Whether the target has it, or has asked for it in packets.
        fetched: bool,
        /// Whether the message is complete. On a transport without order this may be told first.
        concluded: bool,
    },
    /// A get.
    Get {
        /// Where the data goes.
        sink: Sink,
        /// How many bytes.
        len: u64,
        /// How many have arrived.
        arrived: u64,
        /// The origin counter.
        org_cntr: usize,
        /// The completion handler.
        handler: usize,
        /// The handler's parameter.
        info: usize,
    },
    /// A read-modify-write.
    Rmw {
        /// Where the previous value goes.
        previous: usize,
        /// Whether the variable has 64 bits.
        wide: bool,
        /// What follows.
        done: SendDone,
    },
}

/// An operation, its peer, and the epoch in which it began.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The operation.
    pub op: Op,
    /// The task that must answer.
    pub peer: Task,
    /// The moment at which [`Ops::mark`] first met it; 0: not yet. An operation begins without a look at the clock.
    pub seen: u32,
    epoch: Option<u64>,
}

impl Pending {
    /// Whether a fence waits for it at this side.
    pub fn fenced(&self) -> bool {
        self.epoch.is_some()
    }

    /// The counters of this task that it raises; 0 is none.
    pub fn counters(&self) -> [usize; 2] {
        match &self.op {
            Op::Completion { cmpl_cntr } => [*cmpl_cntr, 0],
            Op::Rendezvous { done, cmpl_cntr, .. } => [*cmpl_cntr, done.org_cntr],
            Op::Get { org_cntr, .. } => [*org_cntr, 0],
            Op::Rmw { done, .. } => [done.org_cntr, 0],
        }
    }
}

/// The operations in flight.
#[derive(Default)]
pub struct Ops {
    table: SlotMap<OpKey, Pending>,
    epochs: Epochs,
}

impl Ops {
    /// With room for `room` operations before the table must grow.
    pub fn new(room: usize) -> Self {
        Self { table: SlotMap::with_capacity_and_key(room), epochs: Epochs::default() }
    }

    /// Takes an operation in; the answer is its cookie, never 0. When `fenced`, a fence waits for it here; otherwise the
    /// target's confirmation covers it.
    #[inline]
    pub fn insert(&mut self, peer: Task, op: Op, fenced: bool) -> u64 {
        let epoch = fenced.then(|| self.epochs.enter());
        self.table.insert(Pending { op, peer, seen: 0, epoch }).data().as_ffi()
    }

    /// The operation with this cookie, if it is in flight and `peer` is the one to answer.
    #[inline]
    pub fn get_mut(&mut self, peer: Task, cookie: u64) -> Option<&mut Op> {
        let pending = self.table.get_mut(KeyData::from_ffi(cookie).into())?;
        (pending.peer == peer).then_some(&mut pending.op)
    }

    /// Ends the operation with this cookie.
    #[inline]
    pub fn remove(&mut self, peer: Task, cookie: u64) -> Option<Op> {
        let key = OpKey::from(KeyData::from_ffi(cookie));
        if self.table.get(key)?.peer != peer {
            return None;
        }
        let pending = self.table.remove(key)?;
        if let Some(epoch) = pending.epoch {
            self.epochs.leave(epoch);
        }
        Some(pending.op)
    }

    /// Ends all operations that wait for `peer`.
    pub fn abandon(&mut self, peer: Task) -> Vec<Op> {
        let keys: Vec<_> = self
            .table
            .iter()
            .filter(|(_, pending)| pending.peer == peer)
            .map(|(key, _)| key.data().as_ffi())
            .collect();
        keys.into_iter().filter_map(|cookie| self.remove(peer, cookie)).collect()
    }

    /// Whether any operation waits for `peer`.
    pub fn wait_for(&self, peer: Task) -> bool {
        self.table.values().any(|pending| pending.peer == peer)
    }

    /// The operations that wait for `peer`.
    pub fn of(&self, peer: Task) -> impl Iterator<Item = &Op> + '_ {
        self.table.values().filter(move |pending| pending.peer == peer).map(|pending| &pending.op)
    }

    /// The tasks that something in flight waits for; a task may come several times.
    pub fn peers(&self) -> impl Iterator<Item = Task> + '_ {
        self.table.values().map(|pending| pending.peer)
    }

    /// Those in flight, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Pending> + '_ {
        self.table.values()
    }

    /// Notes that the operations in flight were there at this moment.
    pub fn mark(&mut self, moment: u32) {
        for pending in self.table.values_mut().filter(|pending| pending.seen == 0) {
            pending.seen = moment;
        }
    }

    /// How many are in flight.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether none is in flight.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The epochs of what a fence waits for on this side.
    pub fn epochs(&mut self) -> &mut Epochs {
        &mut self.epochs
    }
}

/// Which of the operations began before a fence: each belongs to the epoch in which it began, and a fence ends one.
#[derive(Default)]
pub struct Epochs {
    /// The number of the first epoch in the list.
    first: u64,
    /// How many are in flight of each; the last is the present.
    counts: VecDeque<u32>,
}

impl Epochs {
    /// One more in the present epoch, whose number is the answer.
    #[inline]
    pub fn enter(&mut self) -> u64 {
        match self.counts.back_mut() {
            Some(count) => *count += 1,
            None => self.counts.push_back(1),
        }
        self.first + self.counts.len() as u64 - 1
    }

    /// One less in that epoch.
    #[inline]
    pub fn leave(&mut self, epoch: u64) {
        self.counts[(epoch - self.first) as usize] -= 1;
        while self.counts.len() > 1 && self.counts[0] == 0 {
            self.counts.pop_front();
            self.first += 1;
        }
    }

    /// Ends the present epoch; the answer is its number.
    pub fn close(&mut self) -> u64 {
        if self.counts.is_empty() {
            self.counts.push_back(0);
        }
        let closed = self.first + self.counts.len() as u64 - 1;
        self.counts.push_back(0);
        while self.counts.len() > 1 && self.counts[0] == 0 {
            self.counts.pop_front();
            self.first += 1;
        }
        closed
    }

    /// Whether nothing of that epoch, or of an earlier one, is in flight.
    pub fn over(&self, epoch: u64) -> bool {
        self.first > epoch
    }
}
