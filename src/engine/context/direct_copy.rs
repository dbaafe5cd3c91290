//! A copy across address spaces: what is copied, by whom, and how much of it is done.
//!
//! The origin of a put writes, the origin of a get reads, and the target of an active message reads, because only its
//! header handler knows where the data goes. Copies are made in slices, one for each round of the dispatcher (see
//! [`crate::engine::transfer::direct`]), so that a long one does not stop everything else.
//!
//! By keys the target of a put reads, and the target of a get writes ([`crate::engine::transfer::bulk`]). Each [`Part`] of such
//! a copy is given to the transport whole, because no processor of this task makes it.

use crate::dgsp::{Layout, overlaps};
use crate::engine::context::request::{Get, Marks, Places, Put};
use crate::proto::content::Content;
use crate::proto::outbox::SendDone;
use crate::proto::pieces::{self, Span};
use crate::transport::{Access, AccessId, Copy, Task};
use crate::wire::key::{Exposed, Part};
use std::io;

/// Bytes that one round of the dispatcher copies.
const SLICE: usize = 1 << 20;
/// Pieces that one round copies.
const PIECES: usize = 1024;
/// Accesses by keys that are under way at a time, of one copy.
pub(crate) const ACCESSES: usize = 16;

/// A copy under way.
pub struct DirectCopy {
    /// The task whose memory is at the other end.
    pub peer: Task,
    pub(crate) places: Places,
    pub(crate) copied: usize,
    /// Ticks that the copying has taken.
    pub(crate) took: u64,
    pub(crate) kind: Kind,
    /// The remote accesses that the transport will report, and their bytes.
    pub(crate) waits: Vec<(AccessId, usize)>,
    /// What is accessed, where the peer's memory is reached by keys.
    pub(crate) keyed: Option<Box<Keyed>>,
}

/// The parts of a message that are accessed by keys.
pub(crate) struct Keyed {
    /// The parts, in order.
    pub(crate) parts: Box<[Part]>,
    /// How many of them were started.
    pub(crate) started: usize,
    /// Where the message lies at this task.
    pub(crate) here: Span,
    /// Bytes of the message.
    pub(crate) total: u64,
    /// Why an access has failed: no other is started, and the message goes in packets when those under way are over.
    pub(crate) failed: Option<io::Error>,
}

impl Keyed {
    pub(crate) fn new(parts: Box<[Part]>, here: Span, total: u64) -> Box<Self> {
        Box::new(Self { parts, started: 0, here, total, failed: None })
    }

    /// All of a message that is contiguous at both tasks.
    pub(crate) fn contiguous(exposed: Exposed, at: usize, len: u64) -> Box<Self> {
        Self::new([Part { from: 0, len, exposed }].into(), Span::contiguous(at, len), len)
    }

    /// The next access: its part, and the copies. A part without places here has no copies.
    pub(crate) fn next(&mut self) -> Option<(Part, Vec<Copy>)> {
        let part = *self.parts.get(self.started).filter(|_| self.failed.is_none())?;
        self.started += 1;
        let (mut remote, mut copies) = (part.exposed.addr, Vec::new());
        self.here.runs((part.from, part.len), |local, len| {
            copies.push(Copy { local, remote, len });
            remote += len as u64;
        });
        Some((part, copies))
    }

    /// Bytes of the message in no part: they go in packets.
    pub(crate) fn rest(&self) -> u64 {
        self.total - self.parts.iter().map(|part| part.len).sum::<u64>()
    }

    /// Where these bytes lie.
    pub(crate) fn rest_places(&self) -> Layout {
        self.here.select(pieces::rest(pieces::ranges(&self.parts), self.total))
    }

    /// The data of a get in the order in which packets carry it.
    pub(crate) fn reply(&self) -> Content {
        Content::from(self.here.select(pieces::reordered(&pieces::ranges(&self.parts), self.total)))
    }
}

/// Whose operation it is.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Our put.
    Push { marks: Marks, done: SendDone },
    /// Our get.
    Fetch { cookie: u64, tgt_cntr: u64 },
    /// The data of a put or an active message of the peer's.
    Pull { id: u32, cookie: u64 },
    /// The data of a get of the peer's.
    Serve { cookie: u64, tgt_cntr: u64 },
}

impl DirectCopy {
    /// A put.
    pub fn push(put: &Put, marks: Marks) -> Self {
        Self::new(put.tgt, put.places.clone(), Kind::Push { marks, done: put.done })
    }

    /// A get, as operation `cookie`.
    pub fn fetch(get: &Get, cookie: u64) -> Self {
        Self::new(get.tgt, get.places.clone(), Kind::Fetch { cookie, tgt_cntr: get.tgt_cntr })
    }

    /// The data of message `id` of `peer`, exposed as its operation `cookie`.
    pub fn pull(peer: Task, id: u32, cookie: u64, remote: u64, buffer: usize, len: usize) -> Self {
        Self::new(peer, Places::Contiguous { local: buffer, remote, len }, Kind::Pull { id, cookie })
    }

    /// The same by keys.
    pub(crate) fn pull_by_keys(peer: Task, id: u32, cookie: u64, keyed: Box<Keyed>) -> Self {
        Self { keyed: Some(keyed), ..Self::new(peer, Places::EMPTY, Kind::Pull { id, cookie }) }
    }

    /// The data of a get of `peer`, its operation `cookie`, to memory there that it has registered.
    pub(crate) fn serve(peer: Task, cookie: u64, tgt_cntr: u64, keyed: Box<Keyed>) -> Self {
        Self { keyed: Some(keyed), ..Self::new(peer, Places::EMPTY, Kind::Serve { cookie, tgt_cntr }) }
    }

    fn new(peer: Task, places: Places, kind: Kind) -> Self {
        Self { peer, places, copied: 0, took: 0, kind, waits: Vec::new(), keyed: None }
    }

    /// What this task does in the peer's memory.
    pub(crate) fn access(&self) -> Access {
        match self.kind {
            Kind::Push { .. } | Kind::Serve { .. } => Access::Write,
            Kind::Fetch { .. } | Kind::Pull { .. } => Access::Read,
        }
    }

    /// Bytes in all.
    pub(crate) fn len(&self) -> usize {
        self.keyed.as_ref().map_or_else(|| self.places.len(), |keyed| keyed.total as usize)
    }

    /// What follows at this task when the copy is given up.
    pub fn abandoned(&self) -> Option<SendDone> {
        match self.kind {
            Kind::Push { done, .. } => Some(done),
            Kind::Fetch { .. } | Kind::Pull { .. } | Kind::Serve { .. } => None,
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
                refine(&layouts.local, &layouts.remote, self.copied, len.min(most))
            }
        }
    }
}

/// The bytes `from..from + len` of two layouts, as copies of what is contiguous at both.
fn refine(local: &Layout, remote: &Layout, from: usize, len: usize) -> Vec<Copy> {
    let mut copies = Vec::new();
    overlaps(local, remote, from as u64, len as u64, |local, remote, len| {
        copies.push(Copy { local, remote: remote as u64, len });
    });
    copies
}
