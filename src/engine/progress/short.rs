//! Short messages to a peer for which nothing waits: what [`operations`] does with them, without
//! what only other messages and other states need.
//!
//! A message leaves here only where the usual way would send it at once in one packet, and would
//! then find nothing else to do; then counters, numbers and statistics are as that way leaves them.
//! In all other cases, errors among them, nothing is done.
//!
//! The usual way ends with a round of the dispatcher. Here there is one only when the target, or
//! where there is no door to it anybody, may have sent something, and after each
//! [`PACKETS_PER_ROUND`] packets.

use crate::abi::LAPI_SEND_COMPLETE;
use crate::base::clock::ticks;
use crate::engine::context::clear::Clear;
use crate::engine::context::request::{Hint, PlainGet, PlainMessage, PlainPut, Preference};
use crate::engine::context::{Core, Held};
use crate::engine::plan::{Operation, OperationKind, Way, plan};
use crate::engine::progress::{operations, poll};
use crate::engine::transfer::origin::means;
use crate::engine::transfer::send::account;
use crate::memory::bytes::Piece;
use crate::memory::counter;
use crate::proto::Transmit;
use crate::proto::content::Sink;
use crate::proto::ops::Op;
use crate::proto::outbox::SendDone;
use crate::transport::{Look, MIN_BODY, Outgoing, SendOutcome, Task};
use crate::wire::packet::Head;

/// After one in this many packets there is a round of the dispatcher in any case.
const PACKETS_PER_ROUND: u64 = 16;

/// A put. `false`: nothing was done.
///
/// # Safety
/// The addresses must be as LAPI_Put wants them, at both tasks.
#[inline(always)]
pub unsafe fn put(held: &mut Held<'_>, put: &PlainPut) -> bool {
    let PlainPut { tgt, local, remote, len, tgt_cntr, .. } = *put;
    let Some(core) = unhindered(held, tgt) else { return false };
    if local == 0 || remote == 0 || len > core.outbox.max_body().min(core.options.copy_limit) {
        return false;
    }
    debug_assert!(goes_in_packets(
        core,
        OperationKind::Put {
            completion: put.cmpl_cntr != 0,
            target_counter: tgt_cntr != 0,
            reports: put.org_cntr != 0
        },
        len
    ));
    let data = Piece { ptr: local as *const u8, len };
    let head = |id, cookie| Head::Put { id, addr: remote, tgt_cntr, cookie, total: 0 };
    // SAFETY: the caller's promise.
    unsafe { send::<true>(held, tgt, head, (Piece::EMPTY, data), put.org_cntr, put.cmpl_cntr) }
}

/// An active message. `false`: nothing was done.
///
/// # Safety
/// The addresses must be as LAPI_Amsend wants them, at both tasks.
#[inline(always)]
pub unsafe fn active_message(held: &mut Held<'_>, message: &PlainMessage) -> bool {
    let PlainMessage { tgt, handler, header, data, tgt_cntr, .. } = *message;
    let Some(core) = unhindered(held, tgt) else { return false };
    let is_there = |piece: Piece| !piece.ptr.is_null() || piece.len == 0;
    let most = core.outbox.packet_size().min(core.options.copy_limit);
    let is_valid = handler != 0 && is_there(header) && is_there(data) && header.len.is_multiple_of(4);
    // Each of the lengths is compared: their sum may exceed all numbers.
    if !is_valid || header.len > MIN_BODY || data.len > most || header.len + data.len > most {
        return false;
    }
    debug_assert!(goes_in_packets(
        core,
        OperationKind::Am { header: header.len, plain: true, copied: false },
        data.len
    ));
    let uhdr_len = header.len as u16;
    let head = |id, cookie| Head::Am { id, uhdr_len, handler, tgt_cntr, cookie, total: 0, atoms: false };
    // SAFETY: the caller's promise.
    unsafe { send::<false>(held, tgt, head, (header, data), message.org_cntr, message.cmpl_cntr) }
}

/// A get, through a door, of a peer that looks for packets. `false`: nothing was done.
///
/// # Safety
/// The addresses must be as LAPI_Get wants them, at both tasks.
#[inline(always)]
pub unsafe fn get(held: &mut Held<'_>, get: &PlainGet) -> bool {
    let PlainGet { tgt, remote, local, len, tgt_cntr, org_cntr } = *get;
    let Some(core) = unhindered(held, tgt) else { return false };
    if local == 0 || remote == 0 || len == 0 || len > core.outbox.max_body() || core.outbox.is_gone(tgt) {
        return false;
    }
    let Some(door) = core.transport.door(tgt) else { return false };
    let now = ticks();
    if core.options.bulk.preference == Preference::Auto && !door.peer_polls(now) {
        return false;
    }
    door.note_asked(now);
    let Ok(filling) = door.begin() else { return false };
    let op = Op::Get {
        sink: Sink::Buffer(local),
        len: len as u64,
        arrived: 0,
        org_cntr,
        handler: 0,
        info: 0,
        registered: None,
    };
    let cookie = core.ops.insert(tgt, op, true);
    let head = Head::Get { addr: remote, len: len as u64, cookie, tgt_cntr };
    // SAFETY: the body is empty.
    let Ok(filled) = (unsafe { head.write(filling).body(Piece::EMPTY, Piece::EMPTY.into()) }) else {
        core.ops.remove(tgt, cookie);
        return false;
    };
    filled.publish();
    door.published();
    let path = &mut core.stats.peers;
    path.packets_sent += 1;
    let (round_is_due, has_packet) = (path.packets_sent.is_multiple_of(PACKETS_PER_ROUND), door.has_packet());
    held.has_sent();
    match () {
        () if round_is_due => operations::finish(held, tgt),
        // A reply to one before, mostly.
        () if has_packet => poll::take_one(held),
        () => held.stays_clear(),
    }
    true
}

/// The core, if the call has nothing to do but to send its message to `tgt`, another task, to
/// which messages go.
#[inline(always)]
fn unhindered<'a>(held: &'a mut Held<'_>, tgt: Task) -> Option<&'a mut Core> {
    if !held.begins_clear(Clear::TO_SEND) {
        return None;
    }
    let core = held.core();
    if tgt < core.options.tasks && tgt != core.options.me { Some(core) } else { None }
}

/// Whether the usual way sends this in packets and in no other way, whatever the state of the peer.
fn goes_in_packets(core: &Core, kind: OperationKind, len: usize) -> bool {
    let op = Operation { kind, len, piece: 0, hint: Hint::None };
    let ways = plan(&op, &means(core), || panic!("the way depends on the peer"));
    matches!(ways, [Some(Way::Packets { .. }), None, None])
}

/// Sends the message, and accounts for it. `REPORTED`: it is complete as soon as its packet is
/// taken, which the peer reports through a door without another packet.
///
/// # Safety
/// Both pieces must be readable now; `org_cntr` must be 0 or the address of a counter of the
/// program.
#[inline(always)]
unsafe fn send<const REPORTED: bool>(
    held: &mut Held<'_>,
    tgt: Task,
    head: impl FnOnce(u32, u64) -> Head,
    (header, data): (Piece, Piece),
    org_cntr: usize,
    cmpl_cntr: usize,
) -> bool {
    let core = held.core();
    let Some(number) = core.outbox.at_once(tgt) else { return false };
    let round_is_due = if let Some(door) = core.transport.door(tgt) {
        let Ok(filling) = door.begin() else { return false };
        let cookie = match cmpl_cntr {
            0 => 0,
            _ => core.ops.insert(tgt, Op::Completion { cmpl_cntr }, false),
        };
        let sent = if REPORTED { 0 } else { cookie };
        // SAFETY: the caller's promise.
        let filled = unsafe { head(*number as u32, sent).write(filling).body(header, data.into()) };
        let Ok(filled) = filled else {
            core.ops.remove(tgt, cookie);
            return false;
        };
        // Before the packet is there: a locked instruction after that would wait for its line.
        // SAFETY: the caller's promise.
        unsafe { counter::bump(org_cntr) };
        if REPORTED && cookie != 0 {
            let count = filled.publish_reported();
            if door.await_report(count, cookie) {
                core.reporting.insert(tgt);
            }
        } else {
            filled.publish();
        }
        door.published();
        *number += 1;
        core.unreported |= LAPI_SEND_COMPLETE;
        core.waiters.note_news_if_waiting();
        let path = &mut core.stats.peers;
        path.packets_sent += 1;
        path.bytes_sent += data.len as u64;
        path.packets_sent.is_multiple_of(PACKETS_PER_ROUND) || door.has_packet()
    } else {
        // SAFETY: the caller's promise.
        let sent = unsafe { send_by_table(core, tgt, head, (header, data), org_cntr, cmpl_cntr) };
        let Some(round_is_due) = sent else { return false };
        round_is_due
    };
    held.has_sent();
    if round_is_due {
        operations::finish(held, tgt);
    } else {
        held.stays_clear();
    }
    true
}

/// Sends the message to a task to which there is no door. `None`: nothing was done; otherwise,
/// whether a round of the dispatcher is due.
///
/// # Safety
/// The conditions of [`send`] hold.
#[inline(never)]
unsafe fn send_by_table(
    core: &mut Core,
    tgt: Task,
    head: impl FnOnce(u32, u64) -> Head,
    (first, data): (Piece, Piece),
    org_cntr: usize,
    cmpl_cntr: usize,
) -> Option<bool> {
    if !core.transport.is_open(tgt) {
        return None;
    }
    let number = *core.outbox.at_once(tgt)?;
    let cookie = match cmpl_cntr {
        0 => 0,
        _ => core.ops.insert(tgt, Op::Completion { cmpl_cntr }, false),
    };
    let head = head(number as u32, cookie).encode();
    let packet = Outgoing { head: head.as_bytes(), first, second: data.into(), copy_limit: usize::MAX };
    // SAFETY: the caller's promise.
    let sent = unsafe { core.out().1.send(tgt, &packet) };
    debug_assert!(!matches!(sent, SendOutcome::Taken(_)), "it is to be copied");
    if !matches!(sent, SendOutcome::Sent | SendOutcome::Held) {
        core.ops.remove(tgt, cookie);
        return None;
    }
    *core.outbox.at_once(tgt)? += 1;
    let bytes = data.len as u64;
    account(core, &SendDone { org_cntr, bytes, user: true, ..SendDone::nothing(tgt) });
    let round_is_due = core.path_to(tgt).packets_sent.is_multiple_of(PACKETS_PER_ROUND);
    Some(round_is_due || core.transport.may_receive(Look::One))
}
