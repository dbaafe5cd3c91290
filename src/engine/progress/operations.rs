//! The operations of the program: each is started, and ends with one round of the dispatcher.

use crate::engine::context::Held;
use crate::engine::context::request::{Get, Message, Put, Rmw};
use crate::engine::progress::{dispatcher, lost_peers, wait};
use crate::engine::transfer::{origin, send};
use crate::error::Result;
use crate::transport::Task;

/// A put.
///
/// # Safety
/// The addresses must be as LAPI_Put wants them, at both tasks.
#[inline]
pub unsafe fn put(held: &mut Held<'_>, put: &Put) -> Result<()> {
    // SAFETY: the caller's promise.
    let started = unsafe { origin::put(held, put) };
    conclude(held, put.tgt, started)
}

/// A get.
///
/// # Safety
/// The addresses must be as LAPI_Get wants them, at both tasks.
#[inline]
pub unsafe fn get(held: &mut Held<'_>, get: &Get) -> Result<()> {
    // SAFETY: the caller's promise.
    let started = unsafe { origin::get(held, get) };
    conclude(held, get.tgt, started)
}

/// An active message.
///
/// # Safety
/// The addresses must be as LAPI_Amsend wants them, at both tasks.
#[inline]
pub unsafe fn active_message(held: &mut Held<'_>, message: &Message) -> Result<()> {
    // SAFETY: the caller's promise.
    let started = unsafe { origin::active_message(held, message) };
    conclude(held, message.tgt, started)
}

/// A read-modify-write.
///
/// # Safety
/// The addresses must be as LAPI_Rmw wants them, at both tasks.
pub unsafe fn rmw(held: &mut Held<'_>, rmw: &Rmw) -> Result<()> {
    // SAFETY: the caller's promise.
    let started = unsafe { origin::rmw(held, rmw) };
    conclude(held, rmw.tgt, started)
}

/// For a call that prepares something before it sends to `tgt`.
///
/// # Errors
/// The target takes no packets; nothing is to be prepared.
pub fn check_reachable(held: &mut Held<'_>, tgt: Task) -> Result<()> {
    let reachable = send::reachable(held, tgt);
    if reachable.is_err() {
        refused(held);
    }
    reachable
}

/// The end of a call that sends to `tgt`.
#[inline]
fn conclude(held: &mut Held<'_>, tgt: Task, started: Result<()>) -> Result<()> {
    if started.is_ok() {
        finish(held, tgt);
    } else {
        refused(held);
    }
    started
}

/// The end of a call that was refused. A death that it has found is reported now: the program may
/// make no call that looks for it.
#[cold]
fn refused(held: &mut Held<'_>) {
    if held.core().membership.look_is_wanted() && !held.in_handler() {
        lost_peers::look_after_peers(held);
    }
}

/// The end of a call that sends to `tgt`: one round of the dispatcher, unless a handler made the
/// call; and when what waits for room there takes too many bytes, a pause in which the target
/// can make some.
#[inline(never)]
pub(super) fn finish(held: &mut Held<'_>, tgt: Task) {
    dispatcher::turn(held);
    let core = held.core();
    if core.outbox.waiting() && core.outbox.bytes(tgt) > core.options.lane_bytes {
        wait::throttle(held, tgt);
    }
    held.wake_waiters();
    held.has_sent();
}
