//! LAPI_Purge_totask, LAPI_Resume_totask, LAPI_Setcntr_wstatus, LAPI_Nopoll_wait (the
//! manual's chapter 19).

use super::check;
use crate::abi::{L2_LIB, LAPI_ERR_CNTR_VAL, LAPI_ERR_TGT, LAPI_ERR_UNKNOWN};
use crate::engine::context::Held;
use crate::engine::progress::{counters, recovery};
use crate::error::{Error, Result};
use crate::transport::Task;

/// Gives a task up: what is sent to it, arrives from it or waits for it ends here (man page
/// LAPI_Purge_totask).
pub fn purge(held: &mut Held<'_>, task: Task) -> Result<()> {
    other(held, task)?;
    recovery::purge(held, &[task]);
    Ok(())
}

/// Lets a task rejoin (man page LAPI_Resume_totask). What is sent to it waits until it
/// has connected.
pub fn resume(held: &mut Held<'_>, task: Task) -> Result<()> {
    other(held, task)?;
    recovery::resume(held, task)
}

/// Whether the task has left or was given up, and the program has neither purged nor resumed it
/// since. When the error handler is called for that, no operation with the task uses memory of the
/// program any more.
///
/// # Errors
/// `LAPI_ERR_TGT`: the job has no such task.
pub fn is_lost(held: &mut Held<'_>, task: Task) -> Result<bool> {
    check::target(held, task)?;
    Ok(recovery::is_lost(held, task))
}

fn other(held: &mut Held<'_>, task: Task) -> Result<()> {
    check::target(held, task)?;
    if held.options().me == task {
        return Err(Error::new(LAPI_ERR_TGT, format!("task {task} is this task itself")));
    }
    Ok(())
}

/// Sets a counter to 0, and gives it a list of tasks with the address of a status for each (man
/// page LAPI_Setcntr_wstatus); `None` for no list.
///
/// # Errors
/// LAPI_ERR_UNKNOWN: the context is of level L1_LIB, whose counters have no room for a list.
///
/// # Safety
/// `cntr` must be the address of a counter, and the statuses must be writable until the
/// counter is set again.
pub unsafe fn setcntr_wstatus(
    held: &mut Held<'_>,
    cntr: usize,
    list: Option<(Vec<Task>, usize)>,
) -> Result<()> {
    level(held, "LAPI_Setcntr_wstatus")?;
    // SAFETY: the caller's promise.
    unsafe { counters::set_with_statuses(held, cntr, list) };
    Ok(())
}

/// Waits until a counter has reached `value`, and subtracts that, asleep all the time (man page
/// LAPI_Nopoll_wait). Returns what is left.
///
/// # Errors
/// LAPI_ERR_CNTR_VAL: `value` is not more than 0. LAPI_ERR_MULTIPLE_WAITERS: another thread waits
/// for the counter in this call. LAPI_ERR_TGT_PURGED: a task was purged that is in the counter's
/// list, or any task when it has none; or all tasks of the list have reported or were purged, so
/// that nothing more can arrive. LAPI_ERR_UNKNOWN: the context is of level L1_LIB.
///
/// # Safety
/// `cntr` must be the address of a counter, until this returns.
pub unsafe fn nopoll_wait(held: &mut Held<'_>, cntr: usize, value: i32) -> Result<i32> {
    if value <= 0 {
        return Err(Error::new(LAPI_ERR_CNTR_VAL, format!("{value}")));
    }
    level(held, "LAPI_Nopoll_wait")?;
    // SAFETY: the caller's promise.
    unsafe { counters::wait_asleep(held, cntr, value) }
}

fn level(held: &mut Held<'_>, call: &str) -> Result<()> {
    if held.options().level >= L2_LIB {
        return Ok(());
    }
    let detail = format!("{call} needs lib_vers of L2_LIB or LAST_LIB; LAPI_Init was given L1_LIB");
    Err(Error::new(LAPI_ERR_UNKNOWN, detail))
}
