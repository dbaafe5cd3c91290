//! How a line of the table of calls becomes functions.
//!
//! A Fortran compiler makes the name of the symbol by a rule of its own: `CALL LAPI_PUT` may ask
//! for `lapi_put_` (gfortran, flang), `lapi_put`, `LAPI_PUT` or `LAPI_PUT_`. All four are here, and
//! the same four with a P in front for the profiling interface (the manual's chapter 9). None of
//! them is the C function: that has capital and small letters.
//!
//! The plain name, `lapi_put`, does the work; the other three go on to it, and it goes on to the C
//! function. Each of these steps is taken by name, so that a wrapper which a program puts in front,
//! in C or in Fortran, is met by every call.

/// The table of calls, each by both of its C names.
macro_rules! calls {
    ($($(#[$doc:meta])* $c:ident $lower:ident $upper:ident $arguments:tt;)*) => { $(
        call! { $c "" "lapi_" "LAPI_" (openlapi_capi::$c) $lower $upper $arguments }
        call! { $c "P" "plapi_" "PLAPI_" (openlapi_capi::plapi::$c) $lower $upper $arguments }
    )* };
}

/// A line of the table: the C name, what stands before each name, the library's own function, and
/// the rest of the line.
macro_rules! call {
    (LAPI_Init $p:literal $low:literal $high:literal ($own:path) $lower:ident $upper:ident
     ($hndl:ident: $handle:ty as $k0:ident, $info:ident: $type:ty as $k1:ident)) => {
        spellings! { $low $high $lower $upper ($hndl: Here<$handle>, $info: Here<$type>, ierror: Code) {
            type InC = unsafe extern "C" fn($handle, $type) -> c_int;
            common::set_up();
            // SAFETY: the program's variables, as the man page wants them.
            unsafe { ierror.set(by_name!(concat!($p, "LAPI_Init"), $own: InC)($hndl.c(), $info.c())) }
        } }
    };
    (LAPI_Msg_string $p:literal $low:literal $high:literal ($own:path) $lower:ident $upper:ident $arguments:tt) => {
        spellings! { $low $high $lower $upper
            (code: Value<c_int>, buf: *mut c_char, ierror: Code, length: size_t)
        {
            // SAFETY: the program's variables, as the man page wants them.
            unsafe {
                let in_c = by_name!(concat!($p, "LAPI_Msg_string"), $own: text::InC);
                ierror.set(text::message(in_c, code.c(), buf, length))
            }
        } }
    };
    (LAPI_Util $p:literal $low:literal $high:literal ($own:path) $lower:ident $upper:ident $arguments:tt) => {
        spellings! { $low $high $lower $upper
            (hndl: Value<lapi_handle_t>, util_cmd: *mut lapi_util_t, ierror: Code)
        {
            // SAFETY: the program's variables, as the man page wants them.
            unsafe {
                let in_c = by_name!(concat!($p, "LAPI_Util"), $own: ddm::InC);
                ierror.set(ddm::util(in_c, hndl.c(), util_cmd))
            }
        } }
    };
    ($c:ident $p:literal $low:literal $high:literal ($own:path) $lower:ident $upper:ident
     ($($argument:ident: $type:ty as $kind:ident),* $(,)?)) => {
        spellings! { $low $high $lower $upper ($($argument: $kind<$type>,)* ierror: Code) {
            type InC = unsafe extern "C" fn($($type),*) -> c_int;
            // SAFETY: the program's variables, as the man page wants them.
            unsafe { ierror.set(by_name!(concat!($p, stringify!($c)), $own: InC)($($argument.c()),*)) }
        } }
    };
}

/// A function by four names: the first has the body, the others go on to the first.
macro_rules! spellings {
    ($low:literal $high:literal $lower:ident $upper:ident
     ($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        const _: () = {
            #[unsafe(export_name = concat!($low, stringify!($lower)))]
            unsafe extern "C" fn plain($($argument: $type),*) $body
            another!((concat!($low, stringify!($lower), "_")) $low $lower plain ($($argument: $type),*));
            another!((concat!($high, stringify!($upper))) $low $lower plain ($($argument: $type),*));
            another!((concat!($high, stringify!($upper), "_")) $low $lower plain ($($argument: $type),*));
        };
    };
}

/// One more name of the function `$own`, whose own name is `$low` and `$lower`.
macro_rules! another {
    (($name:expr) $low:literal $lower:ident $own:ident ($($argument:ident: $type:ty),*)) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn another($($argument: $type),*) {
                type Same = unsafe extern "C" fn($($type),*);
                // SAFETY: the same arguments, and a function that takes the place of this one
                // takes them too.
                unsafe { by_name!(concat!($low, stringify!($lower)), $own: Same)($($argument),*) }
            }
        };
    };
}

/// The function of this name and type that is to be called; `$own` is the library's.
macro_rules! by_name {
    ($name:expr, $own:path: $type:ty) => {{
        const NAME: &str = concat!($name, "\0");
        static FUNCTION: crate::by_name::ByName =
            crate::by_name::ByName::new(match std::ffi::CStr::from_bytes_with_nul(NAME.as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            });
        let own: $type = $own;
        // SAFETY: a function of this name that stands in front of the library's has the same type.
        std::mem::transmute::<*const libc::c_void, $type>(FUNCTION.address(own as *const libc::c_void))
    }};
}
