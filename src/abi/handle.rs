//! Handles, counters and conditions: what a program holds of LAPI.

use libc::{c_int, c_uint, c_ulong, c_ulonglong, pthread_t};

/// A LAPI context, as LAPI_Init gives it out.
pub type lapi_handle_t = c_uint;
/// 64 bits in 32-bit programs too: wide enough for an address of any task.
pub type lapi_long_t = c_ulonglong;
/// What a LAPI_Util or LAPI_Xfer structure carries back.
pub type lapi_status_t = c_uint;
/// A message length in bytes.
pub type lapi_msglen_t = c_ulong;
/// The number of a task, in `css_shared.h`.
pub type css_task_t = c_uint;
/// An RDMA context of another task.
pub type lapi_user_cxt_t = c_uint;
/// A piece of memory registered for RDMA.
pub type lapi_user_pvo_t = c_ulonglong;

/// No context.
pub const LAPI_VOID_HANDLE: lapi_handle_t = lapi_handle_t::MAX;
/// What mutex_getowner answers when nobody holds the lock.
pub const LAPI_NULL_THREAD_ID: pthread_t = pthread_t::MAX;

/// A counter. A zeroed one is ready for use; [`Self::cntr`] is its value.
///
/// With L1_LIB only the first four bytes belong to LAPI: such programs may have allocated no more.
#[repr(C)]
#[derive(Clone, Copy)]
pub union lapi_cntr_t {
    /// The value. Programs read it without a call; LAPI changes it atomically.
    pub cntr: c_int,
    /// The whole counter, from L2_LIB on.
    pub record: lapi_cntr_record_t,
}

impl lapi_cntr_t {
    /// A counter that stands at `value`.
    pub const fn new(value: c_int) -> Self {
        let record = lapi_cntr_record_t {
            cntr: value,
            flags: 0,
            waiter: 0,
            num_dest: 0,
            pad: 0,
            dest_list: 0,
            dest_status: 0,
            reserve: [0; 17],
        };
        Self { record }
    }
}

/// The inside of a counter from L2_LIB on. Addresses are 64 bits wide in 32-bit programs too.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_cntr_record_t {
    /// The value.
    pub cntr: c_int,
    /// The library's own marks.
    pub flags: c_uint,
    /// The thread that waits for the counter, 0 for none.
    pub waiter: lapi_long_t,
    /// The length of dest_list and dest_status.
    pub num_dest: c_int,
    /// Keeps the next field 8-aligned.
    pub pad: c_uint,
    /// The address of LAPI_Setcntr_wstatus's dest_list, 0 for none.
    pub dest_list: lapi_long_t,
    /// The address of LAPI_Setcntr_wstatus's dest_status, 0 for none.
    pub dest_status: lapi_long_t,
    /// Not used.
    pub reserve: [lapi_long_t; 17],
}

/// A condition to be used with a context's lock (LAPI_GET_THREAD_FUNC); set up by cond_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub union lapi_cond_t {
    /// Room for a condition of the thread library.
    pub cond: libc::pthread_cond_t,
    /// The size, fixed.
    pub reserve: [lapi_long_t; 8],
}
