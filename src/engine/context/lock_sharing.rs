//! The lock as the program has it (the manual's chapter 12): taken and left outside of calls,
//! waited with for conditions.
//!
//! The program's hold ends with the handle: a thread that gets the lock of a terminated handle
//! releases it at once.

use crate::abi::lapi_handle_t;
use crate::engine::context::Context;
use std::time::SystemTime;

/// Why a request of the program fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The handle has been ended, or is being ended.
    Ended,
    /// This thread holds the lock already: it has taken it, or it is in a handler that LAPI calls
    /// with the lock held.
    Mine,
    /// A thread holds the lock.
    Busy,
    /// The lock is not this thread's to release: it does not hold it, or it is in such a handler.
    NotMine,
    /// The time has passed.
    TimedOut,
    /// Threads wait for the condition.
    WaitTarget,
}

/// Takes the lock, waiting for it.
pub fn lock(context: &Context, handle: lapi_handle_t) -> Result<(), Refusal> {
    if !context.lock.lock() {
        return Err(Refusal::Mine);
    }
    keep(context, handle)
}

/// Takes the lock if it is free.
pub fn try_lock(context: &Context, handle: lapi_handle_t) -> Result<(), Refusal> {
    if !context.lock.try_lock() {
        return Err(Refusal::Busy);
    }
    keep(context, handle)
}

/// Releases the lock.
pub fn unlock(context: &Context) -> Result<(), Refusal> {
    if context.lock.unlock() { Ok(()) } else { Err(not_held(context)) }
}

/// The thread that holds the lock.
pub fn owner(context: &Context) -> Option<usize> {
    context.lock.owner()
}

/// Waits for the condition at this address, without the lock meanwhile, until a time of the
/// system's clock if one is given.
pub fn wait(
    context: &Context,
    handle: lapi_handle_t,
    condition: usize,
    until: Option<SystemTime>,
) -> Result<(), Refusal> {
    if !context.lock.is_programs() {
        return Err(not_held(context));
    }
    let ticket = context.conditions.join(condition);
    context.lock.unlock();
    let signalled = context.conditions.wait(&ticket, until);
    context.lock.lock();
    keep(context, handle)?;
    if signalled { Ok(()) } else { Err(Refusal::TimedOut) }
}

/// Wakes one thread that waits for the condition.
pub fn signal(context: &Context, condition: usize) {
    context.conditions.signal(condition);
}

/// Whether the condition may be destroyed.
pub fn free_to_go(context: &Context, condition: usize) -> Result<(), Refusal> {
    if context.conditions.awaited(condition) { Err(Refusal::WaitTarget) } else { Ok(()) }
}

/// A completion handler has returned: if it has left the lock taken, no other thread
/// would ever get it.
pub fn take_back(context: &Context) {
    context.lock.unlock();
}

/// The calling thread does not hold the lock. It may have done so until the handle's end.
fn not_held(context: &Context) -> Refusal {
    if context.conditions.over() { Refusal::Ended } else { Refusal::NotMine }
}

/// The lock was just taken for the program, under this handle.
fn keep(context: &Context, handle: lapi_handle_t) -> Result<(), Refusal> {
    // SAFETY: this thread holds the lock, and is not inside of a call.
    unsafe {
        if context.serves(handle) {
            context.keep_for_program();
            return Ok(());
        }
    }
    context.lock.unlock();
    Err(Refusal::Ended)
}
