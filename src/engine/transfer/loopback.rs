//! Operations of a task on itself: no packets, the same rules.

use crate::abi::LAPI_RECV_COMPLETE;
use crate::engine::context::Held;
use crate::engine::context::incoming::{ActiveMessage, Data, SelfMessage};
use crate::engine::context::request::{Get, Message, Put};
use crate::engine::transfer::send::finish;
use crate::engine::transfer::{beyond, receive, reply};
use crate::error::Result;
use crate::memory::bytes::{self, Piece};
use crate::proto::content::{self, Content};

/// A put to oneself.
///
/// # Safety
/// The places must be as LAPI_Put or LAPI_Putv wants them.
pub unsafe fn put(held: &mut Held<'_>, put: &Put) {
    let possible = put.places.can_be_here();
    // SAFETY: the caller's promise.
    unsafe {
        if possible {
            content::copy(&put.places.local_content(), &put.places.remote_sink(), 0);
        }
        raise(held, beyond::counter(put.tgt_cntr));
    }
    let core = held.core();
    core.stats.local.bytes_received += put.places.len() as u64;
    core.note_completed(LAPI_RECV_COMPLETE);
    finish(held, &put.done);
    // SAFETY: the program's counter, or 0.
    unsafe { raise(held, put.cmpl_cntr) };
    held.core().waiters.note_news();
    if possible {
        beyond::report_counter(held, put.tgt, put.tgt_cntr);
    } else {
        beyond::report(held, put.tgt);
    }
}

/// Raises a counter for something that this task has done to itself.
///
/// # Safety
/// `cntr` must be 0 or the address of a counter of the program.
unsafe fn raise(held: &mut Held<'_>, cntr: usize) {
    let core = held.core();
    let me = core.options.me;
    // SAFETY: the caller's promise.
    unsafe { core.raise(cntr, me) };
}

/// A get from oneself.
///
/// # Safety
/// The places must be as LAPI_Get or LAPI_Getv wants them.
pub unsafe fn get(held: &mut Held<'_>, get: &Get) {
    if !get.places.can_be_here() {
        return beyond::report(held, get.tgt);
    }
    // SAFETY: the caller's promise.
    unsafe {
        content::copy(&get.places.remote_content(), &get.places.local_sink(), 0);
        raise(held, beyond::counter(get.tgt_cntr));
        raise(held, get.org_cntr);
    }
    let (core, bytes) = (held.core(), get.places.len() as u64);
    core.stats.local.bytes_received += bytes;
    core.stats.local.bytes_sent += bytes;
    core.note_completed(LAPI_RECV_COMPLETE);
    core.waiters.note_news();
    reply::get_handler(held, get.handler.map_or(0, |handler| handler as usize), get.parameter);
    beyond::report_counter(held, get.tgt, get.tgt_cntr);
}

/// An active message to oneself. It is delivered before the call returns, or, when a handler has
/// sent it, after the handler has returned.
///
/// # Safety
/// The addresses must be as LAPI_Amsend wants them.
pub unsafe fn active_message(held: &mut Held<'_>, message: &Message) -> Result<()> {
    if !held.begin_round() {
        // SAFETY: the caller's promise.
        unsafe { queue(held, message) };
        return Ok(());
    }
    // SAFETY: the header must be 8-byte aligned for the handler.
    let aligned = unsafe { bytes::aligned(message.header) };
    deliver(held, message, Piece { ptr: aligned.as_ptr().cast(), len: message.header.len }, &message.data);
    held.end_round();
    held.core().waiters.note_news();
    finish(held, &message.done);
    Ok(())
}

/// # Safety
/// Header and data must be readable; the data until the message is done, when it is longer than
/// the copy limit.
unsafe fn queue(held: &mut Held<'_>, message: &Message) {
    let short = message.copied || message.header.len + message.data.len() <= held.core().options.copy_limit;
    // SAFETY: the caller's promise.
    let (header, copy) =
        unsafe { (bytes::aligned(message.header), short.then(|| bytes::aligned(message.data.all()))) };
    held.core().queue_to_self(SelfMessage { message: message.clone(), header, copy });
    if short {
        finish(held, &message.done);
    }
}

/// Delivers what handlers have sent to their own task.
pub fn deliver_queued(held: &mut Held<'_>) -> bool {
    let waiting = held.core().to_self();
    for _ in 0..waiting {
        if held.core().is_closing() {
            break;
        }
        let Some(queued) = held.core().next_to_self() else { break };
        let message = &queued.message;
        let header = Piece { ptr: queued.header.as_ptr().cast(), len: message.header.len };
        let data = match &queued.copy {
            Some(copy) => Content::Piece(Piece { ptr: copy.as_ptr().cast(), len: message.data.len() }),
            None => message.data.clone(),
        };
        deliver(held, message, header, &data);
        if queued.copy.is_none() {
            finish(held, &message.done);
        }
    }
    waiting != 0
}

fn deliver(held: &mut Held<'_>, message: &Message, header: Piece, data: &Content) {
    let short = header.len + data.len() <= held.core().outbox.packet_size();
    let arrived = ActiveMessage {
        src: message.tgt,
        id: None,
        handler: message.handler,
        shape: message.shape,
        atoms: message.atom != 0,
        tgt_cntr: message.tgt_cntr,
        cookie: message.cmpl_cntr as u64,
    };
    if !short {
        return receive::active_message(held, &arrived, header, Data::Local(data.clone(), message.atom));
    }
    match data.as_piece() {
        Some(piece) if (piece.ptr as usize).is_multiple_of(8) => {
            receive::active_message(held, &arrived, header, Data::Here(piece));
        }
        _ => {
            // The handler gets contiguous data, and may rely on its alignment.
            // SAFETY: the data is readable, by the promise of the call that sent it.
            let packed = unsafe { bytes::aligned(data.all()) };
            let piece = Piece { ptr: packed.as_ptr().cast(), len: data.len() };
            receive::active_message(held, &arrived, header, Data::Here(piece));
        }
    }
}
