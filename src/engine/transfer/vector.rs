//! Puts and gets whose places are vectors, at both tasks.
//!
//! The origin knows both vectors. The target's travels as a description, before the data or with it (see
//! [`crate::engine::transfer::vector_wire`]); few large pieces go by copies across address spaces instead.

use crate::engine::context::Held;
use crate::engine::context::direct_copy::DirectCopy;
use crate::engine::context::request::{GetDone, Vectored};
use crate::engine::context::tuner::Way;
use crate::engine::transfer::vector_wire::{self, Marks};
use crate::engine::transfer::{direct, loopback, path, reply, send};
use crate::error::Result;
use crate::proto::content::{self, Content, Sink};
use crate::proto::ops::Op;
use crate::proto::outbox::{SendDone, Sent};

/// Starts a put between two vectors.
///
/// # Safety
/// The vectors must be as LAPI_Putv wants them, at both tasks.
pub unsafe fn put(held: &mut Held<'_>, put: &Vectored, cmpl_cntr: usize, done: SendDone) -> Result<()> {
    let done = SendDone { piece: put.piece() as u32 | 1, ..done };
    if put.tgt == held.core().options.me {
        // SAFETY: the caller's promise.
        unsafe {
            content::copy(&Content::Scattered(put.origin.clone()), &Sink::Scattered(put.target.clone(), 0), 0)
        };
        loopback::put_done(held, put.len() as u64, put.tgt_cntr, cmpl_cntr, &done);
        return Ok(());
    }
    send::reachable(held, put.tgt)?;
    let cookie = send::completion(held, put.tgt, cmpl_cntr);
    let id = held.core().outbox.number(put.tgt);
    if path::choose_vector(held.core(), put.tgt, put.len(), put.piece(), put.hint) == Way::Attach {
        let transfer = DirectCopy::push_vector(put, id, cookie, done);
        direct::begin(held, transfer);
        return Ok(());
    }
    let content = Content::Scattered(put.origin.clone());
    let marks = Marks { id, tgt_cntr: put.tgt_cntr, cookie };
    // SAFETY: the caller's promise.
    let posted = unsafe { vector_wire::send_put(held, put.tgt, marks, &put.description, &content, done) };
    send::started(held, put.tgt, cookie, posted, &done)
}

/// Starts a get between two vectors.
///
/// # Safety
/// The vectors must be as LAPI_Getv wants them, at both tasks.
pub unsafe fn get(held: &mut Held<'_>, get: &Vectored, done: GetDone) -> Result<()> {
    let handler = done.handler.map_or(0, |handler| handler as usize);
    let len = get.len() as u64;
    if get.tgt == held.core().options.me {
        // SAFETY: the caller's promise.
        unsafe {
            content::copy(
                &Content::Scattered(get.target.clone()),
                &Sink::Scattered(get.origin.clone(), 0),
                0,
            );
            loopback::raise(held, get.tgt_cntr as usize);
            loopback::raise(held, done.org_cntr);
        }
        loopback::got(held, len);
        reply::get_handler(held, handler, done.parameter);
        return Ok(());
    }
    send::reachable(held, get.tgt)?;
    let sink = Sink::Scattered(get.origin.clone(), 0);
    let op = Op::Get { sink, len, arrived: 0, org_cntr: done.org_cntr, handler, info: done.parameter };
    let cookie = held.core().ops.insert(get.tgt, op, true);
    if len != 0 && path::choose_vector(held.core(), get.tgt, get.len(), get.piece(), get.hint) == Way::Attach
    {
        let transfer = DirectCopy::fetch_vector(get, cookie);
        direct::begin(held, transfer);
        return Ok(());
    }
    let sent = vector_wire::request(held, get.tgt, &get.description, len, get.tgt_cntr, cookie);
    if matches!(sent, Sent::Gone | Sent::NoMemory) {
        let core = held.core();
        core.ops.remove(get.tgt, cookie);
        core.outbox.take_back(get.tgt);
        return Err(send::not_sent(get.tgt, sent));
    }
    Ok(())
}
