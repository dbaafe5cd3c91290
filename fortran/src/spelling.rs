//! How a line of the table of calls becomes functions.
//!
//! A Fortran compiler makes the name of the symbol by a rule of its own: `CALL LAPI_PUT` may ask for `lapi_put_`
//! (gfortran, flang), `lapi_put`, `LAPI_PUT` or `LAPI_PUT_`. All four are here, and the same four with a P in front for
//! the profiling interface (the manual's chapter 9). None of them is the C function: that has capital and small letters.
//!
//! The plain name, `lapi_put`, does the work; the other three go on to it, and it goes on to the C function. Each of
//! these steps is taken by name, so that a wrapper which a program puts in front, in C or in Fortran, is met by every
//! call.

/// The function of this name and type that is to be called; `$own` is the library's.
macro_rules! by_name {
    ($name:expr, $own:ident: $type:ty) => {{
        const NAME: &str = concat!($name, "\0");
        static FUNCTION: crate::by_name::ByName =
            crate::by_name::ByName::new(match std::ffi::CStr::from_bytes_with_nul(NAME.as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            });
        let own: $type = $own;
        // SAFETY: whoever puts a function of this name in front of the library's gives it the same type.
        std::mem::transmute::<*const libc::c_void, $type>(FUNCTION.address(own as *const libc::c_void))
    }};
}

/// A function by four names: the first has the body, the others go on to the first.
macro_rules! spellings {
    ([$plain:literal $low:literal $high:literal $capital:literal]
     ($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        const _: () = {
            #[unsafe(export_name = $plain)]
            unsafe extern "C" fn plain($($argument: $type),*) $body
            another!($low $plain plain ($($argument: $type),*));
            another!($high $plain plain ($($argument: $type),*));
            another!($capital $plain plain ($($argument: $type),*));
        };
    };
}

/// One more name of the function `$own`, whose own name is `$plain`.
macro_rules! another {
    ($name:literal $plain:literal $own:ident ($($argument:ident: $type:ty),*)) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn another($($argument: $type),*) {
                type Same = unsafe extern "C" fn($($type),*);
                // SAFETY: the same arguments, and whoever takes the place of the function takes them too.
                unsafe { by_name!($plain, $own: Same)($($argument),*) }
            }
        };
    };
}

/// A call that differs from C's by its arguments alone: its function, names and arguments, and the same for its
/// profiling form.
macro_rules! call {
    ($c:ident $names:tt $profiled:ident $profiled_names:tt $arguments:tt) => {
        call!($c $names $arguments);
        call!($profiled $profiled_names $arguments);
    };
    ($c:ident $names:tt ($($argument:ident: $type:ty),* $(,)?)) => {
        spellings! { $names ($($argument: $type,)* ierror: Code) {
            type InC = unsafe extern "C" fn($(<$type as Argument>::C),*) -> c_int;
            // SAFETY: the program's variables, as the man page wants them.
            unsafe { ierror.set(by_name!(stringify!($c), $c: InC)($($argument.c()),*)) }
        } }
    };
}
