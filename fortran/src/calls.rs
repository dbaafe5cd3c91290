//! Every call of Fortran, in the order of the manual's chapters, with its arguments as the man page's Fortran syntax
//! names them.

use crate::argument::{Argument, Code, Handler, Here, LongHandler, There, Value, Vector};
use crate::{common, ddm, text};
use libc::{c_char, c_int, c_longlong, c_uint, c_ulong, c_void, size_t};
use openlapi::abi::{
    RMW_ops_t, lapi_cntr_t, lapi_handle_t, lapi_info_t, lapi_long_t, lapi_msg_info_t, lapi_query_t,
    lapi_util_t, lapi_vec_t, lapi_xfer_t,
};
use openlapi_capi::*;

type Handle = Value<lapi_handle_t>;
type Task = Value<c_uint>;
type Length = Value<c_ulong>;
type Counter = Here<lapi_cntr_t>;
type CounterThere = There<lapi_cntr_t>;

spellings! { ["lapi_init" "lapi_init_" "LAPI_INIT" "LAPI_INIT_"] (hndl: Here<lapi_handle_t>, info: Here<lapi_info_t>, ierror: Code) {
    type InC = unsafe extern "C" fn(*mut lapi_handle_t, *mut lapi_info_t) -> c_int;
    common::set_byte();
    // SAFETY: the program's variables, as the man page wants them.
    unsafe { ierror.set(by_name!("LAPI_Init", LAPI_Init: InC)(hndl.c(), info.c())) }
} }

spellings! { ["plapi_init" "plapi_init_" "PLAPI_INIT" "PLAPI_INIT_"] (hndl: Here<lapi_handle_t>, info: Here<lapi_info_t>, ierror: Code) {
    type InC = unsafe extern "C" fn(*mut lapi_handle_t, *mut lapi_info_t) -> c_int;
    common::set_byte();
    // SAFETY: the program's variables, as the man page wants them.
    unsafe { ierror.set(by_name!("PLAPI_Init", PLAPI_Init: InC)(hndl.c(), info.c())) }
} }

call! {
    LAPI_Term ["lapi_term" "lapi_term_" "LAPI_TERM" "LAPI_TERM_"]
    PLAPI_Term ["plapi_term" "plapi_term_" "PLAPI_TERM" "PLAPI_TERM_"]
    (hndl: Handle)
}

call! {
    LAPI_Qenv ["lapi_qenv" "lapi_qenv_" "LAPI_QENV" "LAPI_QENV_"]
    PLAPI_Qenv ["plapi_qenv" "plapi_qenv_" "PLAPI_QENV" "PLAPI_QENV_"]
    (hndl: Handle, query: Value<lapi_query_t>, ret_val: Here<c_int>)
}

call! {
    LAPI_Senv ["lapi_senv" "lapi_senv_" "LAPI_SENV" "LAPI_SENV_"]
    PLAPI_Senv ["plapi_senv" "plapi_senv_" "PLAPI_SENV" "PLAPI_SENV_"]
    (hndl: Handle, query: Value<lapi_query_t>, set_val: Value<c_int>)
}

spellings! { ["lapi_msg_string" "lapi_msg_string_" "LAPI_MSG_STRING" "LAPI_MSG_STRING_"] (code: Value<c_int>, buf: *mut c_char, ierror: Code, length: size_t) {
    // SAFETY: the program's variables, as the man page wants them.
    unsafe { ierror.set(text::message(by_name!("LAPI_Msg_string", LAPI_Msg_string: text::InC), code.c(), buf, length)) }
} }

spellings! { ["plapi_msg_string" "plapi_msg_string_" "PLAPI_MSG_STRING" "PLAPI_MSG_STRING_"] (code: Value<c_int>, buf: *mut c_char, ierror: Code, length: size_t) {
    // SAFETY: the program's variables, as the man page wants them.
    unsafe { ierror.set(text::message(by_name!("PLAPI_Msg_string", PLAPI_Msg_string: text::InC), code.c(), buf, length)) }
} }

call! {
    LAPI_Addr_set ["lapi_addr_set" "lapi_addr_set_" "LAPI_ADDR_SET" "LAPI_ADDR_SET_"]
    PLAPI_Addr_set ["plapi_addr_set" "plapi_addr_set_" "PLAPI_ADDR_SET" "PLAPI_ADDR_SET_"]
    (hndl: Handle, addr: Handler, addr_hndl: Value<c_int>)
}

call! {
    LAPI_Addr_get ["lapi_addr_get" "lapi_addr_get_" "LAPI_ADDR_GET" "LAPI_ADDR_GET_"]
    PLAPI_Addr_get ["plapi_addr_get" "plapi_addr_get_" "PLAPI_ADDR_GET" "PLAPI_ADDR_GET_"]
    (hndl: Handle, addr: Here<*mut c_void>, addr_hndl: Value<c_int>)
}

call! {
    LAPI_Address ["lapi_address" "lapi_address_" "LAPI_ADDRESS" "LAPI_ADDRESS_"]
    PLAPI_Address ["plapi_address" "plapi_address_" "PLAPI_ADDRESS" "PLAPI_ADDRESS_"]
    (my_addr: Here<c_void>, ret_addr: Here<c_ulong>)
}

call! {
    LAPI_Address_init ["lapi_address_init" "lapi_address_init_" "LAPI_ADDRESS_INIT" "LAPI_ADDRESS_INIT_"]
    PLAPI_Address_init ["plapi_address_init" "plapi_address_init_" "PLAPI_ADDRESS_INIT" "PLAPI_ADDRESS_INIT_"]
    (hndl: Handle, my_addr: Handler, add_tab: Here<*mut c_void>)
}

call! {
    LAPI_Address_init64 ["lapi_address_init64" "lapi_address_init64_" "LAPI_ADDRESS_INIT64" "LAPI_ADDRESS_INIT64_"]
    PLAPI_Address_init64 ["plapi_address_init64" "plapi_address_init64_" "PLAPI_ADDRESS_INIT64" "PLAPI_ADDRESS_INIT64_"]
    (hndl: Handle, my_addr: LongHandler, add_tab: Here<lapi_long_t>)
}

call! {
    LAPI_Put ["lapi_put" "lapi_put_" "LAPI_PUT" "LAPI_PUT_"]
    PLAPI_Put ["plapi_put" "plapi_put_" "PLAPI_PUT" "PLAPI_PUT_"]
    (hndl: Handle, tgt: Task, len: Length, tgt_addr: There<c_void>, org_addr: Here<c_void>, tgt_cntr:
     CounterThere, org_cntr: Counter, cmpl_cntr: Counter)
}

call! {
    LAPI_Get ["lapi_get" "lapi_get_" "LAPI_GET" "LAPI_GET_"]
    PLAPI_Get ["plapi_get" "plapi_get_" "PLAPI_GET" "PLAPI_GET_"]
    (hndl: Handle, tgt: Task, len: Length, tgt_addr: There<c_void>, org_addr: Here<c_void>, tgt_cntr:
     CounterThere, org_cntr: Counter)
}

call! {
    LAPI_Amsend ["lapi_amsend" "lapi_amsend_" "LAPI_AMSEND" "LAPI_AMSEND_"]
    PLAPI_Amsend ["plapi_amsend" "plapi_amsend_" "PLAPI_AMSEND" "PLAPI_AMSEND_"]
    (hndl: Handle, tgt: Task, hdr_hdl: Handler, uhdr: Here<c_void>, uhdr_len: Value<c_uint>, udata:
     Here<c_void>, udata_len: Length, tgt_cntr: CounterThere, org_cntr: Counter, cmpl_cntr: Counter)
}

call! {
    LAPI_Rmw ["lapi_rmw" "lapi_rmw_" "LAPI_RMW" "LAPI_RMW_"]
    PLAPI_Rmw ["plapi_rmw" "plapi_rmw_" "PLAPI_RMW" "PLAPI_RMW_"]
    (hndl: Handle, op: Value<RMW_ops_t>, tgt: Task, tgt_var: There<c_int>, in_val: Here<c_int>,
     prev_tgt_val: Here<c_int>, org_cntr: Counter)
}

call! {
    LAPI_Rmw64 ["lapi_rmw64" "lapi_rmw64_" "LAPI_RMW64" "LAPI_RMW64_"]
    PLAPI_Rmw64 ["plapi_rmw64" "plapi_rmw64_" "PLAPI_RMW64" "PLAPI_RMW64_"]
    (hndl: Handle, op: Value<RMW_ops_t>, tgt: Task, tgt_var: There<c_longlong>, in_val:
     Here<c_longlong>, prev_tgt_val: Here<c_longlong>, org_cntr: Counter)
}

call! {
    LAPI_Xfer ["lapi_xfer" "lapi_xfer_" "LAPI_XFER" "LAPI_XFER_"]
    PLAPI_Xfer ["plapi_xfer" "plapi_xfer_" "PLAPI_XFER" "PLAPI_XFER_"]
    (hndl: Handle, xfer_cmd: Here<lapi_xfer_t>)
}

spellings! { ["lapi_util" "lapi_util_" "LAPI_UTIL" "LAPI_UTIL_"] (hndl: Handle, util_cmd: *mut lapi_util_t, ierror: Code) {
    // SAFETY: the program's variables, as the man page wants them.
    unsafe { ierror.set(ddm::util(by_name!("LAPI_Util", LAPI_Util: ddm::InC), hndl.c(), util_cmd)) }
} }

spellings! { ["plapi_util" "plapi_util_" "PLAPI_UTIL" "PLAPI_UTIL_"] (hndl: Handle, util_cmd: *mut lapi_util_t, ierror: Code) {
    // SAFETY: the program's variables, as the man page wants them.
    unsafe { ierror.set(ddm::util(by_name!("PLAPI_Util", PLAPI_Util: ddm::InC), hndl.c(), util_cmd)) }
} }

call! {
    LAPI_Getcntr ["lapi_getcntr" "lapi_getcntr_" "LAPI_GETCNTR" "LAPI_GETCNTR_"]
    PLAPI_Getcntr ["plapi_getcntr" "plapi_getcntr_" "PLAPI_GETCNTR" "PLAPI_GETCNTR_"]
    (hndl: Handle, cntr: Counter, val: Here<c_int>)
}

call! {
    LAPI_Setcntr ["lapi_setcntr" "lapi_setcntr_" "LAPI_SETCNTR" "LAPI_SETCNTR_"]
    PLAPI_Setcntr ["plapi_setcntr" "plapi_setcntr_" "PLAPI_SETCNTR" "PLAPI_SETCNTR_"]
    (hndl: Handle, cntr: Counter, val: Value<c_int>)
}

call! {
    LAPI_Waitcntr ["lapi_waitcntr" "lapi_waitcntr_" "LAPI_WAITCNTR" "LAPI_WAITCNTR_"]
    PLAPI_Waitcntr ["plapi_waitcntr" "plapi_waitcntr_" "PLAPI_WAITCNTR" "PLAPI_WAITCNTR_"]
    (hndl: Handle, cntr: Counter, val: Value<c_int>, cur_cntr_val: Here<c_int>)
}

call! {
    LAPI_Probe ["lapi_probe" "lapi_probe_" "LAPI_PROBE" "LAPI_PROBE_"]
    PLAPI_Probe ["plapi_probe" "plapi_probe_" "PLAPI_PROBE" "PLAPI_PROBE_"]
    (hndl: Handle)
}

call! {
    LAPI_Msgpoll ["lapi_msgpoll" "lapi_msgpoll_" "LAPI_MSGPOLL" "LAPI_MSGPOLL_"]
    PLAPI_Msgpoll ["plapi_msgpoll" "plapi_msgpoll_" "PLAPI_MSGPOLL" "PLAPI_MSGPOLL_"]
    (hndl: Handle, cnt: Value<c_uint>, info: Here<lapi_msg_info_t>)
}

call! {
    LAPI_Fence ["lapi_fence" "lapi_fence_" "LAPI_FENCE" "LAPI_FENCE_"]
    PLAPI_Fence ["plapi_fence" "plapi_fence_" "PLAPI_FENCE" "PLAPI_FENCE_"]
    (hndl: Handle)
}

call! {
    LAPI_Gfence ["lapi_gfence" "lapi_gfence_" "LAPI_GFENCE" "LAPI_GFENCE_"]
    PLAPI_Gfence ["plapi_gfence" "plapi_gfence_" "PLAPI_GFENCE" "PLAPI_GFENCE_"]
    (hndl: Handle)
}

call! {
    LAPI_Amsendv ["lapi_amsendv" "lapi_amsendv_" "LAPI_AMSENDV" "LAPI_AMSENDV_"]
    PLAPI_Amsendv ["plapi_amsendv" "plapi_amsendv_" "PLAPI_AMSENDV" "PLAPI_AMSENDV_"]
    (hndl: Handle, tgt: Task, hdr_hdl: Handler, uhdr: Here<c_void>, uhdr_len: Value<c_uint>, org_vec:
     Here<lapi_vec_t>, tgt_cntr: CounterThere, org_cntr: Counter, cmpl_cntr: Counter)
}

call! {
    LAPI_Putv ["lapi_putv" "lapi_putv_" "LAPI_PUTV" "LAPI_PUTV_"]
    PLAPI_Putv ["plapi_putv" "plapi_putv_" "PLAPI_PUTV" "PLAPI_PUTV_"]
    (hndl: Handle, tgt: Task, tgt_vec: Vector, org_vec: Here<lapi_vec_t>, tgt_cntr: CounterThere,
     org_cntr: Counter, cmpl_cntr: Counter)
}

call! {
    LAPI_Getv ["lapi_getv" "lapi_getv_" "LAPI_GETV" "LAPI_GETV_"]
    PLAPI_Getv ["plapi_getv" "plapi_getv_" "PLAPI_GETV" "PLAPI_GETV_"]
    (hndl: Handle, tgt: Task, tgt_vec: Vector, org_vec: Here<lapi_vec_t>, tgt_cntr: CounterThere,
     org_cntr: Counter)
}

call! {
    LAPI_Nopoll_wait ["lapi_nopoll_wait" "lapi_nopoll_wait_" "LAPI_NOPOLL_WAIT" "LAPI_NOPOLL_WAIT_"]
    PLAPI_Nopoll_wait ["plapi_nopoll_wait" "plapi_nopoll_wait_" "PLAPI_NOPOLL_WAIT" "PLAPI_NOPOLL_WAIT_"]
    (hndl: Handle, cntr_ptr: Counter, val: Value<c_int>, cur_cntr_val: Here<c_int>)
}

call! {
    LAPI_Purge_totask ["lapi_purge_totask" "lapi_purge_totask_" "LAPI_PURGE_TOTASK" "LAPI_PURGE_TOTASK_"]
    PLAPI_Purge_totask ["plapi_purge_totask" "plapi_purge_totask_" "PLAPI_PURGE_TOTASK" "PLAPI_PURGE_TOTASK_"]
    (hndl: Handle, dest: Task)
}

call! {
    LAPI_Resume_totask ["lapi_resume_totask" "lapi_resume_totask_" "LAPI_RESUME_TOTASK" "LAPI_RESUME_TOTASK_"]
    PLAPI_Resume_totask ["plapi_resume_totask" "plapi_resume_totask_" "PLAPI_RESUME_TOTASK" "PLAPI_RESUME_TOTASK_"]
    (hndl: Handle, dest: Task)
}

call! {
    LAPI_Setcntr_wstatus ["lapi_setcntr_wstatus" "lapi_setcntr_wstatus_" "LAPI_SETCNTR_WSTATUS" "LAPI_SETCNTR_WSTATUS_"]
    PLAPI_Setcntr_wstatus ["plapi_setcntr_wstatus" "plapi_setcntr_wstatus_" "PLAPI_SETCNTR_WSTATUS" "PLAPI_SETCNTR_WSTATUS_"]
    (hndl: Handle, cntr: Counter, num_dest: Value<c_int>, dest_list: Here<c_uint>, dest_status:
     Here<c_int>)
}
