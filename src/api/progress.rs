//! LAPI_Getcntr, LAPI_Setcntr, LAPI_Waitcntr, LAPI_Probe, LAPI_Msgpoll.

use crate::abi::lapi_msg_state_t;
use crate::engine::context::{Context, Held};
use crate::engine::progress::{counters, message_poll, wait};
use crate::error::Result;

/// Reads a counter (man page LAPI_Getcntr). A program that reads it in a loop makes
/// progress by that.
///
/// # Safety
/// `cntr` must be the address of a counter.
pub unsafe fn getcntr(held: &mut Held<'_>, cntr: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { counters::read(held, cntr) }
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

/// One round of the dispatcher (man page LAPI_Probe).
pub fn probe(held: &mut Held<'_>) {
    wait::poll_once(held);
}

/// Rounds of the dispatcher until a message was sent or received, at most `count` of them (man page
/// LAPI_Msgpoll).
///
/// # Errors
/// As the man page of LAPI_Msgpoll says.
pub fn msgpoll(held: &mut Held<'_>, count: u32) -> Result<lapi_msg_state_t> {
    message_poll::poll(held, count)
}
