//! Makes the copies across address spaces, slice by slice, and does what follows them. What the kernel refuses goes in
//! packets, from its beginning.

use crate::abi::LAPI_ERR_NO_CONNECTIVITY;
use crate::base::bytes::Piece;
use crate::base::clock::ticks;
use crate::engine::context::Held;
use crate::engine::context::direct_copy::{DirectCopy, Kind, Places};
use crate::engine::context::incoming::Then;
use crate::engine::transfer::deliver;
use crate::engine::transfer::reply;
use crate::engine::transfer::send::{self, answer};
use crate::engine::transfer::vector_wire::{self, Marks};
use crate::proto::content::Content;
use crate::proto::outbox::{Continuation, SendDone, Sent, Streaming};
use crate::transport::PeerState;
use crate::wire::packet::Head;

/// From so many bytes on, a look whether the peer's process lives costs nothing beside the copy.
const WORTH_A_LOOK: usize = 1 << 18;

/// Starts a copy: its first slice is made at once.
pub fn begin(held: &mut Held<'_>, transfer: DirectCopy) {
    advance(held, transfer);
}

/// Goes on with a copy, if one is under way.
pub fn step(held: &mut Held<'_>) -> bool {
    let Some(transfer) = held.core().direct_copies.pop_front() else { return false };
    advance(held, transfer);
    true
}

fn advance(held: &mut Held<'_>, mut transfer: DirectCopy) {
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
        core.direct_copies.push_back(transfer);
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

fn finish(held: &mut Held<'_>, transfer: &DirectCopy) {
    match transfer.kind {
        Kind::Push { id, tgt_cntr, cookie, done } => {
            announce(held, transfer, id, tgt_cntr, cookie);
            send::finish(held, &done);
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
            answer(core, transfer.peer, &Head::Fetched { cookie, refused: 0 });
            if let Some(Then::Deliver(delivery)) =
                core.inbox.withdraw(transfer.peer, id).map(|assembly| assembly.then)
            {
                deliver::delivered(held, delivery);
            }
        }
    }
}

/// Tells the target of a copy that this task has made in its memory, or from it: the operation's number and counters, and how
/// many bytes were put there.
fn announce(held: &mut Held<'_>, transfer: &DirectCopy, id: u32, tgt_cntr: u64, cookie: u64) {
    let bytes = if matches!(transfer.kind, Kind::Push { .. }) { transfer.len as u64 } else { 0 };
    answer(held.core(), transfer.peer, &Head::Placed { id, bytes, tgt_cntr, cookie });
}

/// The kernel did not make the copy: the data goes in packets, from its beginning.
#[cold]
fn refused(held: &mut Held<'_>, transfer: DirectCopy) {
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
                        send::stream(held, peer, first, next, &data, Streaming::default(), done)
                    }
                    Places::Many { local, remote } => {
                        vector_wire::put_runs(held, peer, Marks { id, tgt_cntr, cookie }, local, remote, done)
                    }
                }
            };
            match posted {
                Sent::Free => send::finish(held, &done),
                Sent::Queued => {}
                // Reported with the other send operations that are done.
                Sent::NoMemory => send::out_of_memory(held.core().options.me, peer),
                Sent::Gone => held.core().finished.push(SendDone { error: LAPI_ERR_NO_CONNECTIVITY, ..done }),
            }
        }
        // A peer that has gone meanwhile is reported when somebody waits for the answer.
        (Kind::Fetch { cookie, tgt_cntr }, Places::Row { remote, .. }) => {
            answer(core, peer, &Head::Get { addr: *remote, len, cookie, tgt_cntr });
        }
        (Kind::Fetch { cookie, tgt_cntr }, Places::Many { remote, .. }) => {
            vector_wire::request_runs(held, peer, remote, tgt_cntr, cookie);
        }
        // The message stays in assembly, and its data will come as that of any other.
        (Kind::Pull { cookie, .. }, _) => {
            answer(core, peer, &Head::Fetched { cookie, refused: len });
        }
    }
}
