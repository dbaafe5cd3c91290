//! LAPI_Nopoll_wait, LAPI_Purge_totask, LAPI_Resume_totask, LAPI_Setcntr_wstatus: not built yet.

use crate::table;
use libc::{c_int, c_uint};
use openlapi::abi::{lapi_cntr_t, lapi_handle_t};
use openlapi::api::unbuilt;

pub(crate) unsafe fn nopoll_wait(
    hndl: lapi_handle_t,
    _cntr_ptr: *mut lapi_cntr_t,
    _val: c_int,
    _cur_cntr_val: *mut c_int,
) -> c_int {
    table::call("LAPI_Nopoll_wait", hndl, |_| Err(unbuilt::call("LAPI_Nopoll_wait")))
}

pub(crate) unsafe fn purge_totask(hndl: lapi_handle_t, _dest: c_uint) -> c_int {
    table::call("LAPI_Purge_totask", hndl, |_| Err(unbuilt::call("LAPI_Purge_totask")))
}

pub(crate) unsafe fn resume_totask(hndl: lapi_handle_t, _dest: c_uint) -> c_int {
    table::call("LAPI_Resume_totask", hndl, |_| Err(unbuilt::call("LAPI_Resume_totask")))
}

pub(crate) unsafe fn setcntr_wstatus(
    hndl: lapi_handle_t,
    _cntr: *mut lapi_cntr_t,
    _num_dest: c_int,
    _dest_list: *mut c_uint,
    _dest_status: *mut c_int,
) -> c_int {
    table::call("LAPI_Setcntr_wstatus", hndl, |_| Err(unbuilt::call("LAPI_Setcntr_wstatus")))
}
