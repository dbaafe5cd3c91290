//! Counters, and the conditions that go with a context's lock.

use super::lapi_long_t;
use libc::{c_int, c_uint};

/// A counter. A zeroed one is ready for use; cntr is its value.
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
