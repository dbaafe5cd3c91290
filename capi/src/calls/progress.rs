//! LAPI_Getcntr, LAPI_Setcntr, LAPI_Waitcntr, LAPI_Probe, LAPI_Msgpoll.

use crate::{boundary, handles};
use libc::{c_int, c_uint};
use openlapi::abi::*;
use openlapi::api::{Held, progress};
use openlapi::error::{Error, Result};

#[inline(always)]
pub(crate) unsafe fn getcntr(hndl: lapi_handle_t, cntr: *mut lapi_cntr_t, val: *mut c_int) -> c_int {
    let outcome = match boundary::enter(hndl) {
        // SAFETY: null, or the program's.
        Ok(mut held) => unsafe { read(&mut held, cntr, val) },
        Err(error) => Err(error),
    };
    boundary::code("LAPI_Getcntr", hndl, outcome)
}

/// # Safety
/// Both must be null, or the program's.
#[inline(always)]
unsafe fn read(held: &mut Held<'_>, cntr: *mut lapi_cntr_t, val: *mut c_int) -> Result<()> {
    let cntr = counter(cntr)?;
    if val.is_null() {
        return Err(Error::new(LAPI_ERR_RET_PTR_NULL, "a null pointer for the value"));
    }
    // SAFETY: not null, and the program's.
    unsafe { val.write(progress::getcntr(held, cntr)) };
    Ok(())
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
    let outcome = match boundary::enter(hndl) {
        // SAFETY: null, or the program's.
        Ok(mut held) => unsafe { wait(&mut held, cntr, val, cur_cntr_val) },
        Err(error) => Err(error),
    };
    boundary::code("LAPI_Waitcntr", hndl, outcome)
}

/// # Safety
/// Both pointers must be null, or the program's while it waits.
#[inline(always)]
unsafe fn wait(
    held: &mut Held<'_>,
    cntr: *mut lapi_cntr_t,
    val: c_int,
    cur_cntr_val: *mut c_int,
) -> Result<()> {
    let cntr = counter(cntr)?;
    // SAFETY: not null, and the program's while it waits.
    let left = unsafe { progress::waitcntr(held, cntr, val) }?;
    if !cur_cntr_val.is_null() {
        // SAFETY: not null, and the program's.
        unsafe { cur_cntr_val.write(left) };
    }
    Ok(())
}

#[inline(always)]
pub(crate) unsafe fn probe(hndl: lapi_handle_t) -> c_int {
    let outcome = boundary::enter(hndl).map(|mut held| progress::probe(&mut held));
    boundary::code("LAPI_Probe", hndl, outcome)
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
