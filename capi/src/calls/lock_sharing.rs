//! The functions that LAPI_GET_THREAD_FUNC returns. The library exports no names for them.

use crate::handles;
use libc::{c_int, pthread_t, timespec};
use openlapi::abi::*;
use openlapi::api::Context;
use openlapi::api::lock_sharing::{self, INVALID, Outcome};

/// Fills in the structure.
pub(super) fn functions(command: &mut lapi_thread_func_t) {
    *command = lapi_thread_func_t {
        Util_type: command.Util_type,
        mutex_lock: Some(mutex_lock),
        mutex_unlock: Some(mutex_unlock),
        mutex_trylock: Some(mutex_trylock),
        mutex_getowner: Some(mutex_getowner),
        cond_wait: Some(cond_wait),
        cond_timedwait: Some(cond_timedwait),
        cond_signal: Some(cond_signal),
        cond_init: Some(cond_init),
        cond_destroy: Some(cond_destroy),
    };
}

unsafe extern "C" fn mutex_lock(hndl: lapi_handle_t) -> c_int {
    with(hndl, |context| lock_sharing::lock(context, hndl))
}

unsafe extern "C" fn mutex_unlock(hndl: lapi_handle_t) -> c_int {
    with(hndl, lock_sharing::unlock)
}

unsafe extern "C" fn mutex_trylock(hndl: lapi_handle_t) -> c_int {
    with(hndl, |context| lock_sharing::try_lock(context, hndl))
}

unsafe extern "C" fn mutex_getowner(hndl: lapi_handle_t, tid: *mut pthread_t) -> c_int {
    with(hndl, |context| {
        // SAFETY: null, or the program's variable.
        let tid = unsafe { tid.as_mut() }.ok_or(INVALID)?;
        *tid = lock_sharing::owner(context);
        Ok(())
    })
}

unsafe extern "C" fn cond_wait(hndl: lapi_handle_t, cond: *mut lapi_cond_t) -> c_int {
    with(hndl, |context| lock_sharing::wait(context, hndl, cond as usize))
}

unsafe extern "C" fn cond_timedwait(
    hndl: lapi_handle_t,
    cond: *mut lapi_cond_t,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: null, or the program's structure.
    with(hndl, |context| lock_sharing::timed_wait(context, hndl, cond as usize, unsafe { timeout.as_ref() }))
}

unsafe extern "C" fn cond_signal(hndl: lapi_handle_t, cond: *mut lapi_cond_t) -> c_int {
    with(hndl, |context| lock_sharing::signal(context, cond as usize))
}

unsafe extern "C" fn cond_init(hndl: lapi_handle_t, cond: *mut lapi_cond_t) -> c_int {
    with(hndl, |_| lock_sharing::set_up(cond as usize))
}

unsafe extern "C" fn cond_destroy(hndl: lapi_handle_t, cond: *mut lapi_cond_t) -> c_int {
    with(hndl, |context| lock_sharing::take_down(context, cond as usize))
}

/// Finds the context, and turns the outcome into a number of the system, 0 for success.
fn with(hndl: lapi_handle_t, run: impl FnOnce(&Context) -> Outcome) -> c_int {
    let outcome = handles::find(hndl).map_err(|_| INVALID).and_then(|context| run(context));
    outcome.err().unwrap_or(0)
}
