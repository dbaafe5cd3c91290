//! Replies: what a target does for the gets of others, and what follows here when the reply to an
//! own operation arrives.

use crate::abi::{LAPI_ERR_NO_CONNECTIVITY, LAPI_RECV_COMPLETE, compl_hndlr_p};
use crate::engine::context::Held;
use crate::engine::context::completion_queue::Completion;
use crate::engine::transfer::{beyond, deliver, impossible, registration, send};
use crate::memory::bytes::Piece;
use crate::memory::word;
use crate::proto::content::Content;
use crate::proto::ops::Op;
use crate::proto::outbox::{Body, Continuation, SendDone, Sent, Streaming};
use crate::transport::Task;
use crate::wire::packet::Head;

/// The target's side of a get.
pub fn serve_get(held: &mut Held<'_>, src: Task, data: &Content, cookie: u64, tgt_cntr: u64) {
    let len = data.len() as u64;
    // The target's counter shows that the target's data may be changed, as the origin counter
    // does for a send.
    let done = SendDone { org_cntr: beyond::counter(tgt_cntr), bytes: len, ..SendDone::nothing(src) };
    serve(held, data, cookie, done);
    beyond::report_counter(held, src, tgt_cntr);
}

/// Sends data that operation `cookie` of a peer waits for: all of it, or what no access brings.
pub fn serve(held: &mut Held<'_>, data: &Content, cookie: u64, done: SendDone) {
    let src = done.peer;
    if data.len() <= held.core().outbox.max_body_to(src) {
        let head = Head::Reply { cookie, offset: 0 };
        // SAFETY: the origin's program says that it may read there.
        let sent = unsafe { send::send(held, src, &head, Body::data(data), false, done) };
        match sent {
            Sent::Free => send::finish(held, &done),
            Sent::NoMemory => held.core().end_without_memory(src),
            Sent::Queued | Sent::Gone => {}
        }
        return;
    }
    // SAFETY: as above, until the target's counter says that it is done.
    let sent = unsafe {
        send::stream(held, src, None, Continuation::Reply(cookie), data, Streaming::default(), done)
    };
    if sent == Sent::NoMemory {
        held.core().end_without_memory(src);
    }
}

/// Data that was asked for.
pub fn take_reply(held: &mut Held<'_>, src: Task, cookie: u64, offset: u64, body: Piece) {
    let core = held.core();
    let Some(Op::Get { sink, len, arrived, registered, .. }) = core.ops.get_mut(src, cookie) else {
        return send::broken(held, src);
    };
    if offset.checked_add(body.len as u64).is_none_or(|end| end > *len) {
        return send::broken(held, src);
    }
    if let Some(reordered) = registered.as_mut().and_then(|registered| registered.reordered()) {
        *sink = reordered;
    }
    let sink = sink.clone();
    *arrived += body.len as u64;
    let complete = *arrived >= *len;
    // SAFETY: inside of the memory that the program gave for the reply, checked above.
    unsafe { deliver::take(held, &sink, offset, body) };
    if complete {
        got(held, src, cookie);
    }
}

/// All data of a get has arrived.
pub fn got(held: &mut Held<'_>, src: Task, cookie: u64) {
    let core = held.core();
    let Some(Op::Get { len, org_cntr, handler, info, registered, .. }) = core.ops.remove(src, cookie) else {
        return;
    };
    registration::withdraw(core, src, registered);
    core.path_to(src).bytes_received += len;
    core.note_completed(LAPI_RECV_COMPLETE);
    // SAFETY: the program's counter.
    unsafe { core.raise(org_cntr, src) };
    get_handler(held, handler, info);
}

/// Queues the completion handler of a get; runs it where no thread would.
pub fn get_handler(held: &mut Held<'_>, handler: usize, parameter: usize) {
    // SAFETY: 0, or the address of the program's completion handler, which was a function pointer
    // when it came in.
    let handler = unsafe { std::mem::transmute::<usize, compl_hndlr_p>(handler) };
    let Some(handler) = handler else { return };
    let completions = &held.context().completions;
    if completions.has_threads() {
        completions.push(Completion { handler, parameter, then: None });
    } else {
        deliver::run_completion(held, handler, parameter);
    }
}

/// The reply of a read-modify-write.
#[inline]
pub fn take_rmw_reply(held: &mut Held<'_>, src: Task, cookie: u64, value: u64) {
    let Some(Op::Rmw { previous, wide, done }) = held.core().ops.remove(src, cookie) else {
        return send::broken(held, src);
    };
    // SAFETY: where the program wants the previous value.
    unsafe { word::store(previous, wide, value) };
    send::finish(held, &done);
}

/// A message is complete at its target.
#[inline]
pub fn take_done(held: &mut Held<'_>, src: Task, cookie: u64) {
    let core = held.core();
    let ops = &mut core.ops;
    let cmpl_cntr = match ops.get_mut(src, cookie) {
        Some(Op::Completion { cmpl_cntr }) => *cmpl_cntr,
        Some(Op::Rendezvous { cmpl_cntr, fetched: true, .. }) => *cmpl_cntr,
        Some(Op::Rendezvous { concluded, .. }) => {
            *concluded = true;
            return;
        }
        _ => return send::broken(held, src),
    };
    ops.remove(src, cookie);
    // SAFETY: the program's counter.
    unsafe { core.raise(cmpl_cntr, src) };
}

/// The target has fetched exposed data, or could not; or it cannot have the memory of a get.
pub fn fetched_by_target(held: &mut Held<'_>, src: Task, cookie: u64, refused: u64) {
    let core = held.core();
    if refused != 0 && matches!(core.ops.get_mut(src, cookie), Some(Op::Get { .. })) {
        return impossible::got_nothing(held, src, cookie);
    }
    let Some(Op::Rendezvous { done, id, data, registered, fetched, concluded, .. }) =
        core.ops.get_mut(src, cookie)
    else {
        return send::broken(held, src);
    };
    if std::mem::replace(fetched, true) {
        return send::broken(held, src);
    }
    let (done, id, concluded) = (*done, *id, *concluded);
    let contiguous = Content::Piece(Piece { ptr: *data as *const u8, len: done.bytes as usize });
    let registered = registered.take();
    let data = registered.as_ref().and_then(|registered| registered.remaining(refused));
    registration::withdraw(core, src, registered);
    if refused == 0 {
        send::finish(held, &done);
        // The program may have given the target up in its handler, and the operation with it.
        if concluded && held.core().ops.get_mut(src, cookie).is_some() {
            take_done(held, src, cookie);
        }
        return;
    }
    // SAFETY: the program leaves its data alone until `done` is reported.
    let sent = unsafe {
        let (data, atom) = data.unwrap_or((contiguous, 0));
        let how = Streaming { copied: false, atom };
        send::stream(held, src, None, Continuation::Message(id), &data, how, done)
    };
    match sent {
        Sent::NoMemory => held.core().end_without_memory(src),
        // The target has left after it asked. Its end does not report an operation that it
        // has replied to.
        Sent::Gone => held.core().finish_later([SendDone { error: LAPI_ERR_NO_CONNECTIVITY, ..done }]),
        Sent::Free | Sent::Queued => {}
    }
}
