//! The dispatcher: receives packets, sends what waits, and advances everything that takes more
//! than one step.
//!
//! It runs with the lock held and is never entered twice. All handlers of the program that run with
//! the lock run in a round of the dispatcher, one after the other: what a handler sends goes to the
//! transport or into a queue, and what that causes waits until the handler has returned. So the
//! stack does not grow with the number of messages.

use crate::abi::{INT_ERR, LAPI_ERR_TGT_PURGED, LAPI_ERR_UNKNOWN};
use crate::base::long_calls;
use crate::engine::context::addresses::is_index;
use crate::engine::context::core::flow;
use crate::engine::context::incoming::{ActiveMessage, Data, IncomingPut};
use crate::engine::context::{Core, Held};
use crate::engine::progress::{parting, reports};
use crate::engine::transfer::send::{account, broken, call_send_handler, refuse, send_control};
use crate::engine::transfer::{direct, impossible, loopback, one_sided, parts, receive, reply};
use crate::error::Error;
use crate::memory::bytes::{Piece, is_memory};
use crate::memory::word;
use crate::proto::collective::{Failure, Part};
use crate::proto::content::Content;
use crate::transport::{Inbound, PeerState, Task};
use crate::wire::packet::{Head, PARTING_ASKED, PARTING_DONE, PARTING_PUT_OFF, RMW_WIDE};
use std::ptr;

/// How many packets one round receives, so that sending has its turn.
pub(super) const BATCH: usize = 16;

/// A packet with at least this many bytes takes long to copy.
pub(super) const LONG_BODY: usize = 4096;

/// One round. Returns whether anything moved. Does nothing when a round is under way already.
#[inline]
pub fn turn(held: &mut Held<'_>) -> bool {
    turn_until(held, &mut |_| None::<()>).0
}

/// One round, which takes no more packets once `ready` returns something: a call that waits does
/// not handle what comes after that for which it has waited.
#[inline]
pub fn turn_until<T>(
    held: &mut Held<'_>,
    ready: &mut impl FnMut(&mut Held<'_>) -> Option<T>,
) -> (bool, Option<T>) {
    if !held.begin_round() {
        return (false, None);
    }
    let (moved, value) = receive(held, ready);
    (end_round(held, moved), value)
}

/// Ends a round in which packets were taken, or not: `moved`. Returns whether anything moved in it.
#[inline]
pub(super) fn end_round(held: &mut Held<'_>, mut moved: bool) -> bool {
    let core = held.core();
    if core.one_sided.are_possible() {
        if core.one_sided.under_way() != 0 {
            reports::take(core);
        }
        moved |= one_sided::advance(held);
    }
    let core = held.core();
    if !core.is_closing() {
        moved |= look_for_signals(core) | core.take_reports();
        if core.outbox.waiting() || core.has_work() || core.has_deferred() {
            moved |= keep_going(held);
        }
    }
    held.end_round();
    if moved {
        held.core().waiters.note_moved();
    }
    moved
}

#[inline]
fn receive<T>(held: &mut Held<'_>, ready: &mut impl FnMut(&mut Held<'_>) -> Option<T>) -> (bool, Option<T>) {
    for taken in 0..BATCH {
        let core = held.core();
        if core.is_closing() {
            // A handler has ended the context: no other one runs.
            return (taken != 0, None);
        }
        let Some(packet) = core.transport.recv() else {
            return (taken != 0, None);
        };
        core.path_to(packet.src).packets_received += 1;
        if packet.body_len >= LONG_BODY {
            long_calls::begins();
        }
        if core.membership.is_quarantined(packet.src) {
            // It may have been connected since it was given up.
            if let Some(door) = core.transport.door(packet.src) {
                door.fall_silent();
            }
        } else {
            held.context().activity.handles(&packet);
            handle(held, &packet);
            held.context().activity.handles(ptr::null());
        }
        let core = held.core();
        core.transport.release(packet);
        if !core.is_closing() {
            let value = ready(held);
            if value.is_some() {
                return (true, value);
            }
        }
    }
    (true, None)
}

/// All work that no packet announces. Each step ends early when a handler has ended the context.
#[cold]
fn keep_going(held: &mut Held<'_>) -> bool {
    let core = held.core();
    if core.outbox.has_lent() || core.copies.waiting() != 0 {
        reports::take(core);
    }
    let mut moved = core.outbox.waiting() && core.pump();
    moved |= direct::step(held);
    moved |= loopback::deliver_queued(held);
    moved |= receive::offer_again(held);
    flow::balance(held);
    held.core().note_deferred();
    moved | report_finished(held)
}

/// Counters and send completion handlers of the send operations that are done.
fn report_finished(held: &mut Held<'_>) -> bool {
    let mut batch = held.core().take_done_sends();
    let some = !batch.is_empty();
    for done in batch.drain(..) {
        if held.core().is_closing() {
            break;
        }
        account(held.core(), &done);
        call_send_handler(held, &done);
        // A purge is the program's own action, and may have happened since.
        let core = held.core();
        let lost = done.error != 0 && done.error != LAPI_ERR_TGT_PURGED;
        if !lost || !core.outbox.is_gone(done.peer) || core.membership.is_down(done.peer) {
            continue;
        }
        match core.transport.standing(done.peer).state {
            PeerState::Up | PeerState::Connecting => {
                core.membership.lose(done.peer);
                let detail = format!(
                    "task {} has left before everything that was sent to it had found room",
                    done.peer
                );
                let error = Error::new(done.error, detail);
                held.context().report_loss(held, (INT_ERR, done.peer), true, &error);
            }
            gone => core.membership.note_gone(done.peer, gone),
        }
    }
    held.core().give_back_done_sends(batch);
    some
}

#[inline]
fn handle(held: &mut Held<'_>, packet: &Inbound) {
    let src = packet.src;
    // SAFETY: the transport vouches for the head until the packet is released.
    let head = unsafe { std::slice::from_raw_parts(packet.head, packet.head_len) };
    let body = Piece { ptr: packet.body, len: packet.body_len };
    let frequent = Head::decode_frequent(head);
    if held.core().options.guarded && frequent.as_ref().is_some_and(names_memory) {
        return broken(held, src);
    }
    match frequent {
        Some(Head::Put { id, addr, tgt_cntr, cookie, total }) => {
            receive::put(held, &IncomingPut { src, id, addr, tgt_cntr, cookie, total }, body);
        }
        Some(Head::Am { id, uhdr_len, handler, tgt_cntr, cookie, total, atoms }) => {
            let message = ActiveMessage { src, id: Some(id), handler, shape: None, atoms, tgt_cntr, cookie };
            match Data::in_packet(body, uhdr_len, total) {
                Some((header, data)) => receive::active_message(held, &message, header, data),
                None => refuse(held, src, id),
            }
        }
        Some(Head::Done { cookie }) => reply::take_done(held, src, cookie),
        _ => handle_other(held, src, head, body),
    }
}

/// Whether a message that names this handler and this counter names one of them by its address.
#[inline]
pub(super) fn is_address(handler: u64, tgt_cntr: u64) -> bool {
    !is_index(handler) || tgt_cntr != 0
}

/// Whether a packet has an address that this task is to use for its sender: of memory, of a counter
/// or of a handler. A cookie is none: it names an operation of this task, or nothing. Each kind of
/// packet is listed, so that a new one does not compile before it has its place here.
#[cold]
fn names_memory(head: &Head) -> bool {
    match *head {
        Head::Am { handler, tgt_cntr, .. }
        | Head::RequestToSend { handler, tgt_cntr, .. }
        | Head::PartsToSend { handler, tgt_cntr, shape: None, .. } => is_address(handler, tgt_cntr),
        Head::Placed { tgt_cntr, .. } => tgt_cntr != 0,
        // What the handler of a message with a shape returns is the address of a vector, by the
        // sender's word.
        Head::Amv { .. }
        | Head::PartsToSend { shape: Some(_), .. }
        | Head::Put { .. }
        | Head::Get { .. }
        | Head::Rmw { .. }
        | Head::Vector { .. }
        | Head::Accessed { .. } => true,
        Head::Data { .. }
        | Head::Reply { .. }
        | Head::Written { .. }
        | Head::RmwReply { .. }
        | Head::Done { .. }
        | Head::NextParts { .. }
        | Head::MoreParts { .. }
        | Head::Fetched { .. }
        | Head::Fence { .. }
        | Head::FenceAck { .. }
        | Head::Collective { .. }
        | Head::CollectiveAt { .. }
        | Head::CollectiveFailed { .. }
        | Head::Parting { .. }
        | Head::PartingReply { .. }
        | Head::Ping
        | Head::Pong => false,
    }
}

/// Whether a packet belongs to what the tasks of a job do together. A guarded session has nothing
/// of that, and what it would keep, or wait for, its peer could set without a bound.
#[cold]
fn is_of_a_job(head: &Head) -> bool {
    matches!(
        head,
        Head::Collective { .. }
            | Head::CollectiveAt { .. }
            | Head::CollectiveFailed { .. }
            | Head::Parting { .. }
            | Head::PartingReply { .. }
    )
}

/// Handles a packet that is none of the most frequent ones ([`Head::decode_frequent`]).
#[inline(never)]
fn handle_other(held: &mut Held<'_>, src: Task, head: &[u8], body: Piece) {
    // The peer may change the head meanwhile, where it lies in memory of both: what is looked at
    // here is what is done.
    let decoded = Head::decode(head);
    if held.core().options.guarded
        && decoded.as_ref().is_some_and(|head| names_memory(head) || is_of_a_job(head))
    {
        return broken(held, src);
    }
    match decoded {
        Some(Head::RequestToSend { id, uhdr_len, handler, addr, total, cookie, tgt_cntr }) => {
            let message =
                ActiveMessage { src, id: Some(id), handler, shape: None, atoms: false, tgt_cntr, cookie };
            match Data::in_packet(body, uhdr_len, 0)
                .and_then(|(header, _)| Some((header, Data::remote(addr, total)?)))
            {
                Some((header, data)) => receive::active_message(held, &message, header, data),
                None => broken(held, src),
            }
        }
        Some(Head::PartsToSend { id, uhdr_len, handler, shape, total, cookie, tgt_cntr, atoms, more }) => {
            let message = ActiveMessage { src, id: Some(id), handler, shape, atoms, tgt_cntr, cookie };
            match Data::in_packet(body, uhdr_len, 0)
                .and_then(|(header, rest)| Some((header, rest.as_parts(more, total)?)))
            {
                Some((header, data)) => receive::active_message(held, &message, header, data),
                None => broken(held, src),
            }
        }
        Some(Head::Amv { id, uhdr_len, handler, shape, tgt_cntr, cookie, total }) => {
            let shape = Some(shape);
            let message = ActiveMessage { src, id: Some(id), handler, shape, atoms: false, tgt_cntr, cookie };
            match Data::in_packet(body, uhdr_len, total) {
                Some((header, data)) => receive::active_message(held, &message, header, data),
                None => refuse(held, src, id),
            }
        }
        Some(Head::NextParts { cookie }) => parts::next_wanted(held, src, cookie),
        Some(Head::MoreParts { cookie, more }) => parts::more_parts(held, src, cookie, more, body),
        Some(head @ Head::Vector { .. }) => parts::vector_arrived(held, src, &head, body),
        Some(Head::Placed { id, bytes, tgt_cntr, cookie }) => {
            receive::placed(held, src, id, bytes, tgt_cntr, cookie);
        }
        Some(Head::Accessed { id, written }) => receive::accessed(held, src, id, written),
        Some(Head::Data { id, offset }) => receive::more_data(held, src, id, offset, body),
        Some(Head::Get { addr, len, cookie, tgt_cntr }) => {
            if !is_memory(addr, len) {
                return impossible::get(held, src, cookie, len);
            }
            let data = Piece { ptr: addr as *const u8, len: len as usize };
            reply::serve_get(held, src, &Content::Piece(data), cookie, tgt_cntr);
        }
        Some(Head::Reply { cookie, offset }) => reply::take_reply(held, src, cookie, offset, body),
        Some(Head::Written { cookie }) => parts::written(held, src, cookie),
        Some(Head::Rmw { op, var, value, swap, cookie }) => {
            let wide = op & RMW_WIDE != 0;
            let outcome = if is_memory(var, if wide { 8 } else { 4 }) {
                // SAFETY: the variable's address comes from the origin's program, as LAPI_Rmw
                // wants it.
                unsafe { word::read_modify_write((op & !RMW_WIDE).into(), wide, var, value, swap) }
            } else {
                None
            };
            if outcome.is_none() {
                let detail = format!("refused a read-modify-write from task {src} at {var:#x}");
                if held.context().info_level() >= 1 {
                    let error = Error::new(LAPI_ERR_UNKNOWN, detail);
                    held.core().options.log.line(format_args!("{error}"));
                }
            }
            // The origin's operation ends in any case.
            send_control(held.core(), src, &Head::RmwReply { cookie, value: outcome.unwrap_or(0) });
        }
        Some(Head::RmwReply { cookie, value }) => reply::take_rmw_reply(held, src, cookie, value),
        Some(Head::Fetched { cookie, refused }) => reply::fetched_by_target(held, src, cookie, refused),
        Some(Head::Fence { count }) => {
            let core = held.core();
            if let Some(count) = core.inbox.ask(src, count) {
                send_control(core, src, &Head::FenceAck { count });
            }
        }
        Some(Head::FenceAck { count }) => held.core().outbox.acknowledge(src, count),
        Some(Head::Collective { round, sequence, offset, other }) => {
            let core = held.core();
            let part = Part { sequence, round, offset, other };
            // SAFETY: the transport vouches for the body until the packet is released.
            let taken = unsafe { core.collectives.arrive(src, &part, body.ptr, body.len) };
            if !taken {
                return broken(held, src);
            }
            core.advance_collective();
        }
        Some(Head::Parting { count, position, step }) => match step {
            PARTING_ASKED => parting::asked(held, src, count, position),
            PARTING_DONE => parting::done(held, src),
            PARTING_PUT_OFF => parting::put_off(held, src),
            _ => broken(held, src),
        },
        Some(Head::PartingReply { granted }) => held.core().partings.answer(src, granted),
        Some(Head::Ping) => {
            held.core().stats.liveness += 2;
            send_control(held.core(), src, &Head::Pong);
        }
        // Only its arrival matters.
        Some(Head::Pong) => held.core().stats.liveness += 1,
        Some(Head::CollectiveAt { sequence }) => {
            let core = held.core();
            let (collectives, outbox, mut wire) = core.collective();
            collectives.catch_up(sequence, outbox, &mut wire);
            core.advance_collective();
        }
        Some(Head::CollectiveFailed { sequence, task, code }) => {
            let core = held.core();
            let failure = Failure { task, code: code as i32 };
            core.collectives.peer_failed(src, sequence, failure);
            core.advance_collective();
        }
        // Of these kinds `decode_frequent` has seen no head: the sender has changed it since.
        Some(Head::Am { .. } | Head::Put { .. } | Head::Done { .. }) | None => broken(held, src),
    }
}

/// Advances the collective operation, if one is under way and another task has given a signal that
/// it waits for. Returns whether that is so.
#[inline]
pub fn look_for_signals(core: &mut Core) -> bool {
    if !core.collectives.busy() {
        return false;
    }
    let (collectives, _, mut wire) = core.collective();
    let seen = collectives.look(&mut wire);
    if seen {
        core.advance_collective();
    }
    seen
}
