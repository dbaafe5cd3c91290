//! LAPI_Getcntr, LAPI_Setcntr, LAPI_Waitcntr, LAPI_Probe, LAPI_Msgpoll.

use crate::abi::lapi_msg_state_t;
use crate::engine::context::unhindered::ShortCall;
use crate::engine::context::{Context, Held};
use crate::engine::progress::{counters, message_poll, poll, wait};
use crate::error::Result;
use std::time::Instant;

/// Reads a counter (man page LAPI_Getcntr). A program that reads it in a loop makes
/// progress by that.
///
/// # Safety
/// `cntr` must be the address of a counter.
pub unsafe fn getcntr(held: &mut Held<'_>, cntr: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { counters::read(held, cntr) }
}

/// [`getcntr`] by a short way. `None`: nothing was done, and [`getcntr`] is to do it.
///
/// # Safety
/// `cntr` must be the address of a counter.
#[inline(always)]
pub unsafe fn getcntr_shortly(call: ShortCall<'_>, cntr: usize) -> Option<i32> {
    // SAFETY: the caller's promise.
    unsafe { counters::read_shortly(call, cntr) }
}

/// Sets a counter (man page LAPI_Setcntr). It does not wait for the lock: a handler of another
/// thread may wait for this counter. When the lock is free, the call makes progress.
///
/// # Safety
/// `cntr` must be the address of a counter.
pub unsafe fn setcntr(context: &Context, cntr: usize, value: i32) {
    // SAFETY: the caller's promise.
    unsafe { counters::set(context, cntr, value) }
}

/// Waits until a counter has reached `value`, and subtracts that. Returns what is left (man page
/// LAPI_Waitcntr).
///
/// # Errors
/// As the man page of LAPI_Waitcntr says.
///
/// # Safety
/// `cntr` must be the address of a counter, until this returns.
pub unsafe fn waitcntr(held: &mut Held<'_>, cntr: usize, value: i32) -> Result<i32> {
    // SAFETY: the caller's promise.
    unsafe { counters::wait(held, cntr, value) }
}

/// [`waitcntr`] by a short way.
///
/// # Errors
/// As the man page of LAPI_Waitcntr says.
///
/// # Safety
/// `cntr` must be the address of a counter, until this returns.
#[inline(always)]
pub unsafe fn waitcntr_shortly(call: ShortCall<'_>, cntr: usize, value: i32) -> Result<i32> {
    // SAFETY: the caller's promise.
    unsafe { counters::wait_shortly(call, cntr, value) }
}

/// Waits until a condition of the program holds; `false` when the deadline, if there is one, has
/// passed before. Makes progress meanwhile, and at least once unless the condition holds already.
///
/// The condition is looked at after each packet, and when something has changed in the session. A
/// thread that changes it otherwise calls [`crate::api::session::Session::wake`] after that. It
/// must be short, since it runs with the session's lock held, and it must not call the session.
///
/// # Errors
/// `LAPI_ERR_HNDL_INVALID`: the session is being closed, or has ended by a failure.
/// `LAPI_ERR_UNKNOWN`: in a handler, which must not wait.
pub fn wait_until(
    held: &mut Held<'_>,
    deadline: Option<Instant>,
    condition: impl FnMut() -> bool,
) -> Result<bool> {
    wait::wait_for(held, deadline, condition)
}

/// One round of the dispatcher (man page LAPI_Probe).
pub fn probe(held: &mut Held<'_>) {
    poll::poll_once(held);
}

/// [`probe`] by a short way. `false`: nothing was done, and [`probe`] is to do it.
#[inline(always)]
pub fn probe_shortly(call: ShortCall<'_>) -> bool {
    poll::poll_shortly(call)
}

/// Rounds of the dispatcher until a message was sent or received, at most `count` of them (man page
/// LAPI_Msgpoll).
///
/// # Errors
/// As the man page of LAPI_Msgpoll says.
pub fn msgpoll(held: &mut Held<'_>, count: u32) -> Result<lapi_msg_state_t> {
    message_poll::poll(held, count)
}
