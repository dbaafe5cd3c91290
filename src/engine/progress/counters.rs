//! Calls on the program's counters. A counter changes without the lock; what is known about it is
//! guarded by the lock.

use crate::abi::{LAPI_ERR_MULTIPLE_WAITERS, LAPI_ERR_TGT_PURGED};
use crate::engine::context::membership::Standing;
use crate::engine::context::unhindered::ShortCall;
use crate::engine::context::wait_policy::WaitPolicy;
use crate::engine::context::waiters::WaitTarget;
use crate::engine::context::{Context, Held};
use crate::engine::progress::poll::{make_progress, make_progress_shortly, poll_once, poll_shortly};
use crate::engine::progress::wait::{self, counter_changed, wait_until, wait_with};
use crate::error::{Error, Result};
use crate::memory::counter;
use crate::transport::Task;
use std::sync::atomic::Ordering::Relaxed;

/// Makes progress, and reads a counter (man page LAPI_Getcntr).
///
/// # Safety
/// `cntr` must be the address of a counter.
pub unsafe fn read(held: &mut Held<'_>, cntr: usize) -> i32 {
    poll_once(held);
    // SAFETY: the caller's promise.
    unsafe { counter::get(cntr) }
}

/// [`read`] by a short way. `None`: nothing was done, and [`read`] is to do it.
///
/// # Safety
/// `cntr` must be the address of a counter.
#[inline(always)]
pub unsafe fn read_shortly(call: ShortCall<'_>, cntr: usize) -> Option<i32> {
    // SAFETY: the caller's promise.
    poll_shortly(call).then(|| unsafe { counter::get(cntr) })
}

/// Sets a counter, which has no list of tasks from then on (man page LAPI_Setcntr). The call does
/// not wait for the lock, since a handler of another thread may wait for this counter. When the
/// lock is free, it makes progress.
///
/// # Safety
/// `cntr` must be the address of a counter.
pub unsafe fn set(context: &Context, cntr: usize, value: i32) {
    // SAFETY: the caller's promise.
    unsafe { counter::set(cntr, value) };
    if context.watching.load(Relaxed)
        && let Ok(mut held) = context.enter()
    {
        held.core().watched.forget(cntr);
    }
    counter_changed(context);
    if let Some(mut held) = context.try_enter() {
        make_progress(&mut held);
    }
}

/// Sets a counter to 0, and gives it a list of tasks with the address of a status for each;
/// `None` for no list.
///
/// # Safety
/// `cntr` must be the address of a counter, and the statuses must be writable until the
/// counter is set again.
pub unsafe fn set_with_statuses(held: &mut Held<'_>, cntr: usize, list: Option<(Vec<Task>, usize)>) {
    let core = held.core();
    match list {
        Some((tasks, statuses)) => {
            let (peers, all) = (&core.membership, core.options.tasks);
            // SAFETY: the caller's promise.
            unsafe {
                core.watched.watch(cntr, tasks, statuses, |task| {
                    task < all && peers.standing(task) != Standing::Purged
                });
            }
        }
        None => core.watched.forget(cntr),
    }
    note_watched(held);
    // SAFETY: the caller's promise.
    unsafe { counter::set(cntr, 0) };
    held.core().waiters.note_news();
}

/// Waits until a counter has reached `value`, and subtracts that. Returns what is left (man page
/// LAPI_Waitcntr).
///
/// # Safety
/// `cntr` must be the address of a counter, until this returns.
pub unsafe fn wait(held: &mut Held<'_>, cntr: usize, value: i32) -> Result<i32> {
    // SAFETY: the caller's promise.
    if let Some(left) = unsafe { counter::take(cntr, value) } {
        make_progress(held);
        return Ok(left);
    }
    // SAFETY: the caller's promise.
    wait_until(held, awaited(cntr, value), |_| unsafe { counter::take(cntr, value) })
}

/// [`wait()`] by a short way.
///
/// # Safety
/// `cntr` must be the address of a counter, until this returns.
#[inline(always)]
pub unsafe fn wait_shortly(call: ShortCall<'_>, cntr: usize, value: i32) -> Result<i32> {
    // SAFETY: the caller's promise.
    if let Some(left) = unsafe { counter::take(cntr, value) } {
        make_progress_shortly(call);
        return Ok(left);
    }
    // SAFETY: the caller's promise.
    wait::wait_shortly(call, awaited(cntr, value), move || unsafe { counter::take(cntr, value) })
}

fn awaited(cntr: usize, value: i32) -> impl FnOnce() -> WaitTarget {
    move || WaitTarget { call: "LAPI_Waitcntr", counter: Some((cntr, value)) }
}

/// Waits for a counter asleep all the time (LAPI_Nopoll_wait).
///
/// # Errors
/// LAPI_ERR_MULTIPLE_WAITERS: another thread waits for the counter in this call.
/// LAPI_ERR_TGT_PURGED: a task was purged that is in the counter's list, or any task when it has
/// none; or all tasks of the list have reported or were purged, at least one of them the latter, so
/// that nothing more may arrive.
///
/// # Safety
/// `cntr` must be the address of a counter, until this returns.
pub unsafe fn wait_asleep(held: &mut Held<'_>, cntr: usize, value: i32) -> Result<i32> {
    if !held.core().watched.wait(cntr) {
        return Err(Error::from(LAPI_ERR_MULTIPLE_WAITERS));
    }
    let awaited = WaitTarget { call: "LAPI_Nopoll_wait", counter: Some((cntr, value)) };
    let waited = wait_with(held, awaited, (WaitPolicy::NONE, None), |held| {
        // SAFETY: the caller's promise.
        if let Some(left) = unsafe { counter::take(cntr, value) } {
            return Some(Ok(left));
        }
        let core = held.core();
        let hopeless = core.watched.is_purged(cntr) || core.watched.is_hopeless(cntr);
        hopeless.then(|| {
            let detail = "a task that was to raise the counter has been purged";
            Err(Error::new(LAPI_ERR_TGT_PURGED, detail))
        })
    });
    let core = held.core();
    core.watched.wait_no_more(cntr);
    if core.watched.is_settled(cntr) {
        core.watched.forget(cntr);
        note_watched(held);
    }
    waited?
}

/// Calls that do not take the lock must know whether any counter is watched.
fn note_watched(held: &mut Held<'_>) {
    let context = held.context();
    context.watching.store(held.core().watched.has_counters(), Relaxed);
}
