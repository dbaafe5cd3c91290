//! Every symbol that the library exports to C, and nothing else: each function is one call of `crate::calls`.

// C's names. The manual and the calls themselves state what each call requires of its caller.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]

use crate::calls;
use libc::{c_int, c_longlong, c_uint, c_ulong, c_void};
use openlapi::abi::{
    BYTE_DGSP, PredefinedDgsp, RMW_ops_t, lapi_cntr_t, lapi_handle_t, lapi_info_t, lapi_long_t,
    lapi_msg_info_t, lapi_query_t, lapi_util_t, lapi_vec_t, lapi_xfer_t,
};
use openlapi::api::{LONG_CALL_HOOK, LongCallHook};
use std::sync::atomic::AtomicPtr;

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

        /// PLAPI_X: the names under which a profiling library, which has taken the place of LAPI_X, reaches LAPI_X (the
        /// manual's chapter 9). In Rust the functions are called as those of the other half.
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
