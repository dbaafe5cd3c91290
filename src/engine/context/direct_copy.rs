//! A copy across address spaces: what is copied, by whom, and how much of it is done.
//!
//! The origin of a put writes, the origin of a get reads, and the target of an active message reads, because only its
//! header handler knows where the data goes. Copies are made in slices, one for each round of the dispatcher (see
//! [`crate::engine::transfer::direct`]), so that a long one does not stop everything else.
//!
//! By a key the target of a put reads, and the target of a get writes ([`crate::engine::transfer::bulk`]). Such a copy is
//! given to the transport whole, because no processor of this task makes it.

use crate::base::bytes::Piece;
use crate::dgsp::Layout;
use crate::engine::context::request::{Get, Marks, Places, Put};
use crate::proto::outbox::SendDone;
use crate::transport::{Access, AccessId, Copy, Key, Task};
use std::collections::VecDeque;

/// Bytes that one round of the dispatcher copies.
const SLICE: usize = 1 << 20;
/// Pieces that one round copies.
const PIECES: usize = 1024;
/// A copy under way.
pub struct DirectCopy {
    /// The task whose memory is at the other end.
    pub peer: Task,
    pub(crate) places: Places,
    pub(crate) copied: usize,
    /// Ticks that the copying has taken.
    pub(crate) took: u64,
    pub(crate) kind: Kind,
    /// The remote access that the transport will report, and its bytes.
    pub(crate) waits: Option<(AccessId, usize)>,
    /// The key of the peer's memory, where it is reached by keys.
    pub(crate) key: Option<Key>,
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

    /// The data of a get of `peer`, its operation `cookie`, to this address there.
    pub fn serve(peer: Task, cookie: u64, tgt_cntr: u64, data: Piece, remote: u64) -> Self {
        let places = Places::Contiguous { local: data.ptr as usize, remote, len: data.len };
        Self::new(peer, places, Kind::Serve { cookie, tgt_cntr })
    }

    /// The same with the key of the peer's memory.
    pub fn by(self, key: Option<Key>) -> Self {
        Self { key, ..self }
    }

    fn new(peer: Task, places: Places, kind: Kind) -> Self {
        Self { peer, places, copied: 0, took: 0, kind, waits: None, key: None }
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
        self.places.len()
    }

    /// What follows at this task when the copy is given up.
    pub fn abandoned(&self) -> Option<SendDone> {
        match self.kind {
            Kind::Push { done, .. } => Some(done),
            Kind::Fetch { .. } | Kind::Pull { .. } | Kind::Serve { .. } => None,
        }
    }

    /// The copies of the next slice.
    pub(crate) fn slice(&self) -> Vec<Copy> {
        let left = self.len() - self.copied;
        let len = if self.key.is_some() { left } else { SLICE.min(left) };
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
    let mut theirs = VecDeque::new();
    remote.runs(from as u64, len as u64, |at, len| theirs.push_back((at as u64, len)));
    let mut copies = Vec::with_capacity(theirs.len());
    local.runs(from as u64, len as u64, |at, mut len| {
        let mut at = at;
        while len != 0 {
            let Some((remote, left)) = theirs.front_mut() else { return };
            let both = len.min(*left);
            copies.push(Copy { local: at, remote: *remote, len: both });
            (at, len) = (at.wrapping_add(both), len - both);
            (*remote, *left) = (*remote + both as u64, *left - both);
            if *left == 0 {
                theirs.pop_front();
            }
        }
    });
    copies
}
