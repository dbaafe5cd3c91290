//! Short messages to this task, or to a peer for which nothing waits: what [`operations`] does
//! with them, without what only other messages and other states need.
//!
//! A message leaves here only where the usual way would send it at once in one packet, and would
//! then find nothing else to do; then counters, numbers and statistics are as that way leaves them.
//! In all other cases, errors among them, nothing is done.
//!
//! The usual way ends with a round of the dispatcher. Here there is a look for what has come only
//! when the target, or where there is no door to it anybody, may have sent something, and after
//! each [`MESSAGES_PER_LOOK`] messages; in a stream of gets only the latter.

use crate::abi::{LAPI_RECV_COMPLETE, LAPI_SEND_COMPLETE};
use crate::base::clock::ticks;
use crate::base::ring::SHORT_BODY;
use crate::engine::context::clear::Clear;
use crate::engine::context::request::{Hint, PlainGet, PlainMessage, PlainPut, Preference};
use crate::engine::context::unhindered::{ShortCall, Unhindered};
use crate::engine::context::{Core, Held};
use crate::engine::plan::{Means, Operation, OperationKind, Peer, Way, plan};
use crate::engine::progress::operations;
use crate::engine::transfer::origin::{means, peer};
use crate::engine::transfer::send::account;
use crate::memory::bytes::{self, Piece, fits_pointer, is_memory};
use crate::memory::counter;
use crate::proto::Transmit;
use crate::proto::content::Sink;
use crate::proto::ops::{Op, Ops};
use crate::proto::outbox::SendDone;
use crate::transport::{Look, MIN_BODY, Outgoing, SendOutcome, Task};
use crate::wire::packet::Head;

/// After one in this many messages there is a look for what has come in any case.
const MESSAGES_PER_LOOK: u64 = 16;

/// What has become of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Nothing was done.
    Not,
    /// The message was sent, and nothing else is to be done.
    Whole,
    /// The message was sent, and a look for what has come is due.
    LooksAround,
}

impl Sent {
    #[inline(always)]
    fn and(looks: bool) -> Self {
        if looks { Self::LooksAround } else { Self::Whole }
    }
}

/// Ends a short call in which a message was sent, or was not. Returns whether it was.
#[inline(always)]
fn conclude(mut call: ShortCall<'_>, tgt: Task, sent: Sent) -> bool {
    if sent != Sent::Not {
        call.has_sent();
    }
    if sent == Sent::LooksAround {
        call.go_on(|held| operations::look_around(held, tgt));
    }
    sent != Sent::Not
}

/// Sends by the short way in this call, if nothing hinders it. `false`: nothing was done.
#[inline(always)]
pub fn within(held: &mut Held<'_>, tgt: Task, send: impl FnOnce(&mut Unhindered<'_>) -> Sent) -> bool {
    let Some(mut way) = held.unhindered(Clear::TO_SEND) else { return false };
    let sent = send(&mut way);
    if sent != Sent::Not {
        held.has_sent();
    }
    if sent == Sent::LooksAround {
        operations::look_around(held, tgt);
    }
    sent != Sent::Not
}

/// A short call that makes this put, of more than [`SHORT_BODY`] bytes or of no more. `false`:
/// nothing was done.
///
/// # Safety
/// The addresses must be as LAPI_Put wants them, at both tasks.
#[inline(always)]
pub unsafe fn call_put<const LONG: bool>(mut call: ShortCall<'_>, message: &PlainPut) -> bool {
    // SAFETY: the caller's promise.
    let sent = unsafe { put_of::<LONG>(call.way(), message) };
    conclude(call, message.tgt, sent)
}

/// A short call that makes this get. `false`: nothing was done.
///
/// # Safety
/// The addresses must be as LAPI_Get wants them, at both tasks.
#[inline(always)]
pub unsafe fn call_get(mut call: ShortCall<'_>, message: &PlainGet) -> bool {
    // SAFETY: the caller's promise.
    let sent = unsafe { get(call.way(), message) };
    conclude(call, message.tgt, sent)
}

/// A short call that sends this active message, which [`is_long`] or is not. `false`: nothing was
/// done.
///
/// # Safety
/// The addresses must be as LAPI_Amsend wants them, at both tasks.
#[inline(always)]
pub unsafe fn call_active_message<const LONG: bool>(mut call: ShortCall<'_>, message: &PlainMessage) -> bool {
    // SAFETY: the caller's promise.
    let sent = unsafe { active_message_of::<LONG>(call.way(), message) };
    conclude(call, message.tgt, sent)
}

/// Whether user header and data are more than [`SHORT_BODY`] bytes, without their sum, which may
/// exceed all numbers.
#[inline(always)]
pub fn is_long(message: &PlainMessage) -> bool {
    let header = message.header.len;
    header > SHORT_BODY || message.data.len > SHORT_BODY - header
}

/// A put.
///
/// # Safety
/// The addresses must be as LAPI_Put wants them, at both tasks.
#[inline(always)]
pub unsafe fn put(way: &mut Unhindered<'_>, put: &PlainPut) -> Sent {
    // SAFETY: the caller's promise.
    unsafe { if put.len > SHORT_BODY { put_of::<true>(way, put) } else { put_of::<false>(way, put) } }
}

/// A put of more than [`SHORT_BODY`] bytes, or of no more.
///
/// # Safety
/// The conditions of [`put`] hold.
#[inline(always)]
unsafe fn put_of<const LONG: bool>(way: &mut Unhindered<'_>, put: &PlainPut) -> Sent {
    let PlainPut { tgt, local, remote, len, tgt_cntr, .. } = *put;
    debug_assert_eq!(LONG, len > SHORT_BODY);
    let core = way.core();
    if local == 0 || remote == 0 || LONG && len > core.outbox.max_body() {
        return Sent::Not;
    }
    if !is_another(core, tgt) {
        // SAFETY: the caller's promise.
        return if tgt == core.options.me { unsafe { put_to_self(core, *put) } } else { Sent::Not };
    }
    debug_assert!(goes_in_packets(
        &means(core),
        OperationKind::Put {
            completion: put.cmpl_cntr != 0,
            target_counter: tgt_cntr != 0,
            reports: put.org_cntr != 0
        },
        len,
        || panic!("the way depends on the peer")
    ));
    let data = Piece { ptr: local as *const u8, len };
    let head = |id, cookie| Head::Put { id, addr: remote, tgt_cntr, cookie, total: 0 };
    // SAFETY: the caller's promise.
    unsafe { send::<true, LONG>(core, tgt, head, (Piece::EMPTY, data), put.org_cntr, put.cmpl_cntr) }
}

/// A put to this task.
///
/// # Safety
/// The conditions of [`put`] hold.
#[cold]
#[inline(never)]
unsafe fn put_to_self(core: &mut Core, put: PlainPut) -> Sent {
    if !fits_pointer(put.tgt_cntr) || !is_memory(put.remote, put.len as u64) {
        return Sent::Not;
    }
    let data = Piece { ptr: put.local as *const u8, len: put.len };
    // SAFETY: the caller's promise.
    unsafe {
        bytes::copy(data, put.remote as usize as *mut u8);
        counter::bump(put.tgt_cntr as usize);
        counter::bump(put.org_cntr);
        counter::bump(put.cmpl_cntr);
    }
    core.note_completed(LAPI_SEND_COMPLETE | LAPI_RECV_COMPLETE);
    core.waiters.note_news_if_awaited();
    let path = &mut core.stats.local;
    path.bytes_received += data.len as u64;
    path.bytes_sent += data.len as u64;
    let count = core.count_short_to_self();
    // A program may make no other calls for long, and its peers wait for answers.
    Sent::and(count.is_multiple_of(MESSAGES_PER_LOOK) || !core.transport.look(Look::One).is_nothing())
}

/// An active message.
///
/// # Safety
/// The addresses must be as LAPI_Amsend wants them, at both tasks.
#[inline(always)]
pub unsafe fn active_message(way: &mut Unhindered<'_>, message: &PlainMessage) -> Sent {
    // SAFETY: the caller's promise.
    unsafe {
        match is_long(message) {
            true => active_message_of::<true>(way, message),
            false => active_message_of::<false>(way, message),
        }
    }
}

/// An active message that [`is_long`], or is not.
///
/// # Safety
/// The conditions of [`active_message`] hold.
#[inline(always)]
unsafe fn active_message_of<const LONG: bool>(way: &mut Unhindered<'_>, message: &PlainMessage) -> Sent {
    let PlainMessage { tgt, handler, header, data, tgt_cntr, .. } = *message;
    debug_assert_eq!(LONG, is_long(message));
    let core = way.core();
    let is_there = |piece: Piece| !piece.ptr.is_null() || piece.len == 0;
    let is_valid = handler != 0 && is_there(header) && is_there(data) && header.len.is_multiple_of(4);
    if !is_valid {
        return Sent::Not;
    }
    let most = core.outbox.packet_size();
    // Each of the lengths is compared: their sum may exceed all numbers.
    if LONG && (header.len > MIN_BODY || data.len > most || header.len + data.len > most) {
        return Sent::Not;
    }
    if !is_another(core, tgt) {
        return Sent::Not;
    }
    debug_assert!(goes_in_packets(
        &means(core),
        OperationKind::Am { header: header.len, plain: true, copied: false },
        data.len,
        || panic!("the way depends on the peer")
    ));
    let uhdr_len = header.len as u16;
    let head = |id, cookie| Head::Am { id, uhdr_len, handler, tgt_cntr, cookie, total: 0, atoms: false };
    // SAFETY: the caller's promise.
    unsafe { send::<false, LONG>(core, tgt, head, (header, data), message.org_cntr, message.cmpl_cntr) }
}

/// A get, through a door, of a peer that looks for packets.
///
/// # Safety
/// The addresses must be as LAPI_Get wants them, at both tasks.
#[inline(always)]
pub unsafe fn get(way: &mut Unhindered<'_>, get: &PlainGet) -> Sent {
    let PlainGet { tgt, remote, local, len, tgt_cntr, org_cntr } = *get;
    let core = way.core();
    if local == 0 || remote == 0 || len == 0 || len > core.outbox.max_body() {
        return Sent::Not;
    }
    if !is_another(core, tgt) || core.outbox.is_gone(tgt) {
        return Sent::Not;
    }
    debug_assert!(goes_in_packets(&means(core), OperationKind::Get, len, || Peer {
        polls: true,
        ..peer(core, tgt)
    }));
    let Some(door) = core.transport.door(tgt) else { return Sent::Not };
    let now = ticks();
    if core.options.bulk.preference == Preference::Auto && !door.peer_polls(now) {
        return Sent::Not;
    }
    let Ok(filling) = door.begin() else { return Sent::Not };
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
        return Sent::Not;
    };
    filled.publish();
    door.published();
    let streams = door.note_asked(now);
    let path = &mut core.stats.peers;
    path.packets_sent += 1;
    // What has come is a reply to one before, mostly. In a stream the replies are taken together:
    // each look would wait for the line that the peer is writing.
    Sent::and(path.packets_sent.is_multiple_of(MESSAGES_PER_LOOK) || !streams && door.has_packet())
}

/// Whether messages to `tgt` go to another task of the job.
#[inline(always)]
fn is_another(core: &Core, tgt: Task) -> bool {
    tgt < core.options.tasks && tgt != core.options.me
}

/// Whether the usual way sends this in packets and in no other way, to a peer of this state.
fn goes_in_packets(means: &Means, kind: OperationKind, len: usize, peer: impl FnOnce() -> Peer) -> bool {
    let op = Operation { kind, len, piece: 0, hint: Hint::None };
    let ways = plan(&op, means, peer);
    ways.iter().flatten().all(|way| matches!(way, Way::Packets { .. }))
}

/// Sends the message, and accounts for it. `REPORTED`: it is complete as soon as its packet is
/// taken, which the peer reports through a door without another packet. `LONG`: it has more than
/// [`SHORT_BODY`] bytes.
///
/// # Safety
/// Both pieces must be readable now; `org_cntr` must be 0 or the address of a counter of the
/// program.
#[inline(always)]
unsafe fn send<const REPORTED: bool, const LONG: bool>(
    core: &mut Core,
    tgt: Task,
    head: impl FnOnce(u32, u64) -> Head,
    (header, data): (Piece, Piece),
    org_cntr: usize,
    cmpl_cntr: usize,
) -> Sent {
    let Some(number) = core.outbox.at_once(tgt) else { return Sent::Not };
    let looks = if let Some(door) = core.transport.door(tgt) {
        let Ok(filling) = door.begin() else { return Sent::Not };
        let cookie = match cmpl_cntr {
            0 => 0,
            _ => completion(&mut core.ops, tgt, cmpl_cntr),
        };
        let sent = if REPORTED { 0 } else { cookie };
        let head = head(*number as u32, sent);
        // SAFETY: the caller's promise.
        let filled = unsafe {
            match LONG {
                true => filling.packet(|to| head.write(to), header, data.into()),
                false => head.write(filling).body(header, data.into()),
            }
        };
        let Ok(filled) = filled else {
            core.ops.remove(tgt, cookie);
            return Sent::Not;
        };
        // Before the packet is there: a locked instruction after that would wait for its line.
        // SAFETY: the caller's promise.
        unsafe { counter::bump(org_cntr) };
        if REPORTED && cookie != 0 {
            let count = filled.publish_reported();
            if door.await_report(count, cookie) {
                core.door_reporters.insert(tgt);
            }
        } else {
            filled.publish();
        }
        door.published();
        *number += 1;
        core.msgpoll_state |= LAPI_SEND_COMPLETE;
        core.waiters.note_news_if_waiting();
        let path = &mut core.stats.peers;
        path.packets_sent += 1;
        path.bytes_sent += data.len as u64;
        path.packets_sent.is_multiple_of(MESSAGES_PER_LOOK) || door.has_packet()
    } else {
        // SAFETY: the caller's promise.
        let sent = unsafe { send_by_table(core, tgt, head, header, data, org_cntr, cmpl_cntr) };
        let Some(looks) = sent else { return Sent::Not };
        looks
    };
    Sent::and(looks)
}

/// An operation that ends with this counter.
#[cold]
#[inline(never)]
fn completion(ops: &mut Ops, tgt: Task, cmpl_cntr: usize) -> u64 {
    ops.insert(tgt, Op::Completion { cmpl_cntr }, false)
}

/// Sends the message to a task to which there is no door. `None`: nothing was done; otherwise,
/// whether to look for what has come.
///
/// # Safety
/// The conditions of [`send`] hold.
#[cold]
#[inline(never)]
unsafe fn send_by_table(
    core: &mut Core,
    tgt: Task,
    head: impl FnOnce(u32, u64) -> Head,
    first: Piece,
    data: Piece,
    org_cntr: usize,
    cmpl_cntr: usize,
) -> Option<bool> {
    // What is longer may be sent from where it is.
    if !core.transport.is_open(tgt) || first.len + data.len > core.options.copy_limit {
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
    let looks = core.path_to(tgt).packets_sent.is_multiple_of(MESSAGES_PER_LOOK);
    Some(looks || !core.transport.look(Look::One).is_nothing())
}
