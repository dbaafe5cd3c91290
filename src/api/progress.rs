//! LAPI_Getcntr, LAPI_Setcntr, LAPI_Waitcntr, LAPI_Probe, LAPI_Msgpoll.

use crate::abi::{LAPI_DISP_CNTR, LAPI_ERR_HNDL_INVALID, LAPI_POLLING_NET, lapi_msg_state_t};
use crate::engine::context::counter;
use crate::engine::context::waiters::WaitTarget;
use crate::engine::context::{Context, Held};
use crate::engine::progress::wait::{counter_changed, poll_once, wait_until};
use crate::error::{Error, Result};
use std::sync::atomic::Ordering;

/// Reads a counter (man page LAPI_Getcntr). A program that looks again and again makes progress by it.
///
/// # Safety
/// `cntr` must be the address of a counter.
pub unsafe fn getcntr(held: &mut Held<'_>, cntr: usize) -> i32 {
    poll_once(held);
    // SAFETY: the caller's promise.
    unsafe { counter::get(cntr) }
}

/// Sets a counter (man page LAPI_Setcntr), without the lock: handlers call it too.
///
/// # Safety
/// `cntr` must be the address of a counter.
pub unsafe fn setcntr(context: &Context, cntr: usize, value: i32) {
    // SAFETY: the caller's promise.
    unsafe { counter::set(cntr, value) };
    if context.watching.load(Ordering::Relaxed) {
        // It has no list of tasks any more.
        if let Ok(mut held) = context.enter() {
            held.core().watched.forget(cntr);
        }
    }
    counter_changed(context);
}

/// Waits until a counter has reached `value`, and takes that off. The answer is what is left (man page
/// LAPI_Waitcntr).
///
/// # Safety
/// `cntr` must be the address of a counter, until this returns.
pub unsafe fn waitcntr(held: &mut Held<'_>, cntr: usize, value: i32) -> Result<i32> {
    let awaited = WaitTarget { call: "LAPI_Waitcntr", counter: Some((cntr, value)) };
    // SAFETY: the caller's promise.
    let left = wait_until(held, awaited, |_| unsafe { counter::take(cntr, value) })?;
    held.core().unreported = 0;
    Ok(left)
}

/// One round of the dispatcher (man page LAPI_Probe).
pub fn probe(held: &mut Held<'_>) {
    poll_once(held);
}

/// Rounds of the dispatcher until a message was sent or received, at most `count` of them (man page LAPI_Msgpoll).
/// What was completed since the last call that reported it counts as well, so that nothing is missed that another
/// call, or the notifier, has seen to.
pub fn msgpoll(held: &mut Held<'_>, count: u32) -> Result<lapi_msg_state_t> {
    let core = held.core();
    let elsewhere = if core.waiters.waiting + core.waiters.polling != 0 { LAPI_POLLING_NET } else { 0 };
    core.waiters.polling += 1;
    let outcome = poll_for_completion(held, count);
    held.core().waiters.polling -= 1;
    outcome.map(|state| state | elsewhere)
}

fn poll_for_completion(held: &mut Held<'_>, count: u32) -> Result<lapi_msg_state_t> {
    // In a handler that the dispatcher runs nothing can be completed.
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
