//! Makes the copies between this task's memory and that of peers, and what follows them: across address spaces slice by slice,
//! by keys each as a whole. Data whose copy fails is sent in packets, from its beginning.

use crate::abi::LAPI_ERR_NO_CONNECTIVITY;
use crate::base::clock::ticks;
use crate::engine::context::Held;
use crate::engine::context::direct_copy::{DirectCopy, Kind};
use crate::engine::context::incoming::Then;
use crate::engine::context::request::Marks;
use crate::engine::transfer::send::{self, answer};
use crate::engine::transfer::{deliver, packets, registration, reply};
use crate::proto::outbox::{SendDone, Sent};
use crate::transport::{Access, PeerState, Started, Task};
use crate::wire::packet::Head;
use std::io;

/// Starts a copy: its first slice is made at once.
pub fn begin(held: &mut Held<'_>, transfer: DirectCopy) {
    advance(held, transfer);
}

/// Continues what the transport has reported, and one copy that does not wait for a report.
pub fn step(held: &mut Held<'_>) -> bool {
    let reported = take_reports(held);
    let transfers = &mut held.core().direct_copies;
    let Some(at) = transfers.iter().position(|transfer| transfer.waits.is_none()) else { return reported };
    if let Some(transfer) = transfers.remove(at) {
        advance(held, transfer);
    }
    true
}

/// Continues the copies whose remote access the transport has reported.
fn take_reports(held: &mut Held<'_>) -> bool {
    let mut some = false;
    while held.core().pending != 0 {
        let core = held.core();
        let Some((id, outcome)) = core.transport.remote().and_then(|remote| remote.poll()) else { break };
        let waits = |transfer: &DirectCopy| transfer.waits.is_some_and(|(access, _)| access == id);
        let at = core.direct_copies.iter().position(waits);
        let Some(mut transfer) = at.and_then(|at| core.direct_copies.remove(at)) else { continue };
        core.pending -= 1;
        let bytes = transfer.waits.take().map_or(0, |(_, bytes)| bytes);
        match outcome {
            Ok(()) => copied(held, transfer, bytes),
            Err(reason) => refused(held, transfer, &reason),
        }
        some = true;
    }
    some
}

fn advance(held: &mut Held<'_>, mut transfer: DirectCopy) {
    let core = held.core();
    if transfer.copied == 0 && core.transport.state(transfer.peer) != PeerState::Up {
        // The number of its process may mean another one by now, or another program.
        return refused(held, transfer, &io::ErrorKind::NotConnected.into());
    }
    let before = ticks();
    let slice = transfer.slice();
    let Some(remote) = core.transport.remote() else {
        return refused(held, transfer, &io::ErrorKind::Unsupported.into());
    };
    // SAFETY: the program leaves the data of a put alone until the put is done; it, or its header handler, has given the
    // places for what is read.
    let outcome = unsafe { remote.start(transfer.access(), transfer.peer, transfer.key, &slice) };
    transfer.took += ticks() - before;
    let bytes = slice.iter().map(|copy| copy.len).sum::<usize>();
    match outcome {
        Ok(Started::Done) => copied(held, transfer, bytes),
        Ok(Started::Pending(id)) => {
            transfer.waits = Some((id, bytes));
            core.pending += 1;
            core.direct_copies.push_back(transfer);
        }
        Err(reason) => refused(held, transfer, &reason),
    }
}

/// `bytes` more bytes are in place.
fn copied(held: &mut Held<'_>, mut transfer: DirectCopy, bytes: usize) {
    let core = held.core();
    match transfer.access() {
        Access::Write => core.path_to(transfer.peer).packets_sent += 1,
        Access::Read => core.path_to(transfer.peer).packets_received += 1,
    }
    transfer.copied += bytes;
    if transfer.copied < transfer.len() {
        core.direct_copies.push_back(transfer);
        return;
    }
    if transfer.key.is_none() {
        core.tuner.note_copy(transfer.len(), transfer.places.piece(), transfer.took);
    }
    finish(held, &transfer);
}

fn finish(held: &mut Held<'_>, transfer: &DirectCopy) {
    match transfer.kind {
        Kind::Push { marks, done } => {
            announce(held, transfer.peer, marks, transfer.len() as u64);
            send::finish(held, &done);
        }
        Kind::Fetch { cookie, tgt_cntr } => {
            if let Some(remote) = held.core().transport.remote() {
                remote.count_fetched(transfer.peer, transfer.len() as u64);
            }
            if tgt_cntr != 0 {
                let id = held.core().outbox.number(transfer.peer);
                announce(held, transfer.peer, Marks { id, tgt_cntr, cookie: 0 }, 0);
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
        Kind::Serve { cookie, tgt_cntr } => {
            answer(held.core(), transfer.peer, &Head::Written { cookie });
            // The target's counter shows that the target's data may be changed.
            let bytes = transfer.len() as u64;
            let done = SendDone { org_cntr: tgt_cntr as usize, bytes, ..SendDone::nothing(transfer.peer) };
            send::finish(held, &done);
        }
    }
}

/// Informs the target of a copy that this task has made in its memory, or from it: the operation's number and counters, and how
/// many bytes were put there.
fn announce(held: &mut Held<'_>, peer: Task, marks: Marks, bytes: u64) {
    let Marks { id, tgt_cntr, cookie } = marks;
    answer(held.core(), peer, &Head::Placed { id, bytes, tgt_cntr, cookie });
}

/// The copy was not made: the data goes in packets, from its beginning.
#[cold]
fn refused(held: &mut Held<'_>, transfer: DirectCopy, reason: &io::Error) {
    let core = held.core();
    core.path_to(transfer.peer).refused += 1;
    if transfer.key.is_some() {
        registration::failed(core, transfer.peer, "access", transfer.len(), reason);
    }
    let peer = transfer.peer;
    match transfer.kind {
        Kind::Push { marks, done } => {
            // SAFETY: the program leaves its data alone until the put is done.
            match unsafe { packets::put(held, peer, marks, &transfer.places, done) } {
                Sent::Free => send::finish(held, &done),
                Sent::Queued => {}
                // Reported with the other send operations that are done.
                Sent::NoMemory => send::out_of_memory(peer),
                Sent::Gone => held.core().finished.push(SendDone { error: LAPI_ERR_NO_CONNECTIVITY, ..done }),
            }
        }
        Kind::Fetch { cookie, tgt_cntr } => {
            // A peer that has gone meanwhile is reported when a call waits for the answer.
            if packets::get(held, peer, tgt_cntr, cookie, &transfer.places) == Sent::NoMemory {
                send::out_of_memory(peer);
            }
        }
        // The message stays in assembly, and its data will come as that of any other.
        Kind::Pull { cookie, .. } => {
            answer(core, peer, &Head::Fetched { cookie, refused: transfer.len() as u64 });
        }
        Kind::Serve { cookie, tgt_cntr } => {
            reply::serve_get(held, peer, &transfer.places.local_content(), cookie, tgt_cntr);
        }
    }
}
