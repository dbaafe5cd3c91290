//! Every symbol that the library exports to C, and nothing else: each function is one call of
//! `crate::calls`.

// C's names. The manual and the calls themselves state what each call requires of its caller.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]

use crate::calls;
use libc::{c_int, c_longlong, c_uint, c_ulong, c_void};
use openlapi::abi::{
    BYTE_DGSP, PredefinedDgsp, RMW_ops_t, lapi_cntr_t, lapi_handle_t, lapi_info_t, lapi_long_t,
    lapi_msg_info_t, lapi_query_t, lapi_util_t, lapi_vec_t, lapi_xfer_t,
};
use openlapi::api::{CALLER_HOOK, CallerHook, HANDLER_HOOK, HandlerHook, LONG_CALL_HOOK, LongCallHook};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The table of calls as functions by both of their names.
macro_rules! export {
    ($($(#[$doc:meta])* $name:ident $call:ident $capitals:ident
        ($($argument:ident: $type:ty as $kind:ident),* $(,)?);)*) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
                // SAFETY: what the manual asks of the caller is what the call asks.
                unsafe { calls::$call($($argument),*) }
            }
        )*

        /// PLAPI_X: the names under which a profiling library, which has taken the place of LAPI_X,
        /// reaches LAPI_X (the manual's chapter 9). In Rust the functions are called as those of
        /// the other half.
        pub mod plapi {
            use super::*;

            $(
                $(#[$doc])*
                #[unsafe(export_name = concat!("P", stringify!($name)))]
                pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
                    // SAFETY: what the manual asks of the caller is what the call asks.
                    unsafe { calls::$call($($argument),*) }
                }
            )*
        }
    };
}

openlapi::for_each_call!(export);

/// The handle of contiguous bytes; in C, `extern const lapi_dg_handle_t LAPI_BYTE`.
#[unsafe(no_mangle)]
pub static LAPI_BYTE: &PredefinedDgsp = &BYTE_DGSP;

/// For the profiler alone: what is called where a call may take long.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "a name of the linker")]
pub static lapi_long_call_hook: &AtomicPtr<LongCallHook> = &LONG_CALL_HOOK;

/// For interpreters alone: what is asked for the place of a call, in reports.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "a name of the linker")]
pub static lapi_caller_hook: &AtomicPtr<CallerHook> = &CALLER_HOOK;

/// For the profiler alone: what is called in the place of each handler of the program.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "a name of the linker")]
pub static lapi_handler_hook: &AtomicPtr<HandlerHook> = &HANDLER_HOOK;

/// For the profiler alone: LAPI_Put that ends with a hook.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "a name of the linker")]
pub static lapi_hooked_put: &HookedPut = &HOOKED_PUT;

static HOOKED_PUT: HookedPut = HookedPut { hook: AtomicPtr::new(null_mut()), put: hooked_put };

/// See [`lapi_hooked_put`].
#[repr(C)]
pub struct HookedPut {
    /// Called at the end of `put` with its return code, which it returns; or null.
    hook: AtomicPtr<extern "C" fn(code: c_int) -> c_int>,
    /// LAPI_Put with the hook. The profiler's own LAPI_Put jumps here, without a return
    /// address of its own: what it would store beside the data of a put waits for the same
    /// room in the processor.
    put: unsafe extern "C" fn(
        lapi_handle_t,
        c_uint,
        c_ulong,
        *mut c_void,
        *mut c_void,
        *mut lapi_cntr_t,
        *mut lapi_cntr_t,
        *mut lapi_cntr_t,
    ) -> c_int,
}

unsafe extern "C" fn hooked_put(
    hndl: lapi_handle_t,
    tgt: c_uint,
    len: c_ulong,
    tgt_addr: *mut c_void,
    org_addr: *mut c_void,
    tgt_cntr: *mut lapi_cntr_t,
    org_cntr: *mut lapi_cntr_t,
    cmpl_cntr: *mut lapi_cntr_t,
) -> c_int {
    // SAFETY: what the manual asks of the caller of LAPI_Put is what the call asks.
    let code =
        unsafe { calls::put_in::<1>(hndl, tgt, len, tgt_addr, org_addr, tgt_cntr, org_cntr, cmpl_cntr) };
    // SAFETY: null, or the profiler's constant.
    match unsafe { HOOKED_PUT.hook.load(Ordering::Relaxed).as_ref() } {
        Some(hook) => hook(code),
        None => code,
    }
}
