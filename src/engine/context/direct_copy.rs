//! A copy across address spaces: what is copied, by whom, and how much of it is done.
//!
//! The origin of a put writes, the origin of a get reads, and the target of an active message
//! reads, because only its header handler knows where the data goes. Copies are made in slices, one
//! for each round of the dispatcher (see [`crate::engine::transfer::direct`]), so that a long one
//! does not stop everything else.
//!
//! By keys the target of a put reads, and the target of a get writes
//! ([`crate::engine::transfer::parts`]). Each [`Part`] of such a copy is given to the transport
//! whole, because no processor of this task makes it.

use crate::dgsp::{Layout, overlaps};
use crate::engine::context::incoming::Parts;
use crate::engine::context::request::{Marks, Places, Put};
use crate::proto::content::Content;
use crate::proto::outbox::SendDone;
use crate::proto::pieces::{self, Range, Span};
use crate::transport::{Access, AccessId, Copy, Key, Task};
use crate::wire::key::{Exposed, Part};
use std::io;

/// Bytes that one round of the dispatcher copies.
const SLICE: usize = 1 << 20;
/// Pieces that one round copies, and about as many as one access by keys has.
const PIECES: usize = 1024;
/// Accesses by keys that are under way at a time, of one copy.
pub(crate) const ACCESSES: usize = 16;

/// A copy under way.
pub struct DirectCopy {
    /// The task whose memory is at the other end.
    pub peer: Task,
    pub(crate) places: Places,
    pub(crate) copied: usize,
    pub(crate) kind: CopyKind,
    /// The remote accesses that the transport will report, and their bytes.
    pub(crate) waits: Vec<(AccessId, usize)>,
    /// What is accessed, where the peer's memory is reached by keys.
    pub(crate) keyed: Option<Box<Keyed>>,
}

/// The parts of a message that are accessed by keys, of which the peer has registered one
/// batch at a time.
pub(crate) struct Keyed {
    /// The parts of this batch, in order.
    parts: Box<[Part]>,
    /// The parts of this batch and of those before it; those that touch are one range.
    covered: Vec<Range>,
    /// Whether the peer sends another batch after this one, when it is asked.
    more: bool,
    /// How many parts of this batch were started whole, and how many bytes of the next one.
    started: usize,
    begun: u64,
    /// Bytes of one access, at most: a bounded number of places here, however many a part has.
    most: u64,
    /// Where the message lies at this task.
    pub(crate) here: Span,
    /// Bytes of the message.
    pub(crate) total: u64,
    /// Why an access has failed: no other is started, and the message goes in packets when those
    /// under way are over.
    pub(crate) failed: Option<io::Error>,
}

impl Keyed {
    pub(crate) fn new(parts: Parts, here: Span, total: u64) -> Box<Self> {
        let most = here.bytes_in(PIECES as u64);
        let mut keyed = Box::new(Self {
            parts: Box::default(),
            covered: Vec::new(),
            more: false,
            started: 0,
            begun: 0,
            most,
            here,
            total,
            failed: None,
        });
        keyed.add(parts);
        keyed
    }

    /// All of a message that is contiguous at both tasks.
    pub(crate) fn contiguous(exposed: Exposed, at: usize, len: u64) -> Box<Self> {
        Self::new(Parts::one(Part { from: 0, len, exposed }), Span::contiguous(at, len), len)
    }

    /// The next batch, whose parts lie behind those that are known.
    pub(crate) fn add(&mut self, Parts { list, more }: Parts) {
        pieces::cover(&mut self.covered, pieces::ranges(&list));
        (self.parts, self.started, self.begun, self.more) = (list, 0, 0, more);
    }

    /// Whether another batch is to be asked for when this one is over.
    pub(crate) fn has_more(&self) -> bool {
        self.more
    }

    /// The end of the parts that are known.
    pub(crate) fn end(&self) -> u64 {
        self.covered.last().map_or(0, |(from, len)| from + len)
    }

    /// The next access: what it makes of a part, and the copies. A part without places here
    /// has no copies.
    pub(crate) fn next(&mut self) -> Option<(Part, Vec<Copy>)> {
        let whole = *self.parts.get(self.started).filter(|_| self.failed.is_none())?;
        let len = self.most.min(whole.len - self.begun);
        let exposed = Exposed { addr: whole.exposed.addr + self.begun, ..whole.exposed };
        let part = Part { from: whole.from + self.begun, len, exposed };
        self.begun += len;
        if self.begun == whole.len {
            (self.started, self.begun) = (self.started + 1, 0);
        }
        let (mut remote, mut copies) = (part.exposed.addr, Vec::new());
        self.here.runs((part.from, part.len), |local, len| {
            copies.push(Copy { local, remote, len });
            remote += len as u64;
        });
        Some((part, copies))
    }

    /// Bytes of the message in no part: they go in packets.
    pub(crate) fn rest(&self) -> u64 {
        self.total - self.covered.iter().map(|(_, len)| len).sum::<u64>()
    }

    /// Where these bytes lie.
    pub(crate) fn rest_places(&self) -> Layout {
        self.here.select(pieces::rest(self.covered.iter().copied(), self.total))
    }

    /// The data of a get in the order in which packets carry it.
    pub(crate) fn reply(&self) -> Content {
        Content::from(self.here.select(pieces::reordered(&self.covered, self.total)))
    }
}

/// Whose operation it is.
#[derive(Clone, Copy)]
pub(crate) enum CopyKind {
    /// Our put.
    Push { marks: Marks, done: SendDone },
    /// Our put, by the key of all memory of the target: operation `cookie`.
    Write { cookie: u64, done: SendDone },
    /// Our get.
    Fetch { cookie: u64, tgt_cntr: u64 },
    /// The data of a put or an active message of the peer's.
    Pull { id: u32, cookie: u64 },
    /// The data of a get of the peer's.
    Serve { cookie: u64, tgt_cntr: u64 },
}

impl DirectCopy {
    /// A put of contiguous data, as operation `cookie`, by the key of all memory of the target.
    pub(crate) fn write(put: &Put, cookie: u64, key: Key) -> Self {
        let Places::Contiguous { local, remote: addr, len } = put.places else {
            unreachable!("one place is written")
        };
        let done = SendDone { bytes: len as u64, ..put.done };
        let keyed = Keyed::contiguous(Exposed { addr, key }, local, len as u64);
        let copy = Self::new(put.tgt, put.places.clone(), CopyKind::Write { cookie, done });
        Self { keyed: Some(keyed), ..copy }
    }

    /// The data of message `id` of `peer`, pulled by keys.
    pub(crate) fn pull_by_keys(peer: Task, id: u32, cookie: u64, keyed: Box<Keyed>) -> Self {
        Self { keyed: Some(keyed), ..Self::new(peer, Places::EMPTY, CopyKind::Pull { id, cookie }) }
    }

    /// The data of a get of `peer`, its operation `cookie`, to memory there that it has registered.
    pub(crate) fn serve(peer: Task, cookie: u64, tgt_cntr: u64, keyed: Box<Keyed>) -> Self {
        Self { keyed: Some(keyed), ..Self::new(peer, Places::EMPTY, CopyKind::Serve { cookie, tgt_cntr }) }
    }

    /// A copy by addresses.
    pub(crate) fn new(peer: Task, places: Places, kind: CopyKind) -> Self {
        Self { peer, places, copied: 0, kind, waits: Vec::new(), keyed: None }
    }

    /// What this task does in the peer's memory.
    pub(crate) fn access(&self) -> Access {
        match self.kind {
            CopyKind::Push { .. } | CopyKind::Write { .. } | CopyKind::Serve { .. } => Access::Write,
            CopyKind::Fetch { .. } | CopyKind::Pull { .. } => Access::Read,
        }
    }

    /// Whether it continues only when the transport reports an access.
    pub(crate) fn waits(&self) -> bool {
        !self.waits.is_empty()
    }

    /// Whether it waits for this access, among others perhaps.
    pub(crate) fn awaits(&self, access: AccessId) -> bool {
        self.waits.iter().any(|(waited, _)| *waited == access)
    }

    /// Whether it belongs to the peer's operation `cookie`.
    pub(crate) fn is_of(&self, peer: Task, cookie: u64) -> bool {
        match self.kind {
            CopyKind::Pull { cookie: its, .. } | CopyKind::Serve { cookie: its, .. } => {
                (self.peer, its) == (peer, cookie)
            }
            CopyKind::Push { .. } | CopyKind::Write { .. } | CopyKind::Fetch { .. } => false,
        }
    }

    /// Bytes in all.
    pub(crate) fn len(&self) -> usize {
        self.keyed.as_ref().map_or_else(|| self.places.len(), |keyed| keyed.total as usize)
    }

    /// What follows at this task when the copy is given up.
    pub fn abandoned(&self) -> Option<SendDone> {
        match self.kind {
            CopyKind::Push { done, .. } | CopyKind::Write { done, .. } => Some(done),
            CopyKind::Fetch { .. } | CopyKind::Pull { .. } | CopyKind::Serve { .. } => None,
        }
    }

    /// The copies of the next slice, where the peer's memory is reached by addresses.
    pub(crate) fn slice(&self) -> Vec<Copy> {
        let len = SLICE.min(self.len() - self.copied);
        match &self.places {
            Places::Contiguous { local, remote, .. } => {
                let (local, remote) = ((local + self.copied) as *mut u8, remote + self.copied as u64);
                vec![Copy { local, remote, len }]
            }
            Places::Layouts(layouts) => {
                // As many bytes as give about as many pieces as one round shall copy.
                let most = (self.places.piece() as usize).saturating_mul(PIECES);
                let (from, len) = (self.copied as u64, len.min(most) as u64);
                let mut copies = Vec::new();
                overlaps(&layouts.local, &layouts.remote, from, len, |local, remote, len| {
                    copies.push(Copy { local, remote: remote as u64, len });
                });
                copies
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dgsp::description::layout_of;
    use crate::wire::key::Key;
    use std::sync::Arc;

    /// A request of a hundred bytes that describes 2^40 places: no access has many of them, and
    /// what lists them takes no memory.
    #[test]
    fn what_a_request_describes_is_not_listed() {
        const TOTAL: u64 = 1 << 40;
        let layout = layout_of(&[1, 0x1000, 1, 2, TOTAL]).expect("a strided vector");
        let part = |from, len| {
            let exposed = Exposed { addr: from, key: Key { key: 1, offset: 0 } };
            Part { from, len, exposed }
        };
        let parts = [part(1, 100_000), part(TOTAL / 2, TOTAL / 4)];
        let all = Parts { list: parts.into(), more: false };
        let mut keyed = Keyed::new(all, Span::new(Arc::new(layout)), TOTAL);
        let mut next = parts[0].from;
        for access in 0..500 {
            let (part, copies) = keyed.next().expect("another access");
            if part.from == parts[1].from {
                next = part.from;
                assert!(access > 1, "the first part has more places than one access may have");
            }
            assert_eq!((part.from, part.exposed.addr), (next, next));
            next += part.len;
            assert!((1..=PIECES).contains(&copies.len()), "{} places", copies.len());
            assert_eq!(copies.iter().map(|copy| copy.len as u64).sum::<u64>(), part.len);
            let places = copies.iter().map(|copy| (copy.local.addr() as u64, copy.remote));
            assert!(places.eq((part.from..next).map(|at| (0x1000 + 2 * at, at))));
        }
        assert_eq!(keyed.rest_places().len(), TOTAL - TOTAL / 4 - 100_000);
        assert_eq!(keyed.reply().len() as u64, TOTAL);
    }

    /// Contiguous parts, and those of few places, are one access each.
    #[test]
    fn parts_of_few_places_are_accessed_whole() {
        let part = |from, len| {
            let exposed = Exposed { addr: from, key: Key { key: 1, offset: 0 } };
            Part { from, len, exposed }
        };
        let pieces = (0..PIECES).map(|at| ((0x1000 + at * 100) as *mut u8, 64));
        for here in [Layout::contiguous(0x1000 as *mut u8, 64 << 10), Layout::pieces(pieces)] {
            let parts = [part(0, 32 << 10), part(32 << 10, 32 << 10)];
            let all = Parts { list: parts.into(), more: false };
            let mut keyed = Keyed::new(all, Span::new(Arc::new(here)), 64 << 10);
            let accesses: Vec<Part> = std::iter::from_fn(|| keyed.next()).map(|(part, _)| part).collect();
            assert_eq!(accesses, parts);
        }
    }
}
