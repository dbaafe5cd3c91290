//! The functions that a program hands to LAPI, and the ones it gets from LAPI_GET_THREAD_FUNC.
//!
//! In C these are function types and the fields hold pointers to them (`compl_hndlr_t *`); a Rust
//! `fn` is such a pointer already. A name in `..._p` is the pointer that may be null.

use super::{lapi_cond_t, lapi_err_t, lapi_handle_t, lapi_sh_info_t, lapi_udp_t, lapi_udpinfo_t, lapi_vec_t};
use libc::{c_int, c_long, c_uint, c_ulong, c_void, pthread_t, sockaddr_storage, timespec};

/// Runs at the target when the first packet of an active message is there; returns where its data
/// shall go. `msg_len` points at the first field of a lapi_return_info_t.
pub type hdr_hndlr_t = unsafe extern "C" fn(
    hndl: *mut lapi_handle_t,
    uhdr: *mut c_void,
    uhdr_len: *mut c_uint,
    msg_len: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    uinfo: *mut *mut c_void,
) -> *mut c_void;
/// A [`hdr_hndlr_t`], or null.
pub type hdr_hndlr_p = Option<hdr_hndlr_t>;

/// Like a header handler, for a vector: returns the target's vector.
pub type vhdr_hndlr_t = unsafe extern "C" fn(
    hndl: *mut lapi_handle_t,
    uhdr: *mut c_void,
    uhdr_len: *mut c_uint,
    len_vec: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    uinfo: *mut *mut c_void,
) -> *mut lapi_vec_t;
/// A [`vhdr_hndlr_t`], or null.
pub type vhdr_hndlr_p = Option<vhdr_hndlr_t>;

/// Runs when all data of a message has arrived.
pub type compl_hndlr_t = unsafe extern "C" fn(hndl: *mut lapi_handle_t, completion_param: *mut c_void);
/// A [`compl_hndlr_t`], or null.
pub type compl_hndlr_p = Option<compl_hndlr_t>;

/// Runs at the origin when the data may be changed again.
pub type scompl_hndlr_t =
    unsafe extern "C" fn(hndl: *mut lapi_handle_t, completion_param: *mut c_void, info: *mut lapi_sh_info_t);
/// A [`scompl_hndlr_t`], or null.
pub type scompl_hndlr_p = Option<scompl_hndlr_t>;

/// Gets the errors that no call can return. `task_id` is the task it runs in, `src` the other one.
pub type LAPI_err_hndlr = unsafe extern "C" fn(
    hndl: *mut lapi_handle_t,
    error_code: *mut c_int,
    err_type: *mut lapi_err_t,
    task_id: *mut c_int,
    src: *mut c_int,
);
/// An error handler ([`LAPI_err_hndlr`]), or null.
pub type LAPI_err_hndlr_p = Option<LAPI_err_hndlr>;

/// Combines arriving data with what is at its place; returns the number of bytes it has processed.
pub type ddm_func_t = unsafe extern "C" fn(
    r#in: *mut c_void,
    inout: *mut c_void,
    bytes: c_long,
    operand: c_int,
    operation: c_int,
) -> c_long;
/// A [`ddm_func_t`], or null.
pub type ddm_func_p = Option<ddm_func_t>;

/// Gives LAPI_Init the UDP address of every task; any result but 0 is a failure.
pub type udp_init_hndlr = unsafe extern "C" fn(
    hndl: *mut lapi_handle_t,
    local_addr: *mut lapi_udp_t,
    addr_list: *mut lapi_udp_t,
    info: *mut lapi_udpinfo_t,
) -> c_int;
/// A [`udp_init_hndlr`], or null.
pub type udp_init_hndlr_p = Option<udp_init_hndlr>;

/// Gives LAPI_Init the address of every task, of any family; any result but 0 is a failure.
pub type udp_init_ext_hndlr = unsafe extern "C" fn(
    hndl: *mut lapi_handle_t,
    local_addr: *mut sockaddr_storage,
    addr_list: *mut sockaddr_storage,
    info: *mut lapi_udpinfo_t,
) -> c_int;
/// A [`udp_init_ext_hndlr`], or null.
pub type udp_init_ext_hndlr_p = Option<udp_init_ext_hndlr>;

/// Called at the start of every thread that LAPI creates, with parm_ptr and extra_ptr of
/// com_thread_info_t.
pub type thread_init_func_t = unsafe extern "C" fn(parm: *mut c_void, extra: *mut c_void) -> *mut c_void;
/// A [`thread_init_func_t`], or null.
pub type thread_init_func_p = Option<thread_init_func_t>;

/// Takes the context's lock: 0, or EINVAL for a wrong handle.
pub type lapi_mutex_lock_t = Option<unsafe extern "C" fn(hndl: lapi_handle_t) -> c_int>;
/// Releases the context's lock: 0, or EINVAL for a wrong handle.
pub type lapi_mutex_unlock_t = Option<unsafe extern "C" fn(hndl: lapi_handle_t) -> c_int>;
/// Takes the context's lock if it is free: 0, EBUSY, or EINVAL for a wrong handle.
pub type lapi_mutex_trylock_t = Option<unsafe extern "C" fn(hndl: lapi_handle_t) -> c_int>;
/// Returns the thread that holds the context's lock, LAPI_NULL_THREAD_ID if none does.
pub type lapi_mutex_getowner_t =
    Option<unsafe extern "C" fn(hndl: lapi_handle_t, tid: *mut pthread_t) -> c_int>;
/// Waits for a condition, without the lock meanwhile.
pub type lapi_cond_wait_t =
    Option<unsafe extern "C" fn(hndl: lapi_handle_t, cond: *mut lapi_cond_t) -> c_int>;
/// Waits for a condition until an absolute time of CLOCK_REALTIME: 0, or ETIMEDOUT.
pub type lapi_cond_timedwait_t = Option<
    unsafe extern "C" fn(hndl: lapi_handle_t, cond: *mut lapi_cond_t, timeout: *mut timespec) -> c_int,
>;
/// Wakes one thread that waits for a condition.
pub type lapi_cond_signal_t =
    Option<unsafe extern "C" fn(hndl: lapi_handle_t, cond: *mut lapi_cond_t) -> c_int>;
/// Sets up a condition.
pub type lapi_cond_init_t =
    Option<unsafe extern "C" fn(hndl: lapi_handle_t, cond: *mut lapi_cond_t) -> c_int>;
/// Takes down a condition: 0, or EBUSY while a thread waits for it.
pub type lapi_cond_destroy_t =
    Option<unsafe extern "C" fn(hndl: lapi_handle_t, cond: *mut lapi_cond_t) -> c_int>;
