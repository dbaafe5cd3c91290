//! LAPI_Getcntr, LAPI_Setcntr, LAPI_Waitcntr, LAPI_Probe, LAPI_Msgpoll.

use crate::abi::{LAPI_DISP_CNTR, LAPI_ERR_HNDL_INVALID, LAPI_POLLING_NET, lapi_msg_state_t};
use crate::engine::context::waiters::WaitTarget;
use crate::engine::context::{Context, Held, counter};
use crate::engine::progress::wait::{counter_changed, make_progress, poll_once, wait_until};
use crate::error::{Error, Result};
use std::sync::atomic::Ordering;

/// Reads a counter (man page LAPI_Getcntr). A program that reads it in a loop makes progress by that.
///
/// # Safety
/// `cntr` must be the address of a counter.
pub unsafe fn getcntr(held: &mut Held<'_>, cntr: usize) -> i32 {
    poll_once(held);
    // SAFETY: the caller's promise.
    unsafe { counter::get(cntr) }
}

/// Sets a counter (man page LAPI_Setcntr). It does not wait for the lock: a handler of another thread may wait for this
/// counter. When the lock is free, the call makes progress.
///
/// # Safety
/// `cntr` must be the address of a counter.
pub unsafe fn setcntr(context: &Context, cntr: usize, value: i32) {
    // SAFETY: the caller's promise.
    unsafe { counter::set(cntr, value) };
    if context.watching.load(Ordering::Relaxed) {
        // It has no list of tasks from now on.
        if let Ok(mut held) = context.enter() {
            held.core().watched.forget(cntr);
        }
    }
    counter_changed(context);
    if let Some(mut held) = context.try_enter() {
        make_progress(&mut held);
    }
}

/// Waits until a counter has reached `value`, and subtracts that. Returns what is left (man page LAPI_Waitcntr).
///
/// # Safety
/// `cntr` must be the address of a counter, until this returns.
pub unsafe fn waitcntr(held: &mut Held<'_>, cntr: usize, value: i32) -> Result<i32> {
    let awaited = WaitTarget { call: "LAPI_Waitcntr", counter: Some((cntr, value)) };
    // SAFETY: the caller's promise.
    if let Some(left) = unsafe { counter::take(cntr, value) } {
        make_progress(held);
        return Ok(left);
    }
    // SAFETY: the caller's promise.
    wait_until(held, awaited, |_| unsafe { counter::take(cntr, value) })
}

/// One round of the dispatcher (man page LAPI_Probe).
pub fn probe(held: &mut Held<'_>) {
    poll_once(held);
}

/// Rounds of the dispatcher until a message was sent or received, at most `count` of them (man page LAPI_Msgpoll).
/// What was completed since the last call that reported it counts as well, so that nothing is missed that was served by
/// another call or by the notifier.
pub fn msgpoll(held: &mut Held<'_>, count: u32) -> Result<lapi_msg_state_t> {
    let core = held.core();
    let elsewhere = if core.waiters.waiting + core.waiters.polling != 0 { LAPI_POLLING_NET } else { 0 };
    core.waiters.polling += 1;
    let outcome = poll_for_completion(held, count);
    held.core().waiters.polling -= 1;
    outcome.map(|state| state | elsewhere)
}

fn poll_for_completion(held: &mut Held<'_>, count: u32) -> Result<lapi_msg_state_t> {
    // In a handler that the dispatcher runs, no round can be made.
    let count = if held.in_handler() { 0 } else { count };
    let mut rounds = 0;
    loop {
        let completed = std::mem::take(&mut held.core().unreported);
        if completed != 0 {
            return Ok(completed);
        }
        if rounds >= count {
            return Ok(LAPI_DISP_CNTR);
        }
        rounds += 1;
        poll_once(held);
        held.yield_lock();
        if held.core().closing {
            return Err(Error::new(LAPI_ERR_HNDL_INVALID, "the handle was ended while this call polled"));
        }
    }
}
