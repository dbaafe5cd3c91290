//! LAPI_Nopoll_wait, LAPI_Purge_totask, LAPI_Resume_totask, LAPI_Setcntr_wstatus.

use super::progress::counter;
use crate::boundary;
use libc::{c_int, c_uint};
use openlapi::abi::*;
use openlapi::api::recovery;
use openlapi::error::{Error, Result};

pub(crate) unsafe fn nopoll_wait(
    hndl: lapi_handle_t,
    cntr_ptr: *mut lapi_cntr_t,
    val: c_int,
    cur_cntr_val: *mut c_int,
) -> c_int {
    boundary::call("LAPI_Nopoll_wait", hndl, |held| {
        let cntr = counter(cntr_ptr)?;
        // SAFETY: not null, and the program's while it waits.
        let left = unsafe { recovery::nopoll_wait(held, cntr, val) }?;
        if !cur_cntr_val.is_null() {
            // SAFETY: not null, and the program's.
            unsafe { cur_cntr_val.write(left) };
        }
        Ok(())
    })
}

pub(crate) unsafe fn purge_totask(hndl: lapi_handle_t, dest: c_uint) -> c_int {
    boundary::call("LAPI_Purge_totask", hndl, |held| recovery::purge(held, dest))
}

pub(crate) unsafe fn resume_totask(hndl: lapi_handle_t, dest: c_uint) -> c_int {
    boundary::call("LAPI_Resume_totask", hndl, |held| recovery::resume(held, dest))
}

pub(crate) unsafe fn setcntr_wstatus(
    hndl: lapi_handle_t,
    cntr: *mut lapi_cntr_t,
    num_dest: c_int,
    dest_list: *mut c_uint,
    dest_status: *mut c_int,
) -> c_int {
    boundary::call("LAPI_Setcntr_wstatus", hndl, |held| {
        let cntr = counter(cntr)?;
        // SAFETY: null, or the program's, as long as it says.
        let list = unsafe { list(num_dest, dest_list, dest_status) }?;
        // SAFETY: not null, and the program's.
        unsafe { recovery::setcntr_wstatus(held, cntr, list) }
    })
}

/// The tasks, and the address of their statuses; none without a list.
///
/// # Safety
/// `dest_list` must be null or readable for `num_dest` tasks.
unsafe fn list(
    num_dest: c_int,
    dest_list: *const c_uint,
    dest_status: *mut c_int,
) -> Result<Option<(Vec<u32>, usize)>> {
    if dest_list.is_null() {
        return Ok(None);
    }
    if dest_status.is_null() {
        return Err(Error::new(LAPI_ERR_RET_PTR_NULL, "a null pointer for the statuses of a list of tasks"));
    }
    let count = usize::try_from(num_dest).unwrap_or_default();
    if count == 0 {
        // Every task of an empty list would have raised the counter at once.
        return Ok(None);
    }
    // SAFETY: not null, and the caller's promise.
    let tasks = unsafe { std::slice::from_raw_parts(dest_list, count) };
    Ok(Some((tasks.to_vec(), dest_status.expose_provenance())))
}
