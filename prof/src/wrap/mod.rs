//! The wrappers: every call of LAPI by its own name, made from the table of calls.
//!
//! Each makes the call with the program's arguments and records it.

mod arguments;
mod ends;
#[cfg(call_sites)]
mod fortran;
mod placed;
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

        /// The twin of the function of this name; `None` where calls have no places.
        #[cfg(call_sites)]
        fn twin(name: &[u8]) -> Option<*mut c_void> {
            $(
                $crate::placed!($call, bodies::$call, ($($argument: $type),*));
                if name == stringify!($name).as_bytes() {
                    return Some($call as *mut c_void);
                }
            )*
            None
        }
    };
}

openlapi::for_each_call!(wrap);

/// None: calls have no places here.
#[cfg(not(call_sites))]
fn twin(_name: &[u8]) -> Option<*mut c_void> {
    None
}
