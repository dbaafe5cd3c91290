//! The program's operations at their origin: how they start.

use crate::engine::context::direct_copy::{CopyKind, DirectCopy};
use crate::engine::context::request::{Get, Marks, Message, Put, Rmw};
use crate::engine::context::{Core, Held};
use crate::engine::plan::{Means, Operation, OperationKind, Peer, Way, plan};
use crate::engine::transfer::send::{
    completion, finish, reachable, requested, send, send_request, started, stream,
};
use crate::engine::transfer::{direct, loopback, one_sided, packets, parts};
use crate::error::Result;
use crate::memory::word;
use crate::proto::content::Content;
use crate::proto::ops::Op;
use crate::proto::outbox::{Body, Continuation, SendDone, Sent, Streaming};
use crate::transport::{Reach, Task};
use crate::wire::packet::{Head, RMW_WIDE};

/// Starts a put.
///
/// # Safety
/// The places must be as LAPI_Put or LAPI_Putv wants them, at both tasks.
#[inline]
pub unsafe fn put(held: &mut Held<'_>, put: &Put) -> Result<()> {
    let tgt = put.tgt;
    if tgt == held.core().options.me {
        // SAFETY: the caller's promise.
        unsafe { loopback::put(held, put) };
        return Ok(());
    }
    reachable(held, tgt)?;
    let core = held.core();
    let kind = OperationKind::Put {
        completion: put.cmpl_cntr != 0,
        target_counter: put.tgt_cntr != 0,
        reports: put.done.org_cntr != 0 || put.done.handler != 0,
    };
    let op = Operation { kind, len: put.places.len(), piece: put.places.piece(), hint: put.hint };
    let ways = plan(&op, &means(core), || peer(core, tgt));
    if let Some(Way::Write { copied }) = ways[0]
        && one_sided::put(held, put, copied)
    {
        return Ok(());
    }
    let cookie = completion(held, tgt, put.cmpl_cntr);
    let core = held.core();
    let marks = Marks { id: core.outbox.number(tgt), tgt_cntr: put.tgt_cntr, cookie };
    // SAFETY: the caller's promise.
    let sent = ways.into_iter().flatten().find_map(|way| unsafe { put_by(held, put, marks, way) });
    let sent = sent.expect("the last way of a plan is never refused");
    started(held, tgt, cookie, sent, &put.done)
}

/// What this task can do, for a plan.
#[inline]
pub(in crate::engine) fn means(core: &Core) -> Means {
    Means {
        body: core.outbox.max_body(),
        packet: core.outbox.packet_size(),
        copy_limit: core.options.copy_limit,
        buffer: core.outbox.has_buffer(),
        keys: core.one_sided.are_possible(),
        policy: core.options.bulk,
    }
}

/// What a plan has to know of a peer.
pub(in crate::engine) fn peer(core: &mut Core, peer: Task) -> Peer {
    Peer {
        reach: core.reach(peer),
        polls: core.transport.view(peer).polls,
        room: core.outbox.max_body_to(peer),
    }
}

/// Starts a put by one of its ways. `None`: that is refused.
///
/// # Safety
/// The conditions of [`put`] hold.
#[inline]
unsafe fn put_by(held: &mut Held<'_>, put: &Put, marks: Marks, way: Way) -> Option<Sent> {
    match way {
        Way::Packets { copied } => {
            // SAFETY: the data is the caller's promise.
            Some(unsafe { packets::put(held, put.tgt, marks, &put.places, copied, put.done) })
        }
        // Tried before the put has a number at the target.
        Way::Write { .. } => None,
        Way::WriteLong => write_all(held, put, marks),
        Way::Copy => {
            let kind = CopyKind::Push { marks, done: put.done };
            direct::begin(held, DirectCopy::new(put.tgt, put.places.clone(), kind));
            Some(Sent::Queued)
        }
        // SAFETY: the data is the caller's promise.
        Way::OfferParts => unsafe { parts::put(held, put, marks) },
        Way::Offer => unreachable!("no way of a put"),
    }
}

/// Writes contiguous data of a put into the target's memory, by the key of all of it. `None`: the
/// target has withdrawn it.
fn write_all(held: &mut Held<'_>, put: &Put, marks: Marks) -> Option<Sent> {
    let (tgt, core) = (put.tgt, held.core());
    let Reach::Keyed(Some(key)) = core.reach(tgt) else { return None };
    // It has no number at the target: a fence waits for the operation here.
    core.outbox.take_back(tgt);
    core.ops.remove(tgt, marks.cookie);
    let cookie = core.ops.insert(tgt, Op::Completion { cmpl_cntr: put.cmpl_cntr }, true);
    direct::begin(held, DirectCopy::write(put, cookie, key));
    Some(Sent::Queued)
}

/// Starts an active message.
///
/// # Safety
/// The addresses must be as LAPI_Amsend wants them, at both tasks.
#[inline]
pub unsafe fn active_message(held: &mut Held<'_>, message: &Message) -> Result<()> {
    let tgt = message.tgt;
    if tgt == held.core().options.me {
        // SAFETY: the caller's promise.
        return unsafe { loopback::active_message(held, message) };
    }
    reachable(held, tgt)?;
    let (header, data) = (message.header, &message.data);
    let (len, core) = (data.len(), held.core());
    let plain = message.shape.is_none() && message.atom == 0;
    let kind = OperationKind::Am { header: header.len, plain, copied: message.copied };
    let op = Operation { kind, len, piece: data.piece(), hint: message.hint };
    let mut copied = message.copied;
    for way in plan(&op, &means(core), || peer(core, tgt)).into_iter().flatten() {
        let outcome = match way {
            // SAFETY: the caller's promise.
            Way::Offer => unsafe { offer(held, message) },
            // SAFETY: the caller's promise.
            Way::OfferParts => unsafe { parts::active_message(held, message) },
            Way::Packets { copied: all } => {
                copied = all;
                None
            }
            Way::Copy | Way::Write { .. } | Way::WriteLong => unreachable!("no way of an active message"),
        };
        if let Some(outcome) = outcome {
            return outcome;
        }
    }
    let short = header.len + len <= held.core().outbox.packet_size();
    let cookie = completion(held, tgt, message.cmpl_cntr);
    let id = held.core().outbox.number(tgt);
    let total = if short { 0 } else { len as u64 };
    let (uhdr_len, handler, tgt_cntr) = (header.len as u16, message.handler, message.tgt_cntr);
    let head = match message.shape {
        None => Head::Am { id, uhdr_len, handler, tgt_cntr, cookie, total, atoms: message.atom != 0 },
        Some(shape) => Head::Amv { id, uhdr_len, handler, shape, tgt_cntr, cookie, total },
    };
    // SAFETY: header and data are the caller's promise.
    let posted = unsafe {
        if short {
            send(held, tgt, &head, Body { header, data }, message.copied, message.done)
        } else {
            let how = Streaming { copied, atom: message.atom };
            stream(held, tgt, Some((&head, header)), Continuation::Message(id), data, how, message.done)
        }
    };
    started(held, tgt, cookie, posted, &message.done)
}

/// Starts an active message whose contiguous data the target fetches by its address.
///
/// # Safety
/// The conditions of [`active_message`] hold.
unsafe fn offer(held: &mut Held<'_>, message: &Message) -> Option<Result<()>> {
    let (tgt, core) = (message.tgt, held.core());
    let piece = message.data.as_piece()?;
    let id = core.outbox.number(tgt);
    let done = SendDone { bytes: piece.len as u64, ..message.done };
    let exposed = Op::rendezvous(done, message.cmpl_cntr, id, piece.ptr as usize, None);
    let cookie = core.ops.insert(tgt, exposed, false);
    let head = Head::RequestToSend {
        id,
        uhdr_len: message.header.len as u16,
        handler: message.handler,
        addr: piece.ptr as u64,
        total: piece.len as u64,
        cookie,
        tgt_cntr: message.tgt_cntr,
    };
    let body = Body { header: message.header, data: &Content::EMPTY };
    // SAFETY: the header is the caller's promise; parked, it is copied.
    let sent = unsafe { send(held, tgt, &head, body, true, SendDone::nothing(tgt)) };
    Some(requested(held.core(), tgt, cookie, true, sent))
}

/// Starts a get.
///
/// # Safety
/// The places must be as LAPI_Get or LAPI_Getv wants them, at both tasks.
pub unsafe fn get(held: &mut Held<'_>, get: &Get) -> Result<()> {
    let (tgt, places) = (get.tgt, &get.places);
    if tgt == held.core().options.me {
        // SAFETY: the caller's promise.
        unsafe { loopback::get(held, get) };
        return Ok(());
    }
    reachable(held, tgt)?;
    let core = held.core();
    let op = Operation { kind: OperationKind::Get, len: places.len(), piece: places.piece(), hint: get.hint };
    let ways = plan(&op, &means(core), || peer(core, tgt));
    let (cookie, sent) =
        ways.into_iter().flatten().find_map(|way| get_by(held, get, way)).expect("a last way, never refused");
    requested(held.core(), tgt, cookie, false, sent)
}

/// Starts a get by one of its ways: its operation, and what has become of the request. `None`: the
/// way is refused.
fn get_by(held: &mut Held<'_>, get: &Get, way: Way) -> Option<(u64, Sent)> {
    let (tgt, places, core) = (get.tgt, &get.places, held.core());
    let op = |sink, registered| Op::Get {
        sink,
        len: places.len() as u64,
        arrived: 0,
        org_cntr: get.org_cntr,
        handler: get.handler.map_or(0, |handler| handler as usize),
        info: get.parameter,
        registered,
    };
    match way {
        Way::Packets { .. } => {
            let cookie = core.ops.insert(tgt, op(places.local_sink(), None), true);
            Some((cookie, packets::get(held, tgt, get.tgt_cntr, cookie, places)))
        }
        Way::Copy => {
            let cookie = core.ops.insert(tgt, op(places.local_sink(), None), true);
            let kind = CopyKind::Fetch { cookie, tgt_cntr: get.tgt_cntr };
            direct::begin(held, DirectCopy::new(tgt, places.clone(), kind));
            Some((cookie, Sent::Queued))
        }
        Way::OfferParts => parts::get(held, get, op),
        Way::Write { .. } | Way::WriteLong | Way::Offer => unreachable!("no way of a get"),
    }
}

/// Starts a read-modify-write.
///
/// # Safety
/// The addresses must be as LAPI_Rmw wants them, at both tasks.
#[inline]
pub unsafe fn rmw(held: &mut Held<'_>, rmw: &Rmw) -> Result<()> {
    let core = held.core();
    if rmw.tgt == core.options.me {
        // SAFETY: the caller's promise.
        let outcome =
            unsafe { word::read_modify_write(rmw.op.into(), rmw.wide, rmw.var, rmw.value, rmw.swap) };
        if let Some(value) = outcome {
            // SAFETY: the caller's promise.
            unsafe { word::store(rmw.previous, rmw.wide, value) };
        }
        finish(held, &rmw.done);
        return Ok(());
    }
    reachable(held, rmw.tgt)?;
    let op = rmw.op | if rmw.wide { RMW_WIDE } else { 0 };
    let core = held.core();
    let pending = Op::Rmw { previous: rmw.previous, wide: rmw.wide, done: rmw.done };
    let cookie = core.ops.insert(rmw.tgt, pending, true);
    let head = Head::Rmw { op, var: rmw.var, value: rmw.value, swap: rmw.swap, cookie };
    let sent = send_request(core, rmw.tgt, &head);
    requested(core, rmw.tgt, cookie, false, sent)
}
