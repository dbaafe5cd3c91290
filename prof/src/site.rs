//! Where a call comes from, and where it is recorded: four words of each thread.
//!
//! A function cannot see its return address in Rust. So each exported symbol is a few instructions
//! that put the address away, in a word of the thread's own, and continue with the function proper
//! with everything else unchanged.
//!
//! The words are read without the call into the loader that a thread-local variable of a shared
//! library costs. Noting the address and reading the words are instructions of the processor, in
//! `site/`. On processors that are not there no call has a place.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(not(call_sites))]
mod other;
#[cfg(target_arch = "powerpc64")]
mod powerpc64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as machine;
use libc::c_void;
#[cfg(not(call_sites))]
use other as machine;
#[cfg(target_arch = "powerpc64")]
use powerpc64 as machine;
#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

/// The address behind the call that has brought this thread here; only at the very beginning of a
/// wrapper. 0 where it is not known.
#[inline(always)]
pub fn site() -> usize {
    machine::load::<0>()
}

/// What [`set_record`] has set in this thread; null before.
#[inline(always)]
pub fn record() -> *const c_void {
    machine::load::<8>() as *const c_void
}

/// Sets the second word of this thread.
#[inline]
pub fn set_record(record: *const c_void) {
    machine::store::<8>(record as usize);
}

/// What [`set_repeated`] has set in this thread; null before, and always where calls are not
/// compared with the one before.
#[inline(always)]
pub fn repeated() -> *const c_void {
    machine::load::<16>() as *const c_void
}

/// Sets the third word of this thread.
#[inline]
pub fn set_repeated(entry: *const c_void) {
    // Elsewhere no instructions compare a call with the one before.
    if cfg!(target_arch = "x86_64") {
        machine::store::<16>(entry as usize);
    }
}

/// The place of the calls of [`placed!`](crate::placed) in this thread; 0: they have none.
#[inline]
pub fn place() -> usize {
    machine::load::<24>()
}

/// Sets the fourth word of this thread.
#[inline]
pub fn set_place(place: usize) {
    machine::store::<24>(place);
}

#[cfg(call_sites)]
std::arch::global_asm!(
    ".pushsection .tbss.lapiprof_site,\"awT\",@nobits",
    ".p2align 3",
    ".globl lapiprof_site",
    ".hidden lapiprof_site",
    ".type lapiprof_site,@object",
    ".size lapiprof_site,32",
    "lapiprof_site:",
    ".zero 32",
    ".popsection",
);

/// Makes a function that notes the place that is set, where `exported!` notes the caller, and
/// continues with the same function.
#[cfg(call_sites)]
#[macro_export]
macro_rules! placed {
    ($name:ident, $body:path, ($($arg:ident: $kind:ty),*)) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name($($arg: $kind),*) -> ::libc::c_int {
            $crate::note_place!($body)
        }
    };
}

/// Exports a symbol that notes its caller and continues with a function of the same arguments.
#[macro_export]
macro_rules! exported {
    // A put like the one before it does not come to the body.
    (LAPI_Put, $body:path, ($($arg:ident: $kind:ty),*)) => {
        /// The call of this name, profiled.
        ///
        /// # Safety
        ///
        /// What the manual asks of the caller.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn LAPI_Put($($arg: $kind),*) -> ::libc::c_int {
            $crate::put_like_the_last!($body)
        }

        #[cfg(not(target_arch = "x86_64"))]
        $crate::exported!(@any LAPI_Put, $body, ($($arg: $kind),*));
    };
    ($symbol:ident, $body:path, ($($arg:ident: $kind:ty),*)) => {
        $crate::exported!(@any $symbol, $body, ($($arg: $kind),*));
    };
    (@any $symbol:ident, $body:path, ($($arg:ident: $kind:ty),*)) => {
        /// The call of this name, profiled.
        ///
        /// # Safety
        ///
        /// What the manual asks of the caller.
        #[cfg(call_sites)]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $symbol($($arg: $kind),*) -> ::libc::c_int {
            $crate::note_caller!(stringify!($symbol), $body)
        }

        /// The call of this name, profiled.
        ///
        /// # Safety
        ///
        /// What the manual asks of the caller.
        #[cfg(not(call_sites))]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $symbol($($arg: $kind),*) -> ::libc::c_int {
            // SAFETY: what is asked of the caller is the same.
            unsafe { $body($($arg),*) }
        }
    };
}
