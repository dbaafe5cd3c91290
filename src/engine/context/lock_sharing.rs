//! The functions of LAPI_GET_THREAD_FUNC (man page LAPI_Util; the manual's chapter 12): the program
//! shares the context's lock, which it takes and leaves outside of calls, and waits with it for
//! conditions. They return numbers of the system, not LAPI's.
//!
//! The program's hold ends with the handle: a thread that gets the lock of a terminated handle
//! releases it at once.

use crate::abi::{LAPI_NULL_THREAD_ID, lapi_handle_t};
use crate::engine::context::Context;
use libc::{EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT, c_int, pthread_t, timespec};
use std::time::{Duration, SystemTime};

/// A number of the system's `errno.h`, never 0, when a request of the program fails.
pub type Outcome<T = ()> = Result<T, c_int>;

/// The handle, the condition or the time is invalid: the handle has been ended, or is being ended.
pub const INVALID: c_int = EINVAL;

/// mutex_lock, which waits for the lock: EDEADLK when this thread holds it, or is in a handler that
/// LAPI calls with the lock held.
pub fn lock(context: &Context, handle: lapi_handle_t) -> Outcome {
    if !context.lock.lock() {
        return Err(EDEADLK);
    }
    keep(context, handle)
}

/// mutex_trylock: EBUSY when any thread holds the lock, this one included.
pub fn try_lock(context: &Context, handle: lapi_handle_t) -> Outcome {
    if !context.lock.try_lock() {
        return Err(EBUSY);
    }
    keep(context, handle)
}

/// mutex_unlock: EPERM when the lock is not this thread's to release, which does not hold it, or is
/// in such a handler.
pub fn unlock(context: &Context) -> Outcome {
    if context.lock.unlock() { Ok(()) } else { Err(not_held(context)) }
}

/// mutex_getowner: the thread that holds the lock, whether it took it itself or is inside of LAPI.
pub fn owner(context: &Context) -> pthread_t {
    context.lock.owner().map_or(LAPI_NULL_THREAD_ID, |owner| owner as pthread_t)
}

/// cond_wait, without the lock meanwhile: EPERM when this thread does not hold it.
pub fn wait(context: &Context, handle: lapi_handle_t, condition: usize) -> Outcome {
    wait_until(context, handle, there(condition)?, None)
}

/// cond_timedwait, until a time of CLOCK_REALTIME.
pub fn timed_wait(
    context: &Context,
    handle: lapi_handle_t,
    condition: usize,
    until: Option<&timespec>,
) -> Outcome {
    wait_until(context, handle, there(condition)?, time(until.ok_or(INVALID)?)?)
}

/// cond_signal, which wakes one thread. The caller need not hold the lock, and no thread need wait.
pub fn signal(context: &Context, condition: usize) -> Outcome {
    context.conditions.signal(there(condition)?);
    Ok(())
}

/// cond_init. Nothing is kept in the condition itself.
pub fn set_up(condition: usize) -> Outcome {
    there(condition).map(drop)
}

/// cond_destroy: EBUSY while a thread waits for it.
pub fn take_down(context: &Context, condition: usize) -> Outcome {
    if context.conditions.awaited(there(condition)?) { Err(EBUSY) } else { Ok(()) }
}

/// A completion handler has returned: if it has left the lock taken, no other thread
/// would ever get it.
pub(in crate::engine) fn take_back(context: &Context) {
    context.lock.unlock();
}

/// The address of a condition, which must not be null.
fn there(condition: usize) -> Outcome<usize> {
    if condition == 0 { Err(INVALID) } else { Ok(condition) }
}

/// The time, `None` when it never comes.
fn time(at: &timespec) -> Outcome<Option<SystemTime>> {
    let nanoseconds = u32::try_from(at.tv_nsec).ok().filter(|&part| part < 1_000_000_000).ok_or(INVALID)?;
    // What was before 1970 has passed, whenever it was.
    let since = u64::try_from(at.tv_sec).map_or(Duration::ZERO, |whole| Duration::new(whole, nanoseconds));
    Ok(SystemTime::UNIX_EPOCH.checked_add(since))
}

fn wait_until(
    context: &Context,
    handle: lapi_handle_t,
    condition: usize,
    until: Option<SystemTime>,
) -> Outcome {
    if !context.lock.is_programs() {
        return Err(not_held(context));
    }
    let ticket = context.conditions.join(condition);
    context.lock.unlock();
    let signalled = context.conditions.wait(&ticket, until);
    context.lock.lock();
    keep(context, handle)?;
    if signalled { Ok(()) } else { Err(ETIMEDOUT) }
}

/// The calling thread does not hold the lock. It may have done so until the handle's end.
fn not_held(context: &Context) -> c_int {
    if context.conditions.over() { INVALID } else { EPERM }
}

/// The lock was just taken for the program, under this handle.
fn keep(context: &Context, handle: lapi_handle_t) -> Outcome {
    // SAFETY: this thread holds the lock, and is not inside of a call.
    unsafe {
        if context.serves(handle) {
            context.keep_for_program();
            return Ok(());
        }
    }
    context.lock.unlock();
    Err(INVALID)
}
