//! LAPI_Msgpoll: polls until a message was sent or received.

use crate::abi::{LAPI_DISP_CNTR, LAPI_ERR_HNDL_INVALID, LAPI_POLLING_NET, lapi_msg_state_t};
use crate::engine::context::Held;
use crate::engine::progress::poll::poll_once;
use crate::error::{Error, Result};

/// Rounds of the dispatcher until a message was sent or received, at most `count` of them (man page
/// LAPI_Msgpoll). What was completed since the last call that reported it counts as well, so that
/// nothing is missed that was served by another call or by the thread of interrupt mode.
pub fn poll(held: &mut Held<'_>, count: u32) -> Result<lapi_msg_state_t> {
    let core = held.core();
    let elsewhere = if core.waiters.begin_poll() { LAPI_POLLING_NET } else { 0 };
    let outcome = poll_for_completion(held, count);
    held.core().waiters.polling -= 1;
    outcome.map(|state| state | elsewhere)
}

/// A global fence begins: what was complete before it is not reported after it. A thread that is in
/// this call reports what has completed meanwhile.
pub fn forget_completed(held: &mut Held<'_>) {
    let core = held.core();
    if core.waiters.polling == 0 {
        core.take_completed();
    }
}

fn poll_for_completion(held: &mut Held<'_>, count: u32) -> Result<lapi_msg_state_t> {
    // In a handler that the dispatcher runs, no round can be made.
    let count = if held.in_handler() { 0 } else { count };
    let mut rounds = 0;
    loop {
        let completed = held.core().take_completed();
        if completed != 0 {
            return Ok(completed);
        }
        if rounds >= count {
            return Ok(LAPI_DISP_CNTR);
        }
        rounds += 1;
        poll_once(held);
        held.yield_lock();
        if held.core().is_closing() {
            return Err(Error::new(LAPI_ERR_HNDL_INVALID, "the handle was ended while this call polled"));
        }
    }
}
