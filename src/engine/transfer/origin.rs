//! The program's operations at their origin: how they start.

use crate::base::bytes::{Piece, pad8};
use crate::engine::context::Held;
use crate::engine::context::direct_copy::DirectCopy;
use crate::engine::context::request::{Get, Marks, Message, Places, Put, Rmw};
use crate::engine::transfer::path::{self, Path};
use crate::engine::transfer::send::{
    completion, copies, finish, not_sent, reachable, send, send_request, started, stream,
};
use crate::engine::transfer::{bulk, direct, loopback, one_sided, packets, parts, registration, reply};
use crate::error::Result;
use crate::proto::content::Content;
use crate::proto::ops::{Op, Registered};
use crate::proto::outbox::{Body, Continuation, SendDone, Sent, Streaming};
use crate::transport::{Access, Key, Task};
use crate::wire::key::Exposed;
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
    if held.core().acts_alone && one_sided::put(held, put) {
        return Ok(());
    }
    let cookie = completion(held, tgt, put.cmpl_cntr);
    let core = held.core();
    let marks = Marks { id: core.outbox.number(tgt), tgt_cntr: put.tgt_cntr, cookie };
    let posted = match put.places {
        Places::Contiguous { local, remote, len } if len <= core.outbox.max_body() => {
            let data = Content::Piece(Piece { ptr: local as *const u8, len });
            // SAFETY: the data is the caller's promise.
            unsafe { packets::put_one(held, tgt, marks, remote, &data, put.done) }
        }
        // SAFETY: the caller's promise.
        _ => unsafe { put_long(held, put, marks) },
    };
    started(held, tgt, cookie, posted, &put.done)
}

/// Starts a put of layouts, or of more than a packet.
///
/// # Safety
/// As for [`put`].
unsafe fn put_long(held: &mut Held<'_>, put: &Put, marks: Marks) -> Sent {
    let (tgt, core) = (put.tgt, held.core());
    let (len, piece) = (put.places.len(), put.places.piece());
    let copied = piece == 0 && copies(core, len);
    let path = if copied { Path::Packets } else { path::choose(core, tgt, len, piece, put.hint) };
    if path == Path::Direct {
        direct::begin(held, DirectCopy::push(put, marks));
        return Sent::Queued;
    }
    if path == Path::Bulk && !copies(held.core(), len) {
        if let Some(sent) = write_all(held, put, marks) {
            return sent;
        }
        // SAFETY: the data is the caller's promise.
        let sent = unsafe {
            match put.places {
                Places::Contiguous { .. } => bulk::put(held, put, marks),
                Places::Layouts(_) => parts::put(held, put, marks),
            }
        };
        if let Some(sent) = sent {
            return sent;
        }
    }
    // SAFETY: the data is the caller's promise.
    unsafe { packets::put(held, tgt, marks, &put.places, put.done) }
}

/// Writes contiguous data of a put into the target's memory, by the key of all of it, if there is one. The target takes no part, so it
/// must have nothing to do when the data is there. `None`: it must be asked.
fn write_all(held: &mut Held<'_>, put: &Put, marks: Marks) -> Option<Sent> {
    let (tgt, core) = (put.tgt, held.core());
    let Places::Contiguous { .. } = put.places else { return None };
    if marks.tgt_cntr != 0 {
        return None;
    }
    let key = core.transport.remote()?.standing_key(tgt)?;
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
    let len = data.len();
    let short = header.len + len <= held.core().outbox.packet_size();
    let core = held.core();
    let copied =
        message.copied || header.len + len <= core.options.copy_limit && (short || core.outbox.has_buffer());
    // A target fetches contiguous data, for a header handler that returns a buffer.
    let plain = message.shape.is_none() && message.atom == 0;
    let long = !short && !copied;
    if let (true, true, Some(piece)) = (long, plain, data.as_piece()) {
        let core = held.core();
        let path = path::choose(core, tgt, len, 0, message.hint);
        // The key is behind the user header.
        let fits = pad8(header.len) + Key::LEN <= core.outbox.max_body();
        let registered = if path == Path::Bulk && fits {
            registration::register(core, tgt, piece, Access::Read, message.hint)
        } else {
            None
        };
        if path == Path::Direct || registered.is_some() {
            // SAFETY: the caller's promise.
            return unsafe { expose(held, message, piece, registered) };
        }
        if path == Path::Bulk && !fits {
            // SAFETY: the caller's promise.
            let asked = unsafe { parts::active_message(held, message) };
            if let Some(outcome) = asked {
                return outcome;
            }
        }
    } else if long && path::is_bulk(held.core(), tgt, len, message.hint) {
        // SAFETY: the caller's promise.
        let asked = unsafe { parts::active_message(held, message) };
        if let Some(outcome) = asked {
            return outcome;
        }
    }
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

/// Starts an active message whose data the target fetches, by a key if the data is registered.
///
/// # Safety
/// As for [`active_message`]; the data is `piece`.
unsafe fn expose(
    held: &mut Held<'_>,
    message: &Message,
    piece: Piece,
    registered: Option<Box<Registered>>,
) -> Result<()> {
    let (tgt, core) = (message.tgt, held.core());
    let key = registered.as_ref().map(|registered| registered.keys[0].encode());
    let id = core.outbox.number(tgt);
    let done = SendDone { bytes: piece.len as u64, ..message.done };
    let exposed = Op::rendezvous(done, message.cmpl_cntr, id, piece.ptr as usize, registered);
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
    let key = Content::Piece(key.as_ref().map_or(Piece::EMPTY, |key| Piece::of(key)));
    let body = Body { header: message.header, data: &key };
    // SAFETY: the header is the caller's promise; parked, it is copied.
    let sent = unsafe { send(held, tgt, &head, body, true, SendDone::nothing(tgt)) };
    if matches!(sent, Sent::Gone | Sent::NoMemory) {
        let core = held.core();
        registration::give_up(core, tgt, cookie);
        core.outbox.take_back(tgt);
        return Err(not_sent(core, tgt, sent));
    }
    Ok(())
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
    let path = path::choose(core, tgt, places.len(), places.piece(), get.hint);
    let registered = match *places {
        Places::Contiguous { local, len, .. } if path == Path::Bulk => {
            registration::register(core, tgt, Piece { ptr: local as *const u8, len }, Access::Write, get.hint)
                .map(|registered| (Exposed { addr: local as u64, key: registered.keys[0] }, registered))
        }
        _ => None,
    };
    let (exposed, registered) = registered.unzip();
    let op = |sink, registered| Op::Get {
        sink,
        len: places.len() as u64,
        arrived: 0,
        org_cntr: get.org_cntr,
        handler: get.handler.map_or(0, |handler| handler as usize),
        info: get.parameter,
        registered,
    };
    let scattered = matches!(places, Places::Layouts(_));
    if path == Path::Bulk
        && scattered
        && let Some((cookie, sent)) = parts::get(held, get, op)
    {
        return requested(held, tgt, cookie, sent);
    }
    let cookie = held.core().ops.insert(tgt, op(places.local_sink(), registered), true);
    if path == Path::Direct {
        direct::begin(held, DirectCopy::fetch(get, cookie));
        return Ok(());
    }
    let sent = match exposed {
        Some(exposed) => bulk::get(held, get, cookie, exposed),
        None => packets::get(held, tgt, get.tgt_cntr, cookie, places),
    };
    requested(held, tgt, cookie, sent)
}

/// What a call returns that has asked the target for something that operation `cookie` waits for.
fn requested(held: &mut Held<'_>, tgt: Task, cookie: u64, sent: Sent) -> Result<()> {
    if matches!(sent, Sent::Gone | Sent::NoMemory) {
        let core = held.core();
        registration::give_up(core, tgt, cookie);
        return Err(not_sent(core, tgt, sent));
    }
    Ok(())
}

/// Starts a read-modify-write.
///
/// # Safety
/// The addresses must be as LAPI_Rmw wants them, at both tasks.
#[inline]
pub unsafe fn rmw(held: &mut Held<'_>, rmw: &Rmw) -> Result<()> {
    let op = rmw.op | if rmw.wide { RMW_WIDE } else { 0 };
    let core = held.core();
    if rmw.tgt == core.options.me {
        // SAFETY: the caller's promise.
        if let Some(value) = unsafe { loopback::read_modify_write(op, rmw.var, rmw.value, rmw.swap) } {
            // SAFETY: the caller's promise.
            unsafe { reply::store_previous(rmw.previous, rmw.wide, value) };
        }
        finish(held, &rmw.done);
        return Ok(());
    }
    reachable(held, rmw.tgt)?;
    let core = held.core();
    let pending = Op::Rmw { previous: rmw.previous, wide: rmw.wide, done: rmw.done };
    let cookie = core.ops.insert(rmw.tgt, pending, true);
    let head = Head::Rmw { op, var: rmw.var, value: rmw.value, swap: rmw.swap, cookie };
    let sent = send_request(core, rmw.tgt, &head);
    requested(held, rmw.tgt, cookie, sent)
}
