//! Copies across address spaces.
//!
//! The origin of a put writes, the origin of a get reads, and the target of an active message reads, because only its
//! header handler knows where the data goes. Copies are made in slices, one for each round of the dispatcher, so that a
//! long one does not stop everything else. What the kernel refuses goes in packets, from its beginning.

use super::arrival::{self, Then};
use super::context::Held;
use super::dispatcher::answer;
use super::origin::{self, Get, Put};
use super::reply;
use super::vector::{self, Marks, Vectored};
use crate::abi::LAPI_ERR_NO_CONNECTIVITY;
use crate::base::bytes::Piece;
use crate::base::clock::ticks;
use crate::dgsp::Layout;
use crate::proto::content::Content;
use crate::proto::outbox::{Continuation, Posted, SendDone, Streaming};
use crate::transport::{Copy, PeerState, Task};
use crate::wire::packet::Head;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes that one round of the dispatcher copies.
const SLICE: usize = 1 << 20;
/// Pieces that one round copies.
const PIECES: usize = 1024;
/// From so many bytes on, a look whether the peer's process lives costs nothing beside the copy.
const WORTH_A_LOOK: usize = 1 << 18;

/// A copy under way.
pub struct Transfer {
    /// The task whose memory is at the other end.
    pub peer: Task,
    places: Places,
    len: usize,
    copied: usize,
    /// Ticks that the copying has taken.
    took: u64,
    kind: Kind,
}

/// Where the data is, at the two ends.
enum Places {
    /// In a row at both.
    Row { local: usize, remote: u64 },
    /// In many places; the addresses of the second are the peer's.
    Many { local: Arc<Layout>, remote: Arc<Layout> },
}

#[derive(Clone, Copy)]
enum Kind {
    /// Our put.
    Push { id: u32, tgt_cntr: u64, cookie: u64, done: SendDone },
    /// Our get.
    Fetch { cookie: u64, tgt_cntr: u64 },
    /// The data of an active message of the peer's.
    Pull { id: u32, cookie: u64 },
}

impl Transfer {
    /// A put, as message `id`.
    pub fn push(put: &Put, id: u32, cookie: u64) -> Self {
        let kind = Kind::Push { id, tgt_cntr: put.tgt_cntr, cookie, done: put.done };
        Self::new(put.tgt, put.data.ptr as usize, put.addr, put.data.len, kind)
    }

    /// A get, as operation `cookie`.
    pub fn fetch(get: &Get, cookie: u64) -> Self {
        let kind = Kind::Fetch { cookie, tgt_cntr: get.tgt_cntr };
        Self::new(get.tgt, get.buffer, get.addr, get.len as usize, kind)
    }

    /// The data of message `id` of `peer`, exposed as its operation `cookie`.
    pub fn pull(peer: Task, id: u32, cookie: u64, remote: u64, buffer: usize, len: usize) -> Self {
        Self::new(peer, buffer, remote, len, Kind::Pull { id, cookie })
    }

    /// A put between two vectors, as message `id`.
    pub fn push_vector(put: &Vectored, id: u32, cookie: u64, done: SendDone) -> Self {
        Self::between(put, Kind::Push { id, tgt_cntr: put.tgt_cntr, cookie, done })
    }

    /// A get between two vectors, as operation `cookie`.
    pub fn fetch_vector(get: &Vectored, cookie: u64) -> Self {
        Self::between(get, Kind::Fetch { cookie, tgt_cntr: get.tgt_cntr })
    }

    fn new(peer: Task, local: usize, remote: u64, len: usize, kind: Kind) -> Self {
        Self { peer, places: Places::Row { local, remote }, len, copied: 0, took: 0, kind }
    }

    fn between(vectors: &Vectored, kind: Kind) -> Self {
        let places = Places::Many { local: vectors.origin.clone(), remote: vectors.target.clone() };
        let len = vectors.origin.len() as usize;
        Self { peer: vectors.tgt, places, len, copied: 0, took: 0, kind }
    }

    /// What follows at this task when the copy is given up.
    pub fn abandoned(&self) -> Option<SendDone> {
        match self.kind {
            Kind::Push { done, .. } => Some(done),
            Kind::Fetch { .. } | Kind::Pull { .. } => None,
        }
    }

    /// The copies of the next slice.
    fn slice(&self) -> Vec<Copy> {
        let len = SLICE.min(self.len - self.copied);
        match &self.places {
            Places::Row { local, remote } => {
                let (local, remote) = ((local + self.copied) as *mut u8, remote + self.copied as u64);
                vec![Copy { local, remote, len }]
            }
            Places::Many { local, remote } => {
                // So many bytes that there are about as many pieces as one round shall copy.
                let piece =
                    (self.len as u64 / local.run_count().max(remote.run_count()).max(1)).max(1) as usize;
                refine(local, remote, self.copied, len.min(piece.saturating_mul(PIECES)))
            }
        }
    }
}

/// The bytes `from..from + len` of two layouts, as copies of what is in a row at both.
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

/// Starts a copy: its first slice is made at once.
pub fn begin(held: &mut Held<'_>, transfer: Transfer) {
    advance(held, transfer);
}

/// Goes on with a copy, if one is under way.
pub fn step(held: &mut Held<'_>) -> bool {
    let Some(transfer) = held.core().transfers.pop_front() else { return false };
    advance(held, transfer);
    true
}

fn advance(held: &mut Held<'_>, mut transfer: Transfer) {
    let core = held.core();
    if transfer.len >= WORTH_A_LOOK && core.transport.peer_state(transfer.peer) != PeerState::Up {
        // The number of its process may mean another one by now.
        return refused(held, transfer);
    }
    let before = ticks();
    let slice = transfer.slice();
    let Some(attach) = core.transport.attach() else { return refused(held, transfer) };
    let outcome = match transfer.kind {
        // SAFETY: the program leaves its data alone until the put is done.
        Kind::Push { .. } => unsafe { attach.write_all(transfer.peer, &slice) },
        // SAFETY: the program, or its header handler, has given these places for the data.
        Kind::Fetch { .. } | Kind::Pull { .. } => unsafe { attach.read_all(transfer.peer, &slice) },
    };
    if outcome.is_err() {
        return refused(held, transfer);
    }
    match transfer.kind {
        Kind::Push { .. } => core.stats.peers.packets_sent += 1,
        Kind::Fetch { .. } | Kind::Pull { .. } => core.stats.peers.packets_received += 1,
    }
    transfer.copied += slice.iter().map(|copy| copy.len).sum::<usize>();
    transfer.took += ticks() - before;
    if transfer.copied < transfer.len {
        core.transfers.push_back(transfer);
        return;
    }
    match &transfer.places {
        Places::Row { .. } => core.tuner.note_copy(transfer.len, transfer.len, transfer.took),
        Places::Many { local, remote } => {
            let piece = transfer.len as u64 / local.run_count().max(remote.run_count()).max(1);
            core.vector_tuner.note_copy(piece as usize, transfer.len, transfer.took);
        }
    }
    finish(held, &transfer);
}

fn finish(held: &mut Held<'_>, transfer: &Transfer) {
    match transfer.kind {
        Kind::Push { id, tgt_cntr, cookie, done } => {
            announce(held, transfer, id, tgt_cntr, cookie);
            origin::finish(held, &done);
        }
        Kind::Fetch { cookie, tgt_cntr } => {
            held.core().transport.note_fetched(transfer.peer, transfer.len as u64);
            if tgt_cntr != 0 {
                let id = held.core().outbox.number(transfer.peer);
                announce(held, transfer, id, tgt_cntr, 0);
            }
            reply::got(held, transfer.peer, cookie);
        }
        Kind::Pull { id, cookie } => {
            let core = held.core();
            answer(core, transfer.peer, &Head::Pulled { cookie, refused: 0 });
            if let Some(Then::Land(landing)) =
                core.inbox.withdraw(transfer.peer, id).map(|assembly| assembly.then)
            {
                arrival::landed(held, landing);
            }
        }
    }
}

/// Tells the target of a copy that we have made in its memory, or from it: a put of nothing, with the operation's number
/// and counters. In place of an address it says how many bytes we have put there.
fn announce(held: &mut Held<'_>, transfer: &Transfer, id: u32, tgt_cntr: u64, cookie: u64) {
    let bytes = if matches!(transfer.kind, Kind::Push { .. }) { transfer.len as u64 } else { 0 };
    answer(held.core(), transfer.peer, &Head::Put { id, addr: bytes, tgt_cntr, cookie, total: 0 });
}

/// The kernel did not make the copy: the data goes in packets, from its beginning.
#[cold]
fn refused(held: &mut Held<'_>, transfer: Transfer) {
    let core = held.core();
    core.stats.peers.refused += 1;
    let (peer, len) = (transfer.peer, transfer.len as u64);
    match (transfer.kind, &transfer.places) {
        (Kind::Push { id, tgt_cntr, cookie, done }, places) => {
            // SAFETY: the program leaves its data alone until the put is done.
            let posted = unsafe {
                match places {
                    Places::Row { local, remote } => {
                        let head = Head::Put { id, addr: *remote, tgt_cntr, cookie, total: len };
                        let data = Content::Piece(Piece { ptr: *local as *const u8, len: transfer.len });
                        let (first, next) = (Some((&head, Piece::EMPTY)), Continuation::Message(id));
                        origin::stream(held, peer, first, next, &data, Streaming::default(), done)
                    }
                    Places::Many { local, remote } => {
                        vector::put_runs(held, peer, Marks { id, tgt_cntr, cookie }, local, remote, done)
                    }
                }
            };
            match posted {
                Posted::Free => origin::finish(held, &done),
                Posted::Queued => {}
                // Reported with the other send operations that are done.
                Posted::Gone => {
                    held.core().finished.push(SendDone { error: LAPI_ERR_NO_CONNECTIVITY, ..done })
                }
            }
        }
        // A peer that has gone meanwhile is reported when somebody waits for the answer.
        (Kind::Fetch { cookie, tgt_cntr }, Places::Row { remote, .. }) => {
            answer(core, peer, &Head::Get { addr: *remote, len, cookie, tgt_cntr });
        }
        (Kind::Fetch { cookie, tgt_cntr }, Places::Many { remote, .. }) => {
            vector::request_runs(held, peer, remote, tgt_cntr, cookie);
        }
        // The message stays in assembly, and its data will come as that of any other.
        (Kind::Pull { cookie, .. }, _) => {
            answer(core, peer, &Head::Pulled { cookie, refused: len });
        }
    }
}
