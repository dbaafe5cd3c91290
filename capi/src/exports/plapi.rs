//! PLAPI_X: the name under which a profiling library, which has taken the place of LAPI_X, reaches LAPI_X
//! (the manual's chapter 9). Each is the call of `lapi.rs` by another name, and documented there.

#![allow(missing_docs)] // see lapi.rs

use crate::calls::{
    active_message, address, env, fence, init, progress, put_get, recovery, rmw, util, vector, xfer,
};
use libc::{c_int, c_longlong, c_uint, c_ulong, c_void};
use openlapi::abi::{
    RMW_ops_t, lapi_cntr_t, lapi_handle_t, lapi_info_t, lapi_long_t, lapi_msg_info_t, lapi_query_t,
    lapi_util_t, lapi_vec_t, lapi_xfer_t,
};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Init(hndl: *mut lapi_handle_t, lapi_info: *mut lapi_info_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { init::init(hndl, lapi_info) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Term(hndl: lapi_handle_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { init::term(hndl) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Qenv(hndl: lapi_handle_t, query: lapi_query_t, ret_val: *mut c_int) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { env::qenv(hndl, query, ret_val) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Senv(hndl: lapi_handle_t, query: lapi_query_t, set_val: c_int) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { env::senv(hndl, query, set_val) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Msg_string(error_code: c_int, buf: *mut c_void) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { env::msg_string(error_code, buf) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Addr_set(hndl: lapi_handle_t, addr: *mut c_void, addr_hndl: c_int) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { address::addr_set(hndl, addr, addr_hndl) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Addr_get(
    hndl: lapi_handle_t,
    addr: *mut *mut c_void,
    addr_hndl: c_int,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { address::addr_get(hndl, addr, addr_hndl) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Address(my_addr: *mut c_void, ret_addr: *mut c_ulong) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { address::address(my_addr, ret_addr) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Address_init(
    hndl: lapi_handle_t,
    my_addr: *mut c_void,
    add_tab: *mut *mut c_void,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { address::address_init(hndl, my_addr, add_tab) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Address_init64(
    hndl: lapi_handle_t,
    my_addr: lapi_long_t,
    add_tab: *mut lapi_long_t,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { address::address_init64(hndl, my_addr, add_tab) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Put(
    hndl: lapi_handle_t,
    tgt: c_uint,
    len: c_ulong,
    tgt_addr: *mut c_void,
    org_addr: *mut c_void,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
    cmpl_cntr: *mut lapi_cntr_t,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { put_get::put(hndl, tgt, len, tgt_addr, org_addr, tgt_cntr, org_cntr, cmpl_cntr) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Get(
    hndl: lapi_handle_t,
    tgt: c_uint,
    len: c_ulong,
    tgt_addr: *mut c_void,
    org_addr: *mut c_void,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { put_get::get(hndl, tgt, len, tgt_addr, org_addr, tgt_cntr, org_cntr) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Amsend(
    hndl: lapi_handle_t,
    tgt: c_uint,
    hdr_hdl: *mut c_void,
    uhdr: *mut c_void,
    uhdr_len: c_uint,
    udata: *mut c_void,
    udata_len: c_ulong,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
    cmpl_cntr: *mut lapi_cntr_t,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe {
        active_message::amsend(
            hndl, tgt, hdr_hdl, uhdr, uhdr_len, udata, udata_len, tgt_cntr, org_cntr, cmpl_cntr,
        )
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Rmw(
    hndl: lapi_handle_t,
    op: RMW_ops_t,
    tgt: c_uint,
    tgt_var: *mut c_int,
    in_val: *mut c_int,
    prev_tgt_val: *mut c_int,
    org_cntr: *mut lapi_cntr_t,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { rmw::rmw(hndl, op, tgt, tgt_var, in_val, prev_tgt_val, org_cntr) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Rmw64(
    hndl: lapi_handle_t,
    op: RMW_ops_t,
    tgt: c_uint,
    tgt_var: *mut c_longlong,
    in_val: *mut c_longlong,
    prev_tgt_val: *mut c_longlong,
    org_cntr: *mut lapi_cntr_t,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { rmw::rmw64(hndl, op, tgt, tgt_var, in_val, prev_tgt_val, org_cntr) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Xfer(hndl: lapi_handle_t, xfer_cmd: *mut lapi_xfer_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { xfer::xfer(hndl, xfer_cmd) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Util(hndl: lapi_handle_t, util_cmd: *mut lapi_util_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { util::util(hndl, util_cmd) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Getcntr(
    hndl: lapi_handle_t,
    cntr: *mut lapi_cntr_t,
    val: *mut c_int,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { progress::getcntr(hndl, cntr, val) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Setcntr(hndl: lapi_handle_t, cntr: *mut lapi_cntr_t, val: c_int) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { progress::setcntr(hndl, cntr, val) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Waitcntr(
    hndl: lapi_handle_t,
    cntr: *mut lapi_cntr_t,
    val: c_int,
    cur_cntr_val: *mut c_int,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { progress::waitcntr(hndl, cntr, val, cur_cntr_val) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Probe(hndl: lapi_handle_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { progress::probe(hndl) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Msgpoll(
    hndl: lapi_handle_t,
    cnt: c_uint,
    info: *mut lapi_msg_info_t,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { progress::msgpoll(hndl, cnt, info) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Fence(hndl: lapi_handle_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { fence::fence(hndl) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Gfence(hndl: lapi_handle_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { fence::gfence(hndl) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Amsendv(
    hndl: lapi_handle_t,
    tgt: c_uint,
    hdr_hdl: *mut c_void,
    uhdr: *mut c_void,
    uhdr_len: c_uint,
    org_vec: *mut lapi_vec_t,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
    cmpl_cntr: *mut lapi_cntr_t,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { vector::amsendv(hndl, tgt, hdr_hdl, uhdr, uhdr_len, org_vec, tgt_cntr, org_cntr, cmpl_cntr) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Putv(
    hndl: lapi_handle_t,
    tgt: c_uint,
    tgt_vec: *mut lapi_vec_t,
    org_vec: *mut lapi_vec_t,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
    cmpl_cntr: *mut lapi_cntr_t,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { vector::putv(hndl, tgt, tgt_vec, org_vec, tgt_cntr, org_cntr, cmpl_cntr) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Getv(
    hndl: lapi_handle_t,
    tgt: c_uint,
    tgt_vec: *mut lapi_vec_t,
    org_vec: *mut lapi_vec_t,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { vector::getv(hndl, tgt, tgt_vec, org_vec, tgt_cntr, org_cntr) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Nopoll_wait(
    hndl: lapi_handle_t,
    cntr_ptr: *mut lapi_cntr_t,
    val: c_int,
    cur_cntr_val: *mut c_int,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { recovery::nopoll_wait(hndl, cntr_ptr, val, cur_cntr_val) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Purge_totask(hndl: lapi_handle_t, dest: c_uint) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { recovery::purge_totask(hndl, dest) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Resume_totask(hndl: lapi_handle_t, dest: c_uint) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { recovery::resume_totask(hndl, dest) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PLAPI_Setcntr_wstatus(
    hndl: lapi_handle_t,
    cntr: *mut lapi_cntr_t,
    num_dest: c_int,
    dest_list: *mut c_uint,
    dest_status: *mut c_int,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { recovery::setcntr_wstatus(hndl, cntr, num_dest, dest_list, dest_status) }
}
