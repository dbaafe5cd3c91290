//! Addresses beyond the end of this task's memory, in a task of 32 bits, and the report of requests
//! for memory that it cannot have.

use crate::abi::{INT_ERR, LAPI_ERR_UNKNOWN};
use crate::engine::context::Held;
use crate::error::Error;
use crate::memory::bytes::fits_pointer;
use crate::transport::Task;

/// The counter of this task that a packet names; none where it cannot be. [`report_counter`]
/// follows when all else is done.
#[inline(always)]
pub fn counter(named: u64) -> usize {
    if fits_pointer(named) { named as usize } else { 0 }
}

/// Reports a counter that this task cannot have.
#[inline(always)]
pub fn report_counter(held: &mut Held<'_>, src: Task, named: u64) {
    if !fits_pointer(named) {
        report(held, src);
    }
}

/// The last that is done for such a request: the error handler may give its origin up.
pub fn report(held: &mut Held<'_>, src: Task) {
    if held.core().membership.is_down(src) {
        return;
    }
    let detail = format!("task {src} has asked for memory that this task cannot have, or in no valid way");
    held.context().report(held, INT_ERR, src, &Error::new(LAPI_ERR_UNKNOWN, detail));
}
