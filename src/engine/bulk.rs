//! Long messages: which way they go, and copies across address spaces.
//!
//! A long message goes as a stream of packets, so that both processors copy at the same time, or in one copy across
//! address spaces, which needs no help: the origin of a put writes, the origin of a get reads, and the
//! target of an active message reads, because only its header handler knows where the data goes. Copies are made in
//! slices, one per round of the dispatcher, so that a long one does not stop everything else.

use super::arrival;
use super::context::{Core, Held};
use super::dispatcher::answer;
use super::origin::{self, Get, Put};
use crate::abi::LAPI_ERR_NO_CONNECTIVITY;
use crate::base::bytes::Piece;
use crate::base::clock::ticks;
use crate::proto::outbox::{Continuation, Posted, SendDone};
use crate::transport::{PeerState, Task};
use crate::wire::packet::Head;

/// Bytes that one round of the dispatcher copies.
const SLICE: usize = 1 << 20;
/// Ticks between two prods, about a millisecond: who has been prodded is on its way.
const BETWEEN_PRODS: u64 = 2_000_000;
/// From so many bytes on, a look whether the peer's process lives costs nothing beside the copy.
const WORTH_A_LOOK: usize = 1 << 18;

/// What the program wishes for one message (LAPI_USE_BULK_XFER, LAPI_NOT_USE_BULK_XFER).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// Nothing.
    #[default]
    None,
    /// One copy, if that is possible.
    Bulk,
    /// Packets.
    Packets,
}

/// How long messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// As seems best for each.
    Auto,
    /// Always in packets.
    Packets,
    /// Always in one copy, where that is possible.
    Attach,
}

/// What the choice depends on.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// What the program's environment wants.
    pub preference: Preference,
    /// There are more tasks than processors: the two sides of a stream would wait for each other's turn.
    pub crowded: bool,
}

/// The way of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A stream of packets.
    Packets,
    /// A copy across address spaces.
    Attach,
}

/// The way of a put or active message that is longer than a packet.
pub fn choose(core: &mut Core, peer: Task, len: usize, hint: Hint) -> Way {
    let policy = core.options.bulk;
    if core.transport.attach().is_none() {
        return Way::Packets;
    }
    match (policy.preference, hint) {
        (Preference::Packets, _) | (Preference::Auto, Hint::Packets) => Way::Packets,
        (Preference::Attach, _) | (Preference::Auto, Hint::Bulk) => Way::Attach,
        // A peer that is not looking for packets would have to be woken to take a stream.
        (Preference::Auto, Hint::None) if policy.crowded || !core.transport.attentive(peer) => Way::Attach,
        (Preference::Auto, Hint::None) => core.tuner.choose(len),
    }
}

/// The way of a get: a short one too is better fetched from a peer that is not looking.
pub fn choose_get(core: &mut Core, peer: Task, len: usize, hint: Hint) -> Way {
    let short = len <= core.outbox.max_body();
    match core.options.bulk.preference {
        _ if len == 0 => Way::Packets,
        Preference::Auto if short && core.transport.attentive(peer) => Way::Packets,
        Preference::Attach if short => Way::Packets,
        _ => choose(core, peer, len, hint),
    }
}

/// A copy under way.
pub struct Transfer {
    /// The task whose memory is at the other end.
    pub peer: Task,
    remote: u64,
    local: usize,
    len: usize,
    copied: usize,
    /// Ticks that the copying has taken.
    took: u64,
    kind: Kind,
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
        Self {
            peer: put.tgt,
            remote: put.addr,
            local: put.data.ptr as usize,
            len: put.data.len,
            copied: 0,
            took: 0,
            kind,
        }
    }

    /// A get, as operation `cookie`.
    pub fn fetch(get: &Get, cookie: u64) -> Self {
        let kind = Kind::Fetch { cookie, tgt_cntr: get.tgt_cntr };
        Self {
            peer: get.tgt,
            remote: get.addr,
            local: get.buffer,
            len: get.len as usize,
            copied: 0,
            took: 0,
            kind,
        }
    }

    /// What follows at this task when the copy is given up.
    pub fn abandoned(&self) -> Option<SendDone> {
        match self.kind {
            Kind::Push { done, .. } => Some(done),
            Kind::Fetch { .. } | Kind::Pull { .. } => None,
        }
    }

    /// The data of message `id` of `peer`, exposed as its operation `cookie`.
    pub fn pull(peer: Task, id: u32, cookie: u64, remote: u64, buffer: usize, len: usize) -> Self {
        Self { peer, remote, local: buffer, len, copied: 0, took: 0, kind: Kind::Pull { id, cookie } }
    }
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
    let len = SLICE.min(transfer.len - transfer.copied);
    let (remote, local) = (transfer.remote + transfer.copied as u64, transfer.local + transfer.copied);
    let core = held.core();
    if transfer.len >= WORTH_A_LOOK && core.transport.peer_state(transfer.peer) != PeerState::Up {
        // The number of its process may mean another one by now.
        return refused(held, transfer);
    }
    let before = ticks();
    let copied = match (core.transport.attach(), transfer.kind) {
        (None, _) => return refused(held, transfer),
        // SAFETY: the program leaves its data alone until the put is done.
        (Some(attach), Kind::Push { .. }) => unsafe {
            attach.write(transfer.peer, remote, local as *const u8, len)
        },
        // SAFETY: the program, or its header handler, has given this buffer for the data.
        (Some(attach), _) => unsafe { attach.read(transfer.peer, remote, local as *mut u8, len) },
    };
    if copied.is_err() {
        return refused(held, transfer);
    }
    match transfer.kind {
        Kind::Push { .. } => core.stats.peers.packets_sent += 1,
        _ => core.stats.peers.packets_received += 1,
    }
    transfer.copied += len;
    transfer.took += ticks() - before;
    if transfer.copied < transfer.len {
        core.transfers.push_back(transfer);
        return;
    }
    core.tuner.note_copy(transfer.len, transfer.took);
    match transfer.kind {
        Kind::Push { id, tgt_cntr, cookie, done } => {
            announce(held, &transfer, id, tgt_cntr, cookie);
            origin::finish(held, &done);
        }
        Kind::Fetch { cookie, tgt_cntr } => {
            if tgt_cntr != 0 {
                let id = held.core().outbox.number(transfer.peer);
                announce(held, &transfer, id, tgt_cntr, 0);
            }
            origin::got(held, transfer.peer, cookie);
        }
        Kind::Pull { id, cookie } => {
            let core = held.core();
            answer(core, transfer.peer, &Head::Pulled { cookie, refused: 0 });
            if let Some(assembly) = core.inbox.withdraw(transfer.peer, id) {
                arrival::landed(held, assembly.then);
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
    let (peer, addr, len) = (transfer.peer, transfer.remote, transfer.len as u64);
    match transfer.kind {
        Kind::Push { id, tgt_cntr, cookie, done } => {
            let head = Head::Put { id, addr, tgt_cntr, cookie, total: len };
            let data = Piece { ptr: transfer.local as *const u8, len: transfer.len };
            // SAFETY: the program leaves its data alone until the put is done.
            let posted = unsafe {
                let first = Some((&head, Piece::EMPTY));
                origin::stream(held, peer, first, Continuation::Message(id), data, false, done)
            };
            if posted == Posted::Gone {
                // Reported with the other send operations that are done.
                held.core().finished.push(SendDone { error: LAPI_ERR_NO_CONNECTIVITY, ..done });
            }
        }
        // A peer that has gone meanwhile is reported when somebody waits for the answer.
        Kind::Fetch { cookie, tgt_cntr } => {
            answer(core, peer, &Head::Get { addr, len, cookie, tgt_cntr });
        }
        // The message stays in assembly, and its data will come as that of any other.
        Kind::Pull { cookie, .. } => {
            answer(core, peer, &Head::Pulled { cookie, refused: len });
        }
    }
}

/// Wakes peers that owe us something and do not look: a thread that is about to sleep has been patient long enough.
pub fn prod_inattentive_peers(core: &mut Core) {
    let now = ticks();
    if now.wrapping_sub(core.last_prod) < BETWEEN_PRODS {
        return;
    }
    core.last_prod = now;
    let mut peers: Vec<Task> = core.ops.peers().chain(core.outbox.unconfirmed()).collect();
    peers.extend(core.outbox.waiting_for());
    peers.extend(core.collectives.awaited());
    peers.sort_unstable();
    peers.dedup();
    for peer in peers {
        if peer != core.options.me && !core.transport.attentive(peer) {
            core.transport.poke(peer);
        }
    }
}
