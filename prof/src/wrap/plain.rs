//! The calls whose arguments go through as they are.

use super::sizes;
use crate::record::Traffic;
use crate::wrapper;
use libc::{c_int, c_longlong, c_uint, c_ulong, c_void};
use openlapi::abi::{
    RMW_ops_t, lapi_cntr_t, lapi_handle_t, lapi_long_t, lapi_msg_info_t, lapi_query_t, lapi_util_t,
    lapi_vec_t,
};

/// The bytes of an argument of the vector calls.
fn vector(vector: *const lapi_vec_t) -> u64 {
    // SAFETY: the program's argument, for a call that reads it likewise.
    unsafe { sizes::of(vector) }
}

wrapper!(
    LAPI_Qenv = c"PLAPI_Qenv",
    Qenv,
    (hndl: lapi_handle_t, query: lapi_query_t, ret_val: *mut c_int),
    None
);
wrapper!(LAPI_Senv = c"PLAPI_Senv", Senv, (hndl: lapi_handle_t, query: lapi_query_t, set_val: c_int), None);
wrapper!(LAPI_Msg_string = c"PLAPI_Msg_string", MsgString, (error_code: c_int, buf: *mut c_void), None);
wrapper!(LAPI_Address = c"PLAPI_Address", Address, (my_addr: *mut c_void, ret_addr: *mut c_ulong), None);
wrapper!(
    LAPI_Address_init = c"PLAPI_Address_init",
    AddressInit,
    (hndl: lapi_handle_t, my_addr: *mut c_void, add_tab: *mut *mut c_void),
    None
);
wrapper!(
    LAPI_Address_init64 = c"PLAPI_Address_init64",
    AddressInit64,
    (hndl: lapi_handle_t, my_addr: lapi_long_t, add_tab: *mut lapi_long_t),
    None
);
wrapper!(
    LAPI_Put = c"PLAPI_Put",
    Put,
    (
        hndl: lapi_handle_t,
        tgt: c_uint,
        len: c_ulong,
        tgt_addr: *mut c_void,
        org_addr: *mut c_void,
        tgt_cntr: *mut lapi_cntr_t,
        org_cntr: *mut lapi_cntr_t,
        cmpl_cntr: *mut lapi_cntr_t
    ),
    Some(Traffic { peer: tgt, bytes: len })
);
wrapper!(
    LAPI_Get = c"PLAPI_Get",
    Get,
    (
        hndl: lapi_handle_t,
        tgt: c_uint,
        len: c_ulong,
        tgt_addr: *mut c_void,
        org_addr: *mut c_void,
        tgt_cntr: *mut lapi_cntr_t,
        org_cntr: *mut lapi_cntr_t
    ),
    Some(Traffic { peer: tgt, bytes: len })
);
wrapper!(
    LAPI_Amsend = c"PLAPI_Amsend",
    Amsend,
    (
        hndl: lapi_handle_t,
        tgt: c_uint,
        hdr_hdl: *mut c_void,
        uhdr: *mut c_void,
        uhdr_len: c_uint,
        udata: *mut c_void,
        udata_len: c_ulong,
        tgt_cntr: *mut lapi_cntr_t,
        org_cntr: *mut lapi_cntr_t,
        cmpl_cntr: *mut lapi_cntr_t
    ),
    Some(Traffic { peer: tgt, bytes: u64::from(uhdr_len).saturating_add(udata_len) })
);
wrapper!(
    LAPI_Rmw = c"PLAPI_Rmw",
    Rmw,
    (
        hndl: lapi_handle_t,
        op: RMW_ops_t,
        tgt: c_uint,
        tgt_var: *mut c_int,
        in_val: *mut c_int,
        prev_tgt_val: *mut c_int,
        org_cntr: *mut lapi_cntr_t
    ),
    Some(Traffic { peer: tgt, bytes: 4 })
);
wrapper!(
    LAPI_Rmw64 = c"PLAPI_Rmw64",
    Rmw64,
    (
        hndl: lapi_handle_t,
        op: RMW_ops_t,
        tgt: c_uint,
        tgt_var: *mut c_longlong,
        in_val: *mut c_longlong,
        prev_tgt_val: *mut c_longlong,
        org_cntr: *mut lapi_cntr_t
    ),
    Some(Traffic { peer: tgt, bytes: 8 })
);
wrapper!(LAPI_Util = c"PLAPI_Util", Util, (hndl: lapi_handle_t, util_cmd: *mut lapi_util_t), None);
wrapper!(
    LAPI_Getcntr = c"PLAPI_Getcntr",
    Getcntr,
    (hndl: lapi_handle_t, cntr: *mut lapi_cntr_t, val: *mut c_int),
    None
);
wrapper!(
    LAPI_Setcntr = c"PLAPI_Setcntr",
    Setcntr,
    (hndl: lapi_handle_t, cntr: *mut lapi_cntr_t, val: c_int),
    None
);
wrapper!(
    LAPI_Waitcntr = c"PLAPI_Waitcntr",
    Waitcntr,
    (hndl: lapi_handle_t, cntr: *mut lapi_cntr_t, val: c_int, cur_cntr_val: *mut c_int),
    None
);
wrapper!(LAPI_Probe = c"PLAPI_Probe", Probe, (hndl: lapi_handle_t), None);
wrapper!(
    LAPI_Msgpoll = c"PLAPI_Msgpoll",
    Msgpoll,
    (hndl: lapi_handle_t, cnt: c_uint, info: *mut lapi_msg_info_t),
    None
);
wrapper!(LAPI_Fence = c"PLAPI_Fence", Fence, (hndl: lapi_handle_t), None);
wrapper!(LAPI_Gfence = c"PLAPI_Gfence", Gfence, (hndl: lapi_handle_t), None);
wrapper!(
    LAPI_Amsendv = c"PLAPI_Amsendv",
    Amsendv,
    (
        hndl: lapi_handle_t,
        tgt: c_uint,
        hdr_hdl: *mut c_void,
        uhdr: *mut c_void,
        uhdr_len: c_uint,
        org_vec: *mut lapi_vec_t,
        tgt_cntr: *mut lapi_cntr_t,
        org_cntr: *mut lapi_cntr_t,
        cmpl_cntr: *mut lapi_cntr_t
    ),
    Some(Traffic { peer: tgt, bytes: u64::from(uhdr_len).saturating_add(vector(org_vec)) })
);
wrapper!(
    LAPI_Putv = c"PLAPI_Putv",
    Putv,
    (
        hndl: lapi_handle_t,
        tgt: c_uint,
        tgt_vec: *mut lapi_vec_t,
        org_vec: *mut lapi_vec_t,
        tgt_cntr: *mut lapi_cntr_t,
        org_cntr: *mut lapi_cntr_t,
        cmpl_cntr: *mut lapi_cntr_t
    ),
    Some(Traffic { peer: tgt, bytes: vector(org_vec) })
);
wrapper!(
    LAPI_Getv = c"PLAPI_Getv",
    Getv,
    (
        hndl: lapi_handle_t,
        tgt: c_uint,
        tgt_vec: *mut lapi_vec_t,
        org_vec: *mut lapi_vec_t,
        tgt_cntr: *mut lapi_cntr_t,
        org_cntr: *mut lapi_cntr_t
    ),
    Some(Traffic { peer: tgt, bytes: vector(org_vec) })
);
wrapper!(
    LAPI_Nopoll_wait = c"PLAPI_Nopoll_wait",
    NopollWait,
    (hndl: lapi_handle_t, cntr_ptr: *mut lapi_cntr_t, val: c_int, cur_cntr_val: *mut c_int),
    None
);
wrapper!(LAPI_Purge_totask = c"PLAPI_Purge_totask", PurgeTotask, (hndl: lapi_handle_t, dest: c_uint), None);
wrapper!(
    LAPI_Resume_totask = c"PLAPI_Resume_totask",
    ResumeTotask,
    (hndl: lapi_handle_t, dest: c_uint),
    None
);
wrapper!(
    LAPI_Setcntr_wstatus = c"PLAPI_Setcntr_wstatus",
    SetcntrWstatus,
    (
        hndl: lapi_handle_t,
        cntr: *mut lapi_cntr_t,
        num_dest: c_int,
        dest_list: *mut c_uint,
        dest_status: *mut c_int
    ),
    None
);
