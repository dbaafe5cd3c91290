//! The wrappers: every call of LAPI by its own name.
//!
//! Each makes the call with its own arguments and records it. Arguments differ in two cases only, so that handlers can
//! be timed: LAPI_Addr_set, and LAPI_Xfer with a handler of the origin
//! ([`crate::handlers`]).

mod ends;
mod plain;
mod sizes;
mod xfer;

/// A wrapper: the exported symbol, and a function that makes the call by its PLAPI_ name and records it.
/// `$moved` computes what it moves from its arguments.
#[macro_export]
macro_rules! wrapper {
    ($symbol:ident = $real:literal, $call:ident, ($($arg:ident: $kind:ty),*), $moved:expr) => {
        const _: () = {
            $crate::exported!($symbol, body, ($($arg: $kind),*));

            unsafe extern "C" fn body($($arg: $kind),*) -> ::libc::c_int {
                static REAL: $crate::real::Real = $crate::real::Real::new($real);
                let site = $crate::site::site();
                let traffic: Option<$crate::record::Traffic> = $moved;
                type Real = unsafe extern "C" fn($($kind),*) -> ::libc::c_int;
                // SAFETY: the symbol of this name has this type.
                let real = unsafe { ::std::mem::transmute::<*mut ::libc::c_void, Real>(REAL.address()) };
                let start = ::openlapi::base::clock::ticks();
                // SAFETY: the caller's own arguments, for the call it has made.
                let code = unsafe { real($($arg),*) };
                $crate::record::record($crate::record::Seen {
                    call: $crate::calls::Call::$call,
                    site,
                    start,
                    end: ::openlapi::base::clock::ticks(),
                    good: code == 0,
                    traffic,
                });
                code
            }
        };
    };
}
