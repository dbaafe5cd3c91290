//! LAPI_Fence and LAPI_Gfence.

use crate::boundary;
use libc::c_int;
use openlapi::abi::lapi_handle_t;
use openlapi::api::fence;

pub(crate) unsafe fn fence(hndl: lapi_handle_t) -> c_int {
    boundary::call("LAPI_Fence", hndl, fence::fence)
}

pub(crate) unsafe fn gfence(hndl: lapi_handle_t) -> c_int {
    boundary::call("LAPI_Gfence", hndl, fence::gfence)
}
