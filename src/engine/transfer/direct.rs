//! Makes the copies between this task's memory and that of peers, and what follows them: across
//! address spaces slice by slice, by keys part by part. Data whose copy fails is sent in packets,
//! from its beginning.

use crate::abi::LAPI_ERR_NO_CONNECTIVITY;
use crate::base::long_calls;
use crate::engine::context::direct_copy::{ACCESSES, CopyKind, DirectCopy};
use crate::engine::context::incoming::Then;
use crate::engine::context::request::{Marks, Places};
use crate::engine::context::{Core, Held};
use crate::engine::transfer::send::{self, send_control};
use crate::engine::transfer::{accessed, beyond, deliver, packets, registration, reply};
use crate::proto::content::{Content, Sink};
use crate::proto::inbox::Assembly;
use crate::proto::ops::Op;
use crate::proto::outbox::{SendDone, Sent};
use crate::transport::{Access, Started, Task, Transfer, Want};
use crate::wire::packet::Head;
use std::io;

/// Starts a copy: its first slice is made at once, or its first accesses. One whose end calls a
/// handler in this thread begins in a round of the dispatcher: elsewhere no handler may run.
pub fn begin(held: &mut Held<'_>, transfer: DirectCopy) {
    if calls_handler(held, &transfer) && !held.context().activity.here() {
        return held.core().copies.push(transfer);
    }
    advance(held, transfer);
}

/// Whether its end calls the completion handler of a get, for which there is no thread.
fn calls_handler(held: &mut Held<'_>, transfer: &DirectCopy) -> bool {
    let CopyKind::Fetch { cookie, .. } = transfer.kind else { return false };
    let op = held.core().ops.get_mut(transfer.peer, cookie);
    matches!(op, Some(Op::Get { handler, .. }) if *handler != 0) && !held.context().completions.has_threads()
}

/// Continues what the transport has reported, and one copy that does not wait for a report.
pub fn step(held: &mut Held<'_>) -> bool {
    let ended = take_ended(held);
    let Some(transfer) = held.core().copies.take_ready() else { return ended };
    advance(held, transfer);
    true
}

/// Continues the copies whose remote access the transport has reported.
fn take_ended(held: &mut Held<'_>) -> bool {
    let mut some = false;
    while !held.core().is_closing() {
        let Some((transfer, bytes, outcome)) = held.core().copies.next_ended() else { break };
        match outcome {
            Ok(()) => copied(held, transfer, bytes),
            Err(reason) => failed(held, transfer, reason),
        }
        some = true;
    }
    some
}

fn advance(held: &mut Held<'_>, mut transfer: DirectCopy) {
    let core = held.core();
    if transfer.keyed.is_some() {
        return start_accesses(held, transfer);
    }
    long_calls::begins();
    let slice = transfer.slice();
    let copies = Transfer::Copies { access: transfer.access(), key: None, copies: &slice };
    // SAFETY: the program leaves the data of a put alone until the put is done; it, or its header
    // handler, has given the places for what is read.
    let outcome = core.while_copying(|core| unsafe { core.transport.access(transfer.peer, copies) });
    let bytes = slice.iter().map(|copy| copy.len).sum::<usize>();
    match outcome {
        Ok(Started::Done) => copied(held, transfer, bytes),
        Ok(Started::Pending(id)) => {
            transfer.waits.push((id, bytes));
            core.copies.push(transfer);
        }
        Err(reason) => refused(held, transfer, &reason),
    }
}

/// Starts as many of the accesses by keys as may be under way at a time, and ends the copy when all
/// are over: while an access is under way, it uses memory that is the program's again when the
/// message is complete.
fn start_accesses(held: &mut Held<'_>, mut transfer: DirectCopy) {
    let core = held.core();
    let (peer, access) = (transfer.peer, transfer.access());
    let Some(keyed) = transfer.keyed.as_deref_mut() else { return };
    while transfer.waits.len() < ACCESSES
        && let Some((part, copies)) = keyed.next()
    {
        if copies.is_empty() {
            transfer.copied += part.len as usize;
            continue;
        }
        let parts = Transfer::Copies { access, key: Some(part.exposed.key), copies: &copies };
        // SAFETY: as for a slice; until the access is reported or recalled.
        match unsafe { core.transport.access(peer, parts) } {
            Ok(Started::Done) => {
                count_access(core, peer, access);
                transfer.copied += part.len as usize;
            }
            Ok(Started::Pending(id)) => transfer.waits.push((id, part.len as usize)),
            Err(reason) => keyed.failed = Some(reason),
        }
    }
    if !transfer.waits.is_empty() {
        core.copies.push(transfer);
        return;
    }
    match keyed.failed.take() {
        Some(reason) => refused(held, transfer, &reason),
        None if keyed.has_more() => ask_for_parts(held, transfer),
        None => finish(held, &transfer),
    }
}

/// The accesses to the parts of this batch are over: the peer may withdraw them, and sends
/// the next ones.
fn ask_for_parts(held: &mut Held<'_>, transfer: DirectCopy) {
    let core = held.core();
    let (CopyKind::Pull { cookie, .. } | CopyKind::Serve { cookie, .. }) = transfer.kind else {
        unreachable!("only the peer's operations are divided")
    };
    let peer = transfer.peer;
    core.copies.await_parts(transfer);
    send_control(core, peer, &Head::NextParts { cookie });
}

/// An access that was under way has failed.
#[cold]
fn failed(held: &mut Held<'_>, mut transfer: DirectCopy, reason: io::Error) {
    match transfer.keyed.as_deref_mut() {
        Some(keyed) => {
            keyed.failed.get_or_insert(reason);
            start_accesses(held, transfer);
        }
        None => refused(held, transfer, &reason),
    }
}

fn count_access(core: &mut Core, peer: Task, access: Access) {
    match access {
        Access::Write => core.path_to(peer).packets_sent += 1,
        Access::Read => core.path_to(peer).packets_received += 1,
    }
}

/// `bytes` more bytes are in place.
fn copied(held: &mut Held<'_>, mut transfer: DirectCopy, bytes: usize) {
    let core = held.core();
    count_access(core, transfer.peer, transfer.access());
    transfer.copied += bytes;
    if transfer.keyed.is_some() {
        return start_accesses(held, transfer);
    }
    if transfer.copied < transfer.len() {
        core.copies.push(transfer);
        return;
    }
    finish(held, &transfer);
}

fn finish(held: &mut Held<'_>, transfer: &DirectCopy) {
    match transfer.kind {
        CopyKind::Push { marks, done } => {
            announce(held, transfer.peer, marks, transfer.len() as u64);
            send::finish(held, &done);
        }
        CopyKind::Write { cookie, done } => {
            accessed::note(held.core(), transfer.peer, done.bytes);
            send::finish(held, &done);
            // The program may have given the target up in its handler, and the operation with it.
            if held.core().ops.get_mut(transfer.peer, cookie).is_some() {
                reply::take_done(held, transfer.peer, cookie);
            }
        }
        CopyKind::Fetch { cookie, tgt_cntr } => {
            held.core().transport.want(Want::Fetched(transfer.peer, transfer.len() as u64));
            if tgt_cntr != 0 {
                let id = held.core().outbox.number(transfer.peer);
                announce(held, transfer.peer, Marks { id, tgt_cntr, cookie: 0 }, 0);
            }
            reply::got(held, transfer.peer, cookie);
        }
        CopyKind::Pull { id, cookie } => {
            let core = held.core();
            if let Some(keyed) = transfer.keyed.as_ref().filter(|keyed| keyed.rest() != 0) {
                // The message is complete when its remaining bytes have arrived in packets.
                if let Some(assembly) = core.inbox.withdraw(transfer.peer, id) {
                    let (sink, total) = (Sink::from(keyed.rest_places()), keyed.rest());
                    core.inbox.begin(transfer.peer, id, Assembly { sink, total, ..assembly });
                }
                return send_control(core, transfer.peer, &Head::Fetched { cookie, refused: keyed.rest() });
            }
            send_control(core, transfer.peer, &Head::Fetched { cookie, refused: 0 });
            if let Some(Then::Deliver(delivery)) =
                core.inbox.withdraw(transfer.peer, id).map(|assembly| assembly.then)
            {
                deliver::delivered(held, delivery);
            }
        }
        CopyKind::Serve { cookie, tgt_cntr } => {
            send_control(held.core(), transfer.peer, &Head::Written { cookie });
            // The target's counter shows that the target's data may be changed.
            let bytes = transfer.len() as u64;
            let org_cntr = beyond::counter(tgt_cntr);
            let done = SendDone { org_cntr, bytes, ..SendDone::nothing(transfer.peer) };
            match transfer.keyed.as_ref().filter(|keyed| keyed.rest() != 0) {
                Some(keyed) => reply::serve(held, &Content::from(keyed.rest_places()), cookie, done),
                None => send::finish(held, &done),
            }
            beyond::report_counter(held, transfer.peer, tgt_cntr);
        }
    }
}

/// Informs the target of a copy that this task has made in its memory, or from it: the operation's
/// number and counters, and how many bytes were put there.
fn announce(held: &mut Held<'_>, peer: Task, marks: Marks, bytes: u64) {
    let Marks { id, tgt_cntr, cookie } = marks;
    send_control(held.core(), peer, &Head::Placed { id, bytes, tgt_cntr, cookie });
}

/// The copy was not made: the data goes in packets, from its beginning.
#[cold]
fn refused(held: &mut Held<'_>, transfer: DirectCopy, reason: &io::Error) {
    let core = held.core();
    core.path_to(transfer.peer).refused += 1;
    // Without a registration of its own, a failure says only that the peer has given this task up,
    // or has not registered its memory.
    if transfer.keyed.is_some() && !matches!(transfer.kind, CopyKind::Write { .. }) {
        registration::failed(core, transfer.peer, "access", transfer.len(), reason);
    }
    let peer = transfer.peer;
    match transfer.kind {
        CopyKind::Push { marks, done } => put_in_packets(held, peer, marks, &transfer.places, done),
        CopyKind::Write { cookie, done } => {
            let marks = Marks { id: core.outbox.number(peer), tgt_cntr: 0, cookie };
            put_in_packets(held, peer, marks, &transfer.places, done);
        }
        CopyKind::Fetch { cookie, tgt_cntr } => {
            // A peer that has gone meanwhile is reported when a call waits for the reply.
            if packets::get(held, peer, tgt_cntr, cookie, &transfer.places) == Sent::NoMemory {
                held.core().end_without_memory(peer);
            }
        }
        // The message stays in assembly, and its data will come as that of any other.
        CopyKind::Pull { cookie, .. } => {
            send_control(core, peer, &Head::Fetched { cookie, refused: transfer.len() as u64 });
        }
        CopyKind::Serve { cookie, tgt_cntr } => {
            let data = transfer.keyed.as_ref().map_or(Content::EMPTY, |keyed| keyed.reply());
            reply::serve_get(held, peer, &data, cookie, tgt_cntr);
        }
    }
}

/// Sends the data of a put that was not copied.
#[cold]
pub fn put_in_packets(held: &mut Held<'_>, peer: Task, marks: Marks, places: &Places, done: SendDone) {
    // SAFETY: the program leaves its data alone until the put is done.
    match unsafe { packets::put(held, peer, marks, places, false, done) } {
        Sent::Free => send::finish(held, &done),
        Sent::Queued => {}
        // Reported with the other send operations that are done.
        Sent::NoMemory => held.core().end_without_memory(peer),
        Sent::Gone => held.core().finish_later([SendDone { error: LAPI_ERR_NO_CONNECTIVITY, ..done }]),
    }
}
