//! The operations of the program: each is started, and ends with one round of the dispatcher.

use crate::engine::context::Held;
use crate::engine::context::request::{Get, Message, Put, Rmw};
use crate::engine::progress::{dispatcher, wait};
use crate::engine::transfer::origin;
use crate::error::Result;
use crate::transport::Task;

/// A put.
///
/// # Safety
/// The addresses must be as LAPI_Put wants them, at both tasks.
#[inline]
pub unsafe fn put(held: &mut Held<'_>, put: &Put) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { origin::put(held, put) }?;
    finish(held, put.tgt);
    Ok(())
}

/// A get.
///
/// # Safety
/// The addresses must be as LAPI_Get wants them, at both tasks.
#[inline]
pub unsafe fn get(held: &mut Held<'_>, get: &Get) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { origin::get(held, get) }?;
    finish(held, get.tgt);
    Ok(())
}

/// An active message.
///
/// # Safety
/// The addresses must be as LAPI_Amsend wants them, at both tasks.
#[inline]
pub unsafe fn active_message(held: &mut Held<'_>, message: &Message) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { origin::active_message(held, message) }?;
    finish(held, message.tgt);
    Ok(())
}

/// A read-modify-write.
///
/// # Safety
/// The addresses must be as LAPI_Rmw wants them, at both tasks.
pub unsafe fn rmw(held: &mut Held<'_>, rmw: &Rmw) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { origin::rmw(held, rmw) }?;
    finish(held, rmw.tgt);
    Ok(())
}

/// The end of a call that sends to `tgt`: one round of the dispatcher, unless a handler made the call; and when what waits for
/// room there takes too many bytes, a pause in which the target can make some.
#[inline]
fn finish(held: &mut Held<'_>, tgt: Task) {
    dispatcher::turn(held);
    let core = held.core();
    if core.outbox.waiting() && core.outbox.bytes(tgt) > core.options.lane_bytes {
        wait::throttle(held, tgt);
    }
    held.wake_waiters();
}
