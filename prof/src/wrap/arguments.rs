//! The arguments of each call, as a structure of its name.

use crate::calls::Call;
use crate::real::Real;
use crate::record::{Seen, Traffic, call_begins, record, untimed};
use libc::{c_int, c_longlong, c_uint, c_ulong, c_void};
use openlapi::abi::*;
use openlapi::base::clock::ticks;
use std::ffi::CStr;
use std::mem::transmute;

/// What all calls have. A call that moves data has a method `traffic` of its own, and a call that
/// does more than this a method `profiled` of its own: these have precedence over the methods here.
pub trait Arguments: Copy {
    /// The call.
    const CALL: Call;

    /// Looks LAPI's own function up, if the library has it.
    fn prepare();

    /// Finds LAPI's own function, so that the search does not count as time of the call.
    fn find();

    /// Makes the call, by LAPI's own function.
    ///
    /// # Safety
    ///
    /// As the man page of the call.
    unsafe fn make(self) -> c_int;

    /// What the call moves.
    ///
    /// # Safety
    ///
    /// As the man page of the call.
    #[inline(always)]
    unsafe fn traffic(&self) -> Option<Traffic> {
        None
    }

    /// Makes the call and records it, with its place in the program and what it moves.
    ///
    /// # Safety
    ///
    /// As the man page of the call.
    #[inline(always)]
    unsafe fn profiled(self, site: usize, traffic: Option<Traffic>) -> c_int {
        if const { Self::CALL.may_go_untimed() }
            && let Some(untimed) = untimed(Self::CALL, site)
        {
            // SAFETY: the caller's promise.
            let code = unsafe { self.make() };
            untimed.ended(code == LAPI_SUCCESS, traffic);
            return code;
        }
        // Not part of the time.
        Self::find();
        let start = ticks();
        let before = call_begins(Self::CALL, site, start);
        // SAFETY: the caller's promise.
        let code = unsafe { self.make() };
        let seen = Seen { call: Self::CALL, site, start, end: ticks(), good: code == LAPI_SUCCESS, traffic };
        record(seen, before);
        code
    }
}

macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident $call:ident $capitals:ident
        ($($argument:ident: $type:ty as $kind:ident),* $(,)?);)*) => {
        $(
            #[allow(non_camel_case_types, reason = "C's name")]
            #[derive(Clone, Copy)]
            pub struct $name {
                $(pub $argument: $type,)*
            }

            const _: () = {
                static REAL: Real = Real::new(with_final_zero(concat!("P", stringify!($name), "\0")));

                impl Arguments for $name {
                    const CALL: Call = Call::$name;

                    fn prepare() {
                        REAL.prepare();
                    }

                    #[inline(always)]
                    fn find() {
                        REAL.address();
                    }

                    #[inline(always)]
                    unsafe fn make(self) -> c_int {
                        type Function = unsafe extern "C" fn($($type),*) -> c_int;
                        // SAFETY: the symbol of this name has this type.
                        let real = unsafe { transmute::<*mut c_void, Function>(REAL.address()) };
                        // SAFETY: the caller's promise.
                        unsafe { real($(self.$argument),*) }
                    }
                }
            };
        )*

        /// Looks up all real functions. The first call of one may be in a thread of the library,
        /// which must not wait for the loader's lock.
        pub fn find_all() {
            $($name::prepare();)*
        }
    };
}

openlapi::for_each_call!(structures);

const fn with_final_zero(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name ends with its only zero"),
    }
}
