//! How anything leaves this task, and what follows when the memory that it was sent from is free.

use crate::abi::{
    INT_ERR, LAPI_ERR_NO_CONNECTIVITY, LAPI_ERR_TGT_PURGED, LAPI_ERR_UNKNOWN, LAPI_SEND_COMPLETE,
    lapi_sh_info_t, scompl_hndlr_t,
};
use crate::base::bytes::Piece;
use crate::base::clock::ticks;
use crate::engine::context::active_handler::Kind;
use crate::engine::context::{Core, Held};
use crate::engine::transfer::path;
use crate::error::{Error, Result};
use crate::proto::content::Content;
use crate::proto::ops::Op;
use crate::proto::outbox::{Body, Continuation, SendDone, Sent, Streaming};
use crate::transport::Task;
use crate::wire::packet::Head;
use libc::c_void;

/// Sends a packet that carries no data of the program. Only `Sent::Gone` says that it was not sent.
#[inline]
pub fn answer(core: &mut Core, peer: Task, head: &Head) -> Sent {
    let (outbox, mut wire) = core.out();
    // SAFETY: the packet has no body.
    unsafe { outbox.send(&mut wire, peer, head, Body::EMPTY, usize::MAX, SendDone::nothing(peer)) }
}

/// Reports a packet that no correct task sends.
#[cold]
pub fn broken(held: &mut Held<'_>, src: Task) {
    if held.core().lost.contains(&src) || held.core().purged.contains(&src) {
        // It was under way when the peer was given up, and what it belongs to has ended.
        return;
    }
    let error = Error::new(LAPI_ERR_UNKNOWN, format!("dropped a malformed packet from task {src}"));
    held.context().report(held, INT_ERR, src, &error);
}

/// An error when the target is known to take no packets.
#[inline]
pub(in crate::engine) fn reachable(held: &mut Held<'_>, tgt: Task) -> Result<()> {
    let core = held.core();
    if core.transport.is_open(tgt) && (core.lost.is_empty() || !core.lost.contains(&tgt)) {
        return Ok(());
    }
    Err(if core.purged.contains(&tgt) { purged(tgt) } else { gone(tgt) })
}

#[cold]
fn purged(tgt: Task) -> Error {
    Error::new(
        LAPI_ERR_TGT_PURGED,
        format!("task {tgt} was purged: no message can go to it until it is resumed"),
    )
}

#[cold]
pub(in crate::engine) fn gone(tgt: Task) -> Error {
    Error::new(
        LAPI_ERR_NO_CONNECTIVITY,
        format!("task {tgt} has ended LAPI, has died, or was given up: no message can go to it"),
    )
}

/// The cookie of an operation that the program wants to see completed, or 0.
#[inline]
pub(in crate::engine) fn completion(held: &mut Held<'_>, tgt: Task, cmpl_cntr: usize) -> u64 {
    if cmpl_cntr == 0 { 0 } else { held.core().ops.insert(tgt, Op::Completion { cmpl_cntr }, false) }
}

/// Sends a message of one packet, or lets it wait for room.
///
/// # Safety
/// As for [`crate::proto::outbox::Outbox::send`].
#[inline]
pub(in crate::engine) unsafe fn send(
    held: &mut Held<'_>,
    tgt: Task,
    head: &Head,
    body: Body<'_>,
    copied: bool,
    done: SendDone,
) -> Sent {
    let core = held.core();
    let limit = if copied { usize::MAX } else { core.options.copy_limit };
    let (outbox, mut wire) = core.out();
    // SAFETY: the caller's promise.
    unsafe { outbox.send(&mut wire, tgt, head, body, limit, done) }
}

/// Queues a message of several packets, and sends as much of it as there is room for.
///
/// # Safety
/// As for [`crate::proto::outbox::Outbox::send_stream`].
pub unsafe fn stream(
    held: &mut Held<'_>,
    tgt: Task,
    first: Option<(&Head, Piece)>,
    next: Continuation,
    data: &Content,
    how: Streaming,
    done: SendDone,
) -> Sent {
    let core = held.core();
    let done = SendDone { posted: ticks(), ..done };
    let mut finished = std::mem::take(&mut core.finished);
    let (outbox, mut wire) = core.out();
    // SAFETY: the caller's promise.
    let posted = unsafe { outbox.send_stream(tgt, first, next, data, how, done) };
    outbox.pump(&mut wire, &mut finished);
    core.finished = finished;
    posted
}

/// What a call returns for a message that was sent, and what follows when its memory is free already.
#[inline]
pub(in crate::engine) fn started(
    held: &mut Held<'_>,
    tgt: Task,
    cookie: u64,
    posted: Sent,
    done: &SendDone,
) -> Result<()> {
    match posted {
        Sent::Free => finish(held, done),
        Sent::Queued => {}
        Sent::Gone => {
            let core = held.core();
            core.ops.remove(tgt, cookie);
            core.outbox.take_back(tgt);
            return Err(gone(tgt));
        }
    }
    Ok(())
}

/// A send operation is done with the program's memory. Its counter goes up now. Its send completion handler is called later in
/// this round of the dispatcher, or in the next one (each call that sends ends with one): never in the middle of a call, so
/// that a handler that sends does not run inside of itself.
#[inline]
pub fn finish(held: &mut Held<'_>, done: &SendDone) {
    let core = held.core();
    account(core, done);
    if done.handler != 0 {
        queue_send_handler(core, done);
    }
}

/// The counters of a send operation that is done.
#[inline]
pub fn account(core: &mut Core, done: &SendDone) {
    if done.user {
        core.unreported |= LAPI_SEND_COMPLETE;
    }
    // A thread may sleep in a call that waits for the counter.
    core.news |= core.waiters.waiting != 0;
    if done.error == 0 {
        let path = if done.peer == core.options.me { &mut core.stats.local } else { &mut core.stats.peers };
        path.bytes_sent += done.bytes;
        if done.posted != 0 {
            path::note_stream(core, done);
        }
        // SAFETY: the program's counter.
        unsafe { core.raise(done.org_cntr, done.peer) };
    }
}

/// Only the handler is left to be called: the rest is accounted for.
#[cold]
fn queue_send_handler(core: &mut Core, done: &SendDone) {
    let SendDone { handler, info, error, peer, .. } = *done;
    core.finished.push(SendDone { handler, info, error, ..SendDone::nothing(peer) });
}

/// Calls the send completion handler, if there is one, from a round of the dispatcher.
pub fn call_send_handler(held: &mut Held<'_>, done: &SendDone) {
    if done.handler == 0 {
        return;
    }
    // SAFETY: the address of the program's send completion handler, which was a function pointer when it came in.
    let handler = unsafe { std::mem::transmute::<usize, scompl_hndlr_t>(done.handler) };
    let mut info = lapi_sh_info_t { src: done.peer, reason: done.error as u32, reserve: [0; 6] };
    let context = held.context();
    context.run_handler(Kind::SendCompletion, done.handler, || {
        // SAFETY: the program's own function, with pointers that live during the call; no reference into the core is out.
        unsafe { handler(context.handle_ptr(), done.info as *mut c_void, &mut info) }
    });
}
