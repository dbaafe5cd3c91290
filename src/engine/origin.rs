//! The program's operations at their origin: how they start, and what follows when an answer comes.

use super::arrival;
use super::bulk::{self, Hint, Transfer, Way};
use super::completion::Completion;
use super::context::Held;
use super::counter;
use super::dispatcher::{self, answer};
use super::local;
use crate::abi::{
    LAPI_ERR_NO_CONNECTIVITY, LAPI_SEND_COMPLETE, compl_hndlr_p, lapi_sh_info_t, scompl_hndlr_t,
};
use crate::base::bytes::Piece;
use crate::base::clock::ticks;
use crate::error::{Error, Result};
use crate::proto::ops::Op;
use crate::proto::outbox::{Body, Continuation, Posted, SendDone};
use crate::transport::Task;
use crate::wire::packet::{Head, RMW_WIDE};
use libc::c_void;

/// A put.
#[derive(Clone, Copy, Debug)]
pub struct Put {
    /// The target.
    pub tgt: Task,
    /// Where the data goes, at the target.
    pub addr: u64,
    /// The data.
    pub data: Piece,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The completion counter, or 0.
    pub cmpl_cntr: usize,
    /// What follows when the data may be changed.
    pub done: SendDone,
    /// What the program wishes.
    pub hint: Hint,
}

/// An active message.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The target.
    pub tgt: Task,
    /// Address or index of the header handler, at the target.
    pub handler: u64,
    /// The user header, at most MAX_UHDR_SZ bytes.
    pub header: Piece,
    /// The data.
    pub data: Piece,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The completion counter, or 0.
    pub cmpl_cntr: usize,
    /// What follows when header and data may be changed.
    pub done: SendDone,
    /// What the program wishes.
    pub hint: Hint,
    /// Header and data may be changed when the call returns, however long they are.
    pub copied: bool,
}

/// A get.
#[derive(Clone, Copy, Debug)]
pub struct Get {
    /// The target.
    pub tgt: Task,
    /// Where the data is, at the target.
    pub addr: u64,
    /// Where it goes.
    pub buffer: usize,
    /// Its length in bytes.
    pub len: u64,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The origin counter, or 0.
    pub org_cntr: usize,
    /// The completion handler.
    pub handler: compl_hndlr_p,
    /// Its parameter.
    pub parameter: usize,
    /// What the program wishes.
    pub hint: Hint,
}

/// A read-modify-write.
#[derive(Clone, Copy, Debug)]
pub struct Rmw {
    /// The target.
    pub tgt: Task,
    /// The operation, checked.
    pub op: u16,
    /// 64 bits, not 32.
    pub wide: bool,
    /// The variable, at the target.
    pub var: u64,
    /// The value, or what to compare with.
    pub value: u64,
    /// What to swap in.
    pub swap: u64,
    /// Where the previous value goes, or 0.
    pub previous: usize,
    /// What follows when it is there.
    pub done: SendDone,
}

/// Starts a put.
///
/// # Safety
/// The addresses must be as LAPI_Put wants them, at both tasks.
#[inline]
pub unsafe fn put(held: &mut Held<'_>, put: &Put) -> Result<()> {
    let core = held.core();
    if put.tgt == core.options.me {
        // SAFETY: the caller's promise.
        return unsafe { local::put(held, put) };
    }
    reachable(held, put.tgt)?;
    let cookie = completion(held, put.tgt, put.cmpl_cntr);
    let core = held.core();
    let id = core.outbox.number(put.tgt);
    let len = put.data.len;
    // Nothing to put, nowhere to put it: see `bulk::announce` for what such an address would mean.
    let addr = if len == 0 { 0 } else { put.addr };
    let mut head = Head::Put { id, addr, tgt_cntr: put.tgt_cntr, cookie, total: 0 };
    if len <= core.outbox.max_body() {
        // SAFETY: the data is the caller's promise.
        let posted = unsafe { post(held, put.tgt, &head, Body::data(put.data), false, put.done) };
        return started(held, put.tgt, cookie, posted, &put.done);
    }
    let copied = len <= core.options.copy_limit;
    if !copied && bulk::choose(core, put.tgt, len, put.hint) == Way::Attach {
        bulk::begin(held, Transfer::push(put, id, cookie));
        return Ok(());
    }
    if let Head::Put { total, .. } = &mut head {
        *total = len as u64;
    }
    // SAFETY: the data is the caller's promise.
    let posted = unsafe {
        stream(
            held,
            put.tgt,
            Some((&head, Piece::EMPTY)),
            Continuation::Message(id),
            put.data,
            copied,
            put.done,
        )
    };
    started(held, put.tgt, cookie, posted, &put.done)
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
        return unsafe { local::active_message(held, message) };
    }
    reachable(held, tgt)?;
    let (header, data) = (message.header, message.data);
    let short = header.len + data.len <= held.core().outbox.packet_size();
    let copied = message.copied || header.len + data.len <= held.core().options.copy_limit;
    let attach = !short && !copied && bulk::choose(held.core(), tgt, data.len, message.hint) == Way::Attach;
    let cookie = if attach { 0 } else { completion(held, tgt, message.cmpl_cntr) };
    let core = held.core();
    let id = core.outbox.number(tgt);
    let (uhdr_len, handler, tgt_cntr) = (header.len as u16, message.handler, message.tgt_cntr);
    if short {
        let head = Head::Am { id, uhdr_len, handler, tgt_cntr, cookie, total: 0 };
        // SAFETY: header and data are the caller's promise.
        let posted = unsafe { post(held, tgt, &head, Body { header, data }, message.copied, message.done) };
        return started(held, tgt, cookie, posted, &message.done);
    }
    let total = data.len as u64;
    if attach {
        let exposed = Op::Exposed {
            done: message.done,
            cmpl_cntr: message.cmpl_cntr,
            id,
            data: data.ptr as usize,
            len: data.len,
            pulled: false,
            concluded: false,
        };
        let cookie = core.ops.insert(tgt, exposed, false);
        let head = Head::AmAttach { id, uhdr_len, handler, addr: data.ptr as u64, total, cookie, tgt_cntr };
        // SAFETY: the header is the caller's promise; parked, it is copied.
        let posted = unsafe {
            post(held, tgt, &head, Body { header, data: Piece::EMPTY }, true, SendDone::nothing(tgt))
        };
        if posted == Posted::Gone {
            held.core().ops.remove(tgt, cookie);
            return Err(gone(tgt));
        }
        return Ok(());
    }
    let head = Head::Am { id, uhdr_len, handler, tgt_cntr, cookie, total };
    // SAFETY: header and data are the caller's promise.
    let posted = unsafe {
        stream(held, tgt, Some((&head, header)), Continuation::Message(id), data, copied, message.done)
    };
    started(held, tgt, cookie, posted, &message.done)
}

/// Starts a get.
///
/// # Safety
/// The addresses must be as LAPI_Get wants them, at both tasks.
pub unsafe fn get(held: &mut Held<'_>, get: &Get) -> Result<()> {
    let core = held.core();
    if get.tgt == core.options.me {
        // SAFETY: the caller's promise.
        unsafe { local::get(held, get) };
        return Ok(());
    }
    reachable(held, get.tgt)?;
    let core = held.core();
    let op = Op::Get {
        buffer: get.buffer,
        len: get.len,
        arrived: 0,
        org_cntr: get.org_cntr,
        handler: get.handler.map_or(0, |handler| handler as usize),
        info: get.parameter,
    };
    let cookie = core.ops.insert(get.tgt, op, true);
    if bulk::choose_get(core, get.tgt, get.len as usize, get.hint) == Way::Attach {
        bulk::begin(held, Transfer::fetch(get, cookie));
        return Ok(());
    }
    request(
        held,
        get.tgt,
        &Head::Get { addr: get.addr, len: get.len, cookie, tgt_cntr: get.tgt_cntr },
        cookie,
    )
}

/// Asks the target for something that operation `cookie` waits for.
pub fn request(held: &mut Held<'_>, tgt: Task, head: &Head, cookie: u64) -> Result<()> {
    if answer(held.core(), tgt, head) == Posted::Gone {
        held.core().ops.remove(tgt, cookie);
        return Err(gone(tgt));
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
        if let Some(value) = unsafe { local::read_modify_write(op, rmw.var, rmw.value, rmw.swap) } {
            // SAFETY: the caller's promise.
            unsafe { store_previous(rmw.previous, rmw.wide, value) };
        }
        finish(held, &rmw.done);
        return Ok(());
    }
    reachable(held, rmw.tgt)?;
    let core = held.core();
    let pending = Op::Rmw { previous: rmw.previous, wide: rmw.wide, done: rmw.done };
    let cookie = core.ops.insert(rmw.tgt, pending, true);
    let head = Head::Rmw { op, var: rmw.var, value: rmw.value, swap: rmw.swap, cookie };
    request(held, rmw.tgt, &head, cookie)
}

/// The target's side of a get.
pub fn serve_get(held: &mut Held<'_>, src: Task, addr: u64, len: u64, cookie: u64, tgt_cntr: u64) {
    let data = Piece { ptr: addr as *const u8, len: len as usize };
    // The target's counter says that the target's data may be changed: what the origin counter says of a send.
    let done = SendDone { org_cntr: tgt_cntr as usize, bytes: len, ..SendDone::nothing(src) };
    if data.len <= held.core().outbox.max_body() {
        let head = Head::Reply { cookie, offset: 0 };
        // SAFETY: the origin's program says that it may read there.
        let posted = unsafe { post(held, src, &head, Body::data(data), false, done) };
        if posted == Posted::Free {
            finish(held, &done);
        }
        return;
    }
    // SAFETY: as above, until the target's counter says that it is done.
    unsafe { stream(held, src, None, Continuation::Reply(cookie), data, false, done) };
}

/// Data that was asked for.
pub fn take_reply(held: &mut Held<'_>, src: Task, cookie: u64, offset: u64, body: Piece) {
    let core = held.core();
    let Some(Op::Get { buffer, len, arrived, .. }) = core.ops.get_mut(src, cookie) else {
        return dispatcher::broken(held, src);
    };
    if offset.checked_add(body.len as u64).is_none_or(|end| end > *len) {
        return dispatcher::broken(held, src);
    }
    let to = *buffer + offset as usize;
    *arrived += body.len as u64;
    let complete = *arrived >= *len;
    // SAFETY: inside of the buffer that the program gave for the answer, checked above.
    unsafe { arrival::take(core, body, to) };
    if complete {
        got(held, src, cookie);
    }
}

/// All data of a get is there.
pub fn got(held: &mut Held<'_>, src: Task, cookie: u64) {
    let core = held.core();
    let Some(Op::Get { len, org_cntr, handler, info, .. }) = core.ops.remove(src, cookie) else { return };
    core.stats.peers.bytes_received += len;
    core.unreported |= crate::abi::LAPI_RECV_COMPLETE;
    // SAFETY: the program's counter.
    unsafe { counter::bump(org_cntr) };
    get_handler(held, handler, info);
}

/// Queues the completion handler of a get.
pub fn get_handler(held: &mut Held<'_>, handler: usize, parameter: usize) {
    // SAFETY: 0, or the address of the program's completion handler, which was a function pointer when it came in.
    let handler = unsafe { std::mem::transmute::<usize, compl_hndlr_p>(handler) };
    if let Some(handler) = handler {
        held.context().completions.push(Completion { handler, parameter, then: None });
    }
}

/// The answer of a read-modify-write.
#[inline]
pub fn take_rmw_reply(held: &mut Held<'_>, src: Task, cookie: u64, value: u64) {
    let Some(Op::Rmw { previous, wide, done }) = held.core().ops.remove(src, cookie) else {
        return dispatcher::broken(held, src);
    };
    // SAFETY: where the program wants the previous value.
    unsafe { store_previous(previous, wide, value) };
    finish(held, &done);
}

/// A message is complete at its target.
#[inline]
pub fn take_done(held: &mut Held<'_>, src: Task, cookie: u64) {
    let ops = &mut held.core().ops;
    let cmpl_cntr = match ops.get_mut(src, cookie) {
        Some(Op::Completion { cmpl_cntr }) => *cmpl_cntr,
        Some(Op::Exposed { cmpl_cntr, pulled: true, .. }) => *cmpl_cntr,
        Some(Op::Exposed { concluded, .. }) => {
            *concluded = true;
            return;
        }
        _ => return dispatcher::broken(held, src),
    };
    ops.remove(src, cookie);
    // SAFETY: the program's counter.
    unsafe { counter::bump(cmpl_cntr) };
}

/// The target has fetched exposed data, or could not.
pub fn take_pulled(held: &mut Held<'_>, src: Task, cookie: u64, refused: u64) {
    let Some(Op::Exposed { done, id, data, len, pulled, concluded, .. }) =
        held.core().ops.get_mut(src, cookie)
    else {
        return dispatcher::broken(held, src);
    };
    if std::mem::replace(pulled, true) {
        return dispatcher::broken(held, src);
    }
    let (done, id, concluded) = (*done, *id, *concluded);
    let data = Piece { ptr: *data as *const u8, len: *len };
    if refused == 0 {
        finish(held, &done);
        if concluded {
            take_done(held, src, cookie);
        }
        return;
    }
    // SAFETY: the program leaves its data alone until `done` is reported.
    unsafe { stream(held, src, None, Continuation::Message(id), data, false, done) };
}

/// A send operation is done with the program's memory: counter, then send completion handler.
#[inline]
pub fn finish(held: &mut Held<'_>, done: &SendDone) {
    let core = held.core();
    if done.user {
        core.unreported |= LAPI_SEND_COMPLETE;
    }
    // A thread may sleep in a call that waits for the counter.
    core.news |= core.sleepers.waiting != 0;
    if done.error == 0 {
        let path = if done.peer == core.options.me { &mut core.stats.local } else { &mut core.stats.peers };
        path.bytes_sent += done.bytes;
        if done.posted != 0 {
            core.tuner.note_stream(done.bytes, done.posted, ticks());
        }
        // SAFETY: the program's counter.
        unsafe { counter::bump(done.org_cntr) };
    }
    if done.handler != 0 {
        call_send_handler(held, done);
    }
}

#[cold]
fn call_send_handler(held: &mut Held<'_>, done: &SendDone) {
    // SAFETY: the address of the program's send completion handler, which was a function pointer when it came in.
    let handler = unsafe { std::mem::transmute::<usize, scompl_hndlr_t>(done.handler) };
    let mut info = lapi_sh_info_t { src: done.peer, reason: done.error as u32, reserve: [0; 6] };
    // SAFETY: the program's own function, with pointers that live during the call; no reference into the core is out.
    unsafe { handler(held.context().handle_ptr(), done.info as *mut c_void, &mut info) };
}

/// The cookie of an operation that the program wants to see completed, or 0.
#[inline]
fn completion(held: &mut Held<'_>, tgt: Task, cmpl_cntr: usize) -> u64 {
    if cmpl_cntr == 0 { 0 } else { held.core().ops.insert(tgt, Op::Completion { cmpl_cntr }, false) }
}

/// # Safety
/// As for [`crate::proto::outbox::Outbox::post`].
#[inline]
unsafe fn post(
    held: &mut Held<'_>,
    tgt: Task,
    head: &Head,
    body: Body,
    copied: bool,
    done: SendDone,
) -> Posted {
    let core = held.core();
    let limit = if copied { usize::MAX } else { core.options.copy_limit };
    let (outbox, mut wire) = core.out();
    // SAFETY: the caller's promise.
    unsafe { outbox.post(&mut wire, tgt, head, body, limit, done) }
}

/// Posts a message of several packets, and sends as much of it as there is room for.
///
/// # Safety
/// As for [`crate::proto::outbox::Outbox::post_stream`].
pub unsafe fn stream(
    held: &mut Held<'_>,
    tgt: Task,
    first: Option<(&Head, Piece)>,
    next: Continuation,
    data: Piece,
    copied: bool,
    done: SendDone,
) -> Posted {
    let core = held.core();
    let done = SendDone { posted: ticks(), ..done };
    let mut finished = std::mem::take(&mut core.finished);
    let (outbox, mut wire) = core.out();
    // SAFETY: the caller's promise.
    let posted = unsafe { outbox.post_stream(tgt, first, next, data, copied, done) };
    outbox.pump(&mut wire, &mut finished);
    core.finished = finished;
    posted
}

/// What a call answers for a message that was posted.
#[inline]
fn started(held: &mut Held<'_>, tgt: Task, cookie: u64, posted: Posted, done: &SendDone) -> Result<()> {
    match posted {
        Posted::Free => finish(held, done),
        Posted::Queued => {}
        Posted::Gone => {
            held.core().ops.remove(tgt, cookie);
            return Err(gone(tgt));
        }
    }
    Ok(())
}

/// The target still takes packets, as far as is known.
#[inline]
fn reachable(held: &mut Held<'_>, tgt: Task) -> Result<()> {
    let core = held.core();
    if core.transport.open(tgt) && (core.lost.is_empty() || !core.lost.contains(&tgt)) {
        return Ok(());
    }
    Err(gone(tgt))
}

#[cold]
pub(super) fn gone(tgt: Task) -> Error {
    Error::new(
        LAPI_ERR_NO_CONNECTIVITY,
        format!("task {tgt} has ended LAPI or died: nothing can be sent to it"),
    )
}

/// # Safety
/// `previous` must be 0 or writable for 8 bytes (`wide`) or 4.
#[inline]
unsafe fn store_previous(previous: usize, wide: bool, value: u64) {
    if previous != 0 {
        // SAFETY: the caller's promise; the program may have placed it at any address.
        unsafe {
            match wide {
                true => (previous as *mut u64).write_unaligned(value),
                false => (previous as *mut u32).write_unaligned(value as u32),
            }
        }
    }
}
