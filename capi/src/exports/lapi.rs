//! LAPI_X: the calls, in the order of the manual's chapters. `plapi.rs` has the same by their profiling names.
//!
//! Each is described by the manual's man page of its name (chapters 18 and 19), and returns LAPI_SUCCESS or one of
//! the error codes named there. Lengths are in bytes, times in seconds.
//!
//! Plain definitions, because cbindgen reads them for the prototypes in `lapi.h` and does not expand macros.

use crate::calls::{
    active_message, address, env, fence, init, progress, put_get, recovery, rmw, util, vector, xfer,
};
use libc::{c_int, c_longlong, c_uint, c_ulong, c_void};
use openlapi::abi::{
    RMW_ops_t, lapi_cntr_t, lapi_handle_t, lapi_info_t, lapi_long_t, lapi_msg_info_t, lapi_query_t,
    lapi_util_t, lapi_vec_t, lapi_xfer_t,
};

/// Starts a context and gives out its handle. Fills in protocol of lapi_info, which may be freed afterwards,
/// and everything it points to as well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Init(hndl: *mut lapi_handle_t, lapi_info: *mut lapi_info_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { init::init(hndl, lapi_info) }
}

/// Ends a context; its handle is worth nothing afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Term(hndl: lapi_handle_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { init::term(hndl) }
}

/// Asks for an attribute of the context. Where ret_val goes to, and how large that is, depends on query.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Qenv(hndl: lapi_handle_t, query: lapi_query_t, ret_val: *mut c_int) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { env::qenv(hndl, query, ret_val) }
}

/// Sets an attribute of the context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Senv(hndl: lapi_handle_t, query: lapi_query_t, set_val: c_int) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { env::senv(hndl, query, set_val) }
}

/// Says what an error code means, into a buffer of LAPI_MAX_ERR_STRING bytes. Needs no context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Msg_string(error_code: c_int, buf: *mut c_void) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { env::msg_string(error_code, buf) }
}

/// Enters an address in the table under an index; 0 < addr_hndl < LOC_ADDRTBL_SZ.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Addr_set(hndl: lapi_handle_t, addr: *mut c_void, addr_hndl: c_int) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { address::addr_set(hndl, addr, addr_hndl) }
}

/// Gets an address from the table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Addr_get(
    hndl: lapi_handle_t,
    addr: *mut *mut c_void,
    addr_hndl: c_int,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { address::addr_get(hndl, addr, addr_hndl) }
}

/// Gives the address of a variable; for Fortran. Needs no context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Address(my_addr: *mut c_void, ret_addr: *mut c_ulong) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { address::address(my_addr, ret_addr) }
}

/// Collective: every task gives an address and gets those of all, by task.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Address_init(
    hndl: lapi_handle_t,
    my_addr: *mut c_void,
    add_tab: *mut *mut c_void,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { address::address_init(hndl, my_addr, add_tab) }
}

/// LAPI_Address_init with addresses of 64 bits in 32-bit programs too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Address_init64(
    hndl: lapi_handle_t,
    my_addr: lapi_long_t,
    add_tab: *mut lapi_long_t,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { address::address_init64(hndl, my_addr, add_tab) }
}

/// Copies len bytes to the memory of the target. Does not wait; the counters tell how far it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Put(
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

/// Copies len bytes from the memory of the target. Does not wait; the counters tell how far it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Get(
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

/// Sends an active message: hdr_hdl, an address at the target or an index of LAPI_Addr_set, says there
/// where udata goes. Does not wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Amsend(
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

/// Reads, changes and writes an int of the target in one step. Does not wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Rmw(
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

/// Reads, changes and writes a long long of the target in one step. Does not wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Rmw64(
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

/// Any transfer, as a structure; Xfer_type says which.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Xfer(hndl: lapi_handle_t, xfer_cmd: *mut lapi_xfer_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { xfer::xfer(hndl, xfer_cmd) }
}

/// Registers and packs by DGSPs, gives out the functions of the lock, sets UDP addresses; Util_type says which.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Util(hndl: lapi_handle_t, util_cmd: *mut lapi_util_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { util::util(hndl, util_cmd) }
}

/// Reads a counter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Getcntr(hndl: lapi_handle_t, cntr: *mut lapi_cntr_t, val: *mut c_int) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { progress::getcntr(hndl, cntr, val) }
}

/// Sets a counter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Setcntr(hndl: lapi_handle_t, cntr: *mut lapi_cntr_t, val: c_int) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { progress::setcntr(hndl, cntr, val) }
}

/// Waits until a counter has reached val, takes val off it, and gives what is left; cur_cntr_val may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Waitcntr(
    hndl: lapi_handle_t,
    cntr: *mut lapi_cntr_t,
    val: c_int,
    cur_cntr_val: *mut c_int,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { progress::waitcntr(hndl, cntr, val, cur_cntr_val) }
}

/// Lets messages make progress.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Probe(hndl: lapi_handle_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { progress::probe(hndl) }
}

/// Lets messages make progress, at most cnt times, until one is complete; says which way it went.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Msgpoll(hndl: lapi_handle_t, cnt: c_uint, info: *mut lapi_msg_info_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { progress::msgpoll(hndl, cnt, info) }
}

/// Waits until all operations of this task are complete at their targets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Fence(hndl: lapi_handle_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { fence::fence(hndl) }
}

/// Collective: LAPI_Fence in every task, and a barrier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Gfence(hndl: lapi_handle_t) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { fence::gfence(hndl) }
}

/// LAPI_Amsend of a vector. Does not wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Amsendv(
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

/// LAPI_Put of a vector; tgt_vec is here, the addresses in it are the target's. Does not wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Putv(
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

/// LAPI_Get of a vector; tgt_vec is here, the addresses in it are the target's. Does not wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Getv(
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

/// Waits for a counter without polling, and takes val off it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Nopoll_wait(
    hndl: lapi_handle_t,
    cntr_ptr: *mut lapi_cntr_t,
    val: c_int,
    cur_cntr_val: *mut c_int,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { recovery::nopoll_wait(hndl, cntr_ptr, val, cur_cntr_val) }
}

/// Drops all operations to a task that has failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Purge_totask(hndl: lapi_handle_t, dest: c_uint) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { recovery::purge_totask(hndl, dest) }
}

/// Allows operations to a task that was purged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Resume_totask(hndl: lapi_handle_t, dest: c_uint) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { recovery::resume_totask(hndl, dest) }
}

/// Sets a counter to 0 and ties it to tasks, whose answers dest_status then shows (LAPI_MSG_INITIAL and so on).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LAPI_Setcntr_wstatus(
    hndl: lapi_handle_t,
    cntr: *mut lapi_cntr_t,
    num_dest: c_int,
    dest_list: *mut c_uint,
    dest_status: *mut c_int,
) -> c_int {
    // SAFETY: what the manual asks of the caller is what the call asks.
    unsafe { recovery::setcntr_wstatus(hndl, cntr, num_dest, dest_list, dest_status) }
}
