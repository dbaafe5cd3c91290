//! The functions of LAPI_GET_THREAD_FUNC (man page LAPI_Util; the manual's chapter 12): the program
//! shares the context's lock. They return numbers of the system, not LAPI's.

use crate::abi::{LAPI_NULL_THREAD_ID, lapi_handle_t};
use crate::engine::context::Context;
use crate::engine::context::lock_sharing::{self, Refusal};
use libc::{EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT, c_int, pthread_t, timespec};
use std::time::{Duration, SystemTime};

/// 0 is never the outcome of a refusal: a number of the system's `errno.h`.
pub type Outcome<T = ()> = Result<T, c_int>;

/// The handle, the condition or the time is invalid.
pub const INVALID: c_int = EINVAL;

/// mutex_lock: EDEADLK when this thread holds the lock, or is in a handler that runs with it.
pub fn lock(context: &Context, handle: lapi_handle_t) -> Outcome {
    lock_sharing::lock(context, handle).map_err(number)
}

/// mutex_trylock: EBUSY when any thread holds the lock, this one included.
pub fn try_lock(context: &Context, handle: lapi_handle_t) -> Outcome {
    lock_sharing::try_lock(context, handle).map_err(number)
}

/// mutex_unlock: EPERM when the lock is not this thread's to release.
pub fn unlock(context: &Context) -> Outcome {
    lock_sharing::unlock(context).map_err(number)
}

/// mutex_getowner: the thread that holds the lock, whether it took it itself or is inside of LAPI.
pub fn owner(context: &Context) -> pthread_t {
    lock_sharing::owner(context).map_or(LAPI_NULL_THREAD_ID, |owner| owner as pthread_t)
}

/// cond_wait: EPERM when this thread does not hold the lock.
pub fn wait(context: &Context, handle: lapi_handle_t, condition: usize) -> Outcome {
    lock_sharing::wait(context, handle, there(condition)?, None).map_err(number)
}

/// cond_timedwait, until a time of CLOCK_REALTIME.
pub fn timed_wait(
    context: &Context,
    handle: lapi_handle_t,
    condition: usize,
    until: Option<&timespec>,
) -> Outcome {
    let condition = there(condition)?;
    let until = time(until.ok_or(INVALID)?)?;
    lock_sharing::wait(context, handle, condition, until).map_err(number)
}

/// cond_signal. The caller need not hold the lock, and no thread need wait.
pub fn signal(context: &Context, condition: usize) -> Outcome {
    lock_sharing::signal(context, there(condition)?);
    Ok(())
}

/// cond_init. Nothing is kept in the condition itself.
pub fn set_up(condition: usize) -> Outcome {
    there(condition).map(drop)
}

/// cond_destroy: EBUSY while a thread waits for it.
pub fn take_down(context: &Context, condition: usize) -> Outcome {
    lock_sharing::free_to_go(context, there(condition)?).map_err(number)
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

fn number(refusal: Refusal) -> c_int {
    match refusal {
        Refusal::Ended => INVALID,
        Refusal::Mine => EDEADLK,
        Refusal::Busy | Refusal::WaitTarget => EBUSY,
        Refusal::NotMine => EPERM,
        Refusal::TimedOut => ETIMEDOUT,
    }
}
