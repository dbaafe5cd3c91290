//! The wrappers: every call of LAPI by its own name, made from the table of calls.
//!
//! Each makes the call with the program's arguments and records it.

mod arguments;
mod ends;
mod sizes;
mod traffic;
mod xfer;

use crate::exported;
use arguments::Arguments as _;
use libc::{c_int, c_longlong, c_uint, c_ulong, c_void};
use openlapi::abi::*;

/// Exports the calls of the table.
macro_rules! wrap {
    ($($(#[$doc:meta])* $name:ident $call:ident $capitals:ident
        ($($argument:ident: $type:ty as $kind:ident),* $(,)?);)*) => {
        $(
            exported!($name, bodies::$call, ($($argument: $type),*));
        )*

        mod bodies {
            use super::*;

            $(
                pub unsafe extern "C" fn $call($($argument: $type),*) -> c_int {
                    let site = crate::site::site();
                    let arguments = arguments::$name { $($argument),* };
                    // SAFETY: the caller's own arguments, for the call it has made.
                    unsafe { arguments.profiled(site, arguments.traffic()) }
                }
            )*
        }
    };
}

openlapi::for_each_call!(wrap);
