//! How a line of the table of calls becomes functions.
//!
//! A Fortran compiler makes the name of the symbol by a rule of its own: `CALL LAPI_PUT` may ask for `lapi_put_`
//! (gfortran, flang), `lapi_put`, `LAPI_PUT` or `LAPI_PUT_`. All four are here, and the same four with a P in front for
//! the profiling interface (the manual's chapter 9). None of them is the C function: that has capital and small letters.
//!
//! The plain name, `lapi_put`, does the work; the other three go on to it, and it goes on to the C function. Each of
//! these steps is taken by the dynamic linker's word, so that a wrapper which a program puts in front, in C or in
//! Fortran, is met by every call.

/// What stands in a static that the dynamic linker fills in. The compiler cannot foresee it, and call the library's own
/// function straight away.
pub fn filled_in<F: Copy>(place: &'static F) -> F {
    // SAFETY: a static can always be read.
    unsafe { std::ptr::read_volatile(place) }
}

/// The function of this name that the dynamic linker has chosen: the program's own, if it has one.
macro_rules! through {
    ($function:ident: $type:ty) => {{
        static CHOSEN: $type = $function;
        crate::spelling::filled_in(&CHOSEN)
    }};
}

/// A function by four names: the first has the body, the others go on to the first.
macro_rules! spellings {
    ([$plain:literal $low:literal $high:literal $capital:literal]
     ($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        const _: () = {
            #[unsafe(export_name = $plain)]
            unsafe extern "C" fn plain($($argument: $type),*) $body
            another!($low plain ($($argument: $type),*));
            another!($high plain ($($argument: $type),*));
            another!($capital plain ($($argument: $type),*));
        };
    };
}

/// One more name of the function `$plain`.
macro_rules! another {
    ($name:literal $plain:ident ($($argument:ident: $type:ty),*)) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn another($($argument: $type),*) {
                type Same = unsafe extern "C" fn($($type),*);
                // SAFETY: the same arguments, and whoever takes the place of the function takes them too.
                unsafe { through!($plain: Same)($($argument),*) }
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
            unsafe { ierror.set(through!($c: InC)($($argument.c()),*)) }
        } }
    };
}
