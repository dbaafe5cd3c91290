//! LAPI_Getcntr, LAPI_Setcntr, LAPI_Waitcntr, LAPI_Probe, LAPI_Msgpoll.

use crate::{boundary, handles};
use libc::{c_int, c_uint};
use openlapi::abi::*;
use openlapi::api::{Clear, progress};
use openlapi::error::{Error, Result};

#[inline(always)]
pub(crate) unsafe fn getcntr(hndl: lapi_handle_t, cntr: *mut lapi_cntr_t, val: *mut c_int) -> c_int {
    if !cntr.is_null()
        && !val.is_null()
        && let Some(call) = boundary::short(hndl, Clear::TO_POLL)
        // SAFETY: not null, and the program's.
        && let Some(now) = unsafe { progress::getcntr_shortly(call, cntr as usize) }
    {
        // SAFETY: not null, and the program's.
        unsafe { val.write(now) };
        return LAPI_SUCCESS;
    }
    // SAFETY: the caller's promise.
    unsafe { getcntr_in_any_case(hndl, cntr, val) }
}

#[inline(never)]
unsafe fn getcntr_in_any_case(hndl: lapi_handle_t, cntr: *mut lapi_cntr_t, val: *mut c_int) -> c_int {
    boundary::call("LAPI_Getcntr", hndl, |held| {
        let cntr = counter(cntr)?;
        if val.is_null() {
            return Err(Error::new(LAPI_ERR_RET_PTR_NULL, "a null pointer for the value"));
        }
        // SAFETY: not null, and the program's.
        unsafe { val.write(progress::getcntr(held, cntr)) };
        Ok(())
    })
}

pub(crate) unsafe fn setcntr(hndl: lapi_handle_t, cntr: *mut lapi_cntr_t, val: c_int) -> c_int {
    let outcome = handles::find(hndl).and_then(|context| {
        let cntr = counter(cntr)?;
        // SAFETY: not null, and the program's.
        unsafe { progress::setcntr(context, cntr, val) };
        Ok(())
    });
    boundary::code("LAPI_Setcntr", hndl, outcome)
}

#[inline(always)]
pub(crate) unsafe fn waitcntr(
    hndl: lapi_handle_t,
    cntr: *mut lapi_cntr_t,
    val: c_int,
    cur_cntr_val: *mut c_int,
) -> c_int {
    if !cntr.is_null()
        && let Some(call) = boundary::short(hndl, Clear::TO_TAKE)
    {
        // SAFETY: not null, and the program's while it waits.
        return match unsafe { progress::waitcntr_shortly(call, cntr as usize, val) } {
            Ok(left) => {
                if !cur_cntr_val.is_null() {
                    // SAFETY: not null, and the program's.
                    unsafe { cur_cntr_val.write(left) };
                }
                LAPI_SUCCESS
            }
            Err(error) => boundary::code("LAPI_Waitcntr", hndl, Err(error)),
        };
    }
    // SAFETY: the caller's promise.
    unsafe { waitcntr_in_any_case(hndl, cntr, val, cur_cntr_val) }
}

#[inline(never)]
unsafe fn waitcntr_in_any_case(
    hndl: lapi_handle_t,
    cntr: *mut lapi_cntr_t,
    val: c_int,
    cur_cntr_val: *mut c_int,
) -> c_int {
    boundary::call("LAPI_Waitcntr", hndl, |held| {
        let cntr = counter(cntr)?;
        // SAFETY: not null, and the program's while it waits.
        let left = unsafe { progress::waitcntr(held, cntr, val) }?;
        if !cur_cntr_val.is_null() {
            // SAFETY: not null, and the program's.
            unsafe { cur_cntr_val.write(left) };
        }
        Ok(())
    })
}

#[inline(always)]
pub(crate) unsafe fn probe(hndl: lapi_handle_t) -> c_int {
    if let Some(call) = boundary::short(hndl, Clear::TO_POLL)
        && progress::probe_shortly(call)
    {
        return LAPI_SUCCESS;
    }
    probe_in_any_case(hndl)
}

#[inline(never)]
fn probe_in_any_case(hndl: lapi_handle_t) -> c_int {
    boundary::call("LAPI_Probe", hndl, |held| {
        progress::probe(held);
        Ok(())
    })
}

pub(crate) unsafe fn msgpoll(hndl: lapi_handle_t, cnt: c_uint, info: *mut lapi_msg_info_t) -> c_int {
    boundary::call("LAPI_Msgpoll", hndl, |held| {
        if info.is_null() {
            return Err(Error::new(LAPI_ERR_MSG_INFO_NULL, "a null pointer for the status"));
        }
        let status = progress::msgpoll(held, cnt)?;
        // SAFETY: not null, and the program's.
        unsafe { (&raw mut (*info).status).write(status) };
        Ok(())
    })
}

/// The address of a counter that is there.
#[inline]
pub(super) fn counter(cntr: *mut lapi_cntr_t) -> Result<usize> {
    if cntr.is_null() {
        return Err(Error::new(LAPI_ERR_CNTR_NULL, "a null pointer to the counter"));
    }
    Ok(cntr as usize)
}
