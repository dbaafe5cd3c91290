//! The operations of the program: each is started, and ends with one round of the dispatcher.

use crate::base::clock::{self, elapsed};
use crate::base::long_calls;
use crate::engine::context::completion_queue::runs_handler;
use crate::engine::context::request::{Get, Message, Put, Rmw};
use crate::engine::context::{Core, Held};
use crate::engine::progress::{dispatcher, lost_peers, poll, wait};
use crate::engine::transfer::{origin, send};
use crate::error::Result;
use crate::transport::Task;
use std::time::Duration;

/// How long a call lets a task part before it sends something more to it.
const MAKE_WAY: Duration = Duration::from_secs(1);
/// How often it looks whether the task has parted.
const NAP: Duration = Duration::from_micros(20);

/// A put.
///
/// # Safety
/// The addresses must be as LAPI_Put wants them, at both tasks.
#[inline]
pub unsafe fn put(held: &mut Held<'_>, put: &Put) -> Result<()> {
    make_way(held, put.tgt);
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
    make_way(held, get.tgt);
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
    make_way(held, message.tgt);
    // SAFETY: the caller's promise.
    let started = unsafe { origin::active_message(held, message) };
    conclude(held, message.tgt, started)
}

/// A read-modify-write.
///
/// # Safety
/// The addresses must be as LAPI_Rmw wants them, at both tasks.
pub unsafe fn rmw(held: &mut Held<'_>, rmw: &Rmw) -> Result<()> {
    make_way(held, rmw.tgt);
    // SAFETY: the caller's promise.
    let started = unsafe { origin::rmw(held, rmw) };
    conclude(held, rmw.tgt, started)
}

/// The target wants to part from this task, which it can only when nothing is under way to it: a
/// call of the program waits for that, for [`MAKE_WAY`] at most, once for each time that the target
/// asks. What it sends then waits for the target's return. Calls of handlers do not wait.
#[inline]
fn make_way(held: &mut Held<'_>, tgt: Task) {
    if held.core().has_deferred() && held.core().partings.pauses_for(tgt) {
        let_part(held, tgt);
    }
}

#[cold]
fn let_part(held: &mut Held<'_>, tgt: Task) {
    if held.nested() || runs_handler() {
        return;
    }
    long_calls::begins();
    let begun = clock::now();
    let parts =
        |core: &Core| core.partings.is_wanted(tgt) && core.transport.is_open(tgt) && !core.is_closing();
    while parts(held.core()) && elapsed(begun) < MAKE_WAY {
        if !dispatcher::turn(held) {
            held.unlocked(|| clock::sleep(NAP));
        }
    }
    held.core().partings.has_paused(tgt);
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

/// The end of a short call that has sent to `tgt`.
pub(super) fn look_around(held: &mut Held<'_>, tgt: Task) {
    if !poll::take_what_has_come(held) {
        finish(held, tgt);
    }
}

/// The end of a call that sends to `tgt`: one round of the dispatcher, unless a handler made the
/// call; and when what waits for room there takes too many bytes, a pause in which the target
/// can make some.
#[inline(never)]
fn finish(held: &mut Held<'_>, tgt: Task) {
    dispatcher::turn(held);
    let core = held.core();
    if core.outbox.waiting() && core.outbox.bytes(tgt) > core.options.lane_bytes {
        wait::throttle(held, tgt);
    }
    held.wake_waiters();
    held.has_sent();
}
