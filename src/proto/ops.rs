//! Operations of this task that wait for a reply, and the epochs by which a fence identifies those
//! that it covers.
//!
//! The reply names its operation by a cookie. A cookie becomes invalid when its operation ends, so
//! that a late or forged reply finds no operation.

use crate::dgsp::Layout;
use crate::proto::content::{Content, Sink};
use crate::proto::pieces::{self, Batch, Range, Span};
use crate::proto::send::SendDone;
use crate::proto::tasks::TaskCounts;
use crate::wire::frame::Task;
use crate::wire::key;
use slotmap::{Key, KeyData, SlotMap, new_key_type};
use std::collections::VecDeque;
use std::sync::Arc;

new_key_type! {
    struct OpKey;
}

/// Memory of this task that is registered for the peer of an operation, for as long as the
/// operation lasts.
#[derive(Clone, Debug)]
pub struct Registered {
    /// The keys that the peer was sent.
    pub keys: Vec<key::Key>,
    /// Bytes of this memory.
    pub bytes: u64,
    /// Bytes of the parts that were registered before these, and are not any more.
    pub before: u64,
    /// The message's data, until the target of a get has sent packets.
    pub divided: Option<Divided>,
}

/// The data of a message of which the target accesses parts.
#[derive(Clone, Debug)]
pub struct Divided {
    /// All of it.
    pub data: Content,
    /// Where it lies at the target, if that is known here.
    pub there: Option<Arc<Layout>>,
    /// The parts that the target knows; those that touch are one range.
    pub parts: Vec<Range>,
    /// The first byte of the parts that it does not know yet.
    pub next: Option<u64>,
    /// Whether parts are registered for accesses over one rail.
    pub one_rail: bool,
    /// Packets hold whole multiples of this many bytes of all of it; 0: any number.
    pub atom: usize,
}

/// What an operation waits for, and what it does then. Addresses are of the program's
/// memory; 0 is none.
#[derive(Clone, Debug)]
pub enum Op {
    /// A put or active message whose completion the program waits for.
    Completion {
        /// The completion counter.
        cmpl_cntr: usize,
    },
    /// A put or an active message whose data the target fetches.
    Rendezvous {
        /// What follows when the target has it. Its number of bytes is that of the data.
        done: SendDone,
        /// The completion counter, or 0.
        cmpl_cntr: usize,
        /// The message's number.
        id: u32,
        /// The data, if the target reads it by its address; else the registration has it.
        data: usize,
        /// The registration of the data, where the target reaches it by a key.
        registered: Option<Box<Registered>>,
        /// Whether the target has it, or has asked for it in packets.
        fetched: bool,
        /// Whether the message is complete. On a transport without order this packet
        /// may come first.
        concluded: bool,
    },
    /// A put that this task writes by itself.
    Write {
        /// What follows when it is in place. Its number of bytes is that of the data. `None`: its
        /// data was copied, so that this has followed.
        done: Option<SendDone>,
        /// The completion counter, or 0.
        cmpl_cntr: usize,
    },
    /// A get.
    Get {
        /// Where the data goes. With a registration, packets bring the data in another
        /// order: see [`Registered::reordered`].
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
        /// The registration of the place of the data, where the target reaches it by a key.
        registered: Option<Box<Registered>>,
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

impl Registered {
    /// What the target wants in packets: `bytes` bytes, those that are not registered or all of
    /// them; and the bytes of an atom.
    pub fn remaining(&self, bytes: u64) -> Option<(Content, usize)> {
        let Divided { data, parts, atom, .. } = self.divided.as_ref()?;
        let total = data.len() as u64;
        if bytes == total {
            return Some((data.clone(), *atom));
        }
        let rest = pieces::rest(parts.iter().copied(), total);
        Some((Content::from(Span::of_content(data).select(rest)), 0))
    }

    /// The next parts, which were registered instead of those before; or none, and the target asks
    /// for no others.
    pub fn add(&mut self, next: Option<Box<Self>>, batch: Batch) {
        if let (Some(divided), Some(next)) = (&mut self.divided, next) {
            (self.keys, self.bytes) = (next.keys, next.bytes);
            pieces::cover(&mut divided.parts, batch.ranges());
            divided.next = batch.next;
        }
    }

    /// Where the data of a get goes in the order in which packets carry it. From now on the
    /// target knows all parts, because it has sent such a packet. `None`: it is known already.
    pub fn reordered(&mut self) -> Option<Sink> {
        let Divided { data, parts, .. } = self.divided.take()?;
        let total = data.len() as u64;
        Some(Sink::from(Span::of_content(&data).select(pieces::reordered(&parts, total))))
    }
}

/// An operation, its peer, and the epoch in which it began.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The operation.
    pub op: Op,
    /// The task that must reply.
    pub peer: Task,
    /// How many marks there were when it began: see [`Ops::seen`]. An operation begins without a
    /// look at the clock.
    marks: u32,
    epoch: Option<u64>,
}

impl Op {
    /// A put or active message with the number `id` whose data the target is yet to fetch. `data`
    /// as in [`Self::Rendezvous`].
    pub fn rendezvous(
        done: SendDone,
        cmpl_cntr: usize,
        id: u32,
        data: usize,
        registered: Option<Box<Registered>>,
    ) -> Self {
        Self::Rendezvous { done, cmpl_cntr, id, data, registered, fetched: false, concluded: false }
    }

    /// Bytes of this task's memory that are registered for it.
    pub fn registered(&self) -> u64 {
        match self {
            Self::Rendezvous { registered, .. } | Self::Get { registered, .. } => {
                registered.as_ref().map_or(0, |registered| registered.bytes)
            }
            Self::Completion { .. } | Self::Write { .. } | Self::Rmw { .. } => 0,
        }
    }
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
            Op::Write { done, cmpl_cntr } => [*cmpl_cntr, done.map_or(0, |done| done.org_cntr)],
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
    /// How many wait for each peer. The table never shrinks, and going through it visits every slot
    /// that was ever used: so no path on which a thread waits may do that.
    peers: TaskCounts,
    marks: Marks,
}

impl Ops {
    /// With room for `room` operations before the table must grow.
    pub fn new(room: usize) -> Self {
        Self {
            table: SlotMap::with_capacity_and_key(room),
            epochs: Epochs::default(),
            peers: TaskCounts::default(),
            marks: Marks::default(),
        }
    }

    /// Takes an operation in, and returns its cookie, which is never 0. When `fenced`, a fence
    /// waits for it here; otherwise the target's confirmation covers it.
    #[inline]
    pub fn insert(&mut self, peer: Task, op: Op, fenced: bool) -> u64 {
        let epoch = fenced.then(|| self.epochs.enter());
        self.peers.add(peer);
        self.table.insert(Pending { op, peer, marks: self.marks.count, epoch }).data().as_ffi()
    }

    /// The operation with this cookie, if it is in flight and `peer` is the task that must reply.
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
        self.ended(peer, pending.epoch);
        Some(pending.op)
    }

    /// Ends a get to which `len` bytes are the whole reply, if all that follows is an origin
    /// counter: where they go, and the counter.
    #[inline]
    pub fn take_plain_get(&mut self, peer: Task, cookie: u64, len: usize) -> Option<(usize, usize)> {
        self.take_plain(peer, cookie, |op| match *op {
            Op::Get {
                sink: Sink::Buffer(at),
                len: all,
                arrived: 0,
                org_cntr,
                handler: 0,
                registered: None,
                ..
            } if all == len as u64 => Some((at, org_cntr)),
            _ => None,
        })
    }

    /// Ends a message whose completion the program waits for: its completion counter.
    #[inline]
    pub fn take_completion(&mut self, peer: Task, cookie: u64) -> Option<usize> {
        self.take_plain(peer, cookie, |op| match *op {
            Op::Completion { cmpl_cntr } => Some(cmpl_cntr),
            _ => None,
        })
    }

    /// Ends the operation with this cookie if `plain` finds something in it, which says that it
    /// owns no memory: so the operation is neither copied out of the table nor dropped.
    #[inline(always)]
    fn take_plain<T>(&mut self, peer: Task, cookie: u64, plain: impl FnOnce(&Op) -> Option<T>) -> Option<T> {
        let key = OpKey::from(KeyData::from_ffi(cookie));
        let pending = self.table.get(key)?;
        let (found, epoch) = (plain(&pending.op)?, pending.epoch);
        if pending.peer != peer {
            return None;
        }
        std::mem::forget(self.table.remove(key));
        self.ended(peer, epoch);
        Some(found)
    }

    /// An operation has ended, which waited for that peer and began in that epoch.
    #[inline]
    fn ended(&mut self, peer: Task, epoch: Option<u64>) {
        self.peers.subtract(peer);
        if let Some(epoch) = epoch {
            self.epochs.leave(epoch);
        }
    }

    /// Ends all operations that wait for `peer`.
    pub fn abandon(&mut self, peer: Task) -> Vec<Op> {
        if !self.wait_for(peer) {
            return Vec::new();
        }
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
        self.peers.of(peer) != 0
    }

    /// How many operations wait for `peer`.
    #[inline]
    pub fn count(&self, peer: Task) -> u32 {
        self.peers.of(peer)
    }

    /// The operations that wait for `peer`. Goes through the table: for reports.
    pub fn of(&self, peer: Task) -> impl Iterator<Item = &Op> + '_ {
        self.table.values().filter(move |pending| pending.peer == peer).map(|pending| &pending.op)
    }

    /// The tasks that something in flight waits for, each once, in no order.
    pub fn peers(&self) -> impl Iterator<Item = Task> + '_ {
        self.peers.tasks()
    }

    /// Those in flight, in no order. Goes through the table: for reports.
    pub fn iter(&self) -> impl Iterator<Item = &Pending> + '_ {
        self.table.values()
    }

    /// Notes that the operations in flight were there at this moment.
    pub fn mark(&mut self, moment: u32) {
        self.peers.prune();
        if !self.is_empty() {
            self.marks.add(moment);
        }
    }

    /// The moment of the first [`Self::mark`] after this operation began, or of a later
    /// one; 0: not yet.
    pub fn seen(&self, pending: &Pending) -> u32 {
        self.marks.after(pending.marks)
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

/// Moments, so that what began between two of them can later be found to be at least so old. Old
/// ones are thinned out.
#[derive(Default)]
struct Marks {
    /// How many moments were added.
    count: u32,
    /// Some of them with their numbers, from 1 on, in ascending order.
    moments: Vec<(u32, u32)>,
}

impl Marks {
    /// How many moments are kept at most.
    const KEPT: usize = 512;

    fn add(&mut self, moment: u32) {
        self.count = self.count.wrapping_add(1);
        if self.count == 0 {
            // After four billion moments the numbers begin again, and those that are
            // kept are invalid.
            self.moments.clear();
            self.count = 1;
        }
        if self.moments.len() == Self::KEPT {
            let mut at = 0;
            self.moments.retain(|_| {
                at += 1;
                at % 2 == 0 || at > Self::KEPT / 2
            });
        }
        self.moments.push((self.count, moment));
    }

    /// The first kept moment whose number is above `count`, or 0.
    fn after(&self, count: u32) -> u32 {
        let at = self.moments.partition_point(|(number, _)| *number <= count);
        self.moments.get(at).map_or(0, |(_, moment)| *moment)
    }
}

/// Which of the operations began before a fence: each belongs to the epoch in which it began, and a
/// fence ends one.
#[derive(Default)]
pub struct Epochs {
    /// The number of the first epoch in the list.
    first: u64,
    /// How many are in flight of each; the last is the present.
    counts: VecDeque<u32>,
}

impl Epochs {
    /// Adds one to the present epoch, and returns its number.
    #[inline]
    pub fn enter(&mut self) -> u64 {
        match self.counts.back_mut() {
            Some(count) => *count += 1,
            None => self.counts.push_back(1),
        }
        self.first + self.counts.len() as u64 - 1
    }

    /// Takes one from that epoch.
    #[inline]
    pub fn leave(&mut self, epoch: u64) {
        self.counts[(epoch - self.first) as usize] -= 1;
        while self.counts.len() > 1 && self.counts[0] == 0 {
            self.counts.pop_front();
            self.first += 1;
        }
    }

    /// Ends the present epoch, and returns its number.
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
