//! Where a call comes from, and where it is recorded: four words of each thread.
//!
//! A function cannot see its return address in Rust. So each exported symbol is a few instructions
//! that put the address away, in a word of the thread's own, and continue with the function proper
//! with everything else unchanged.
//!
//! The words are read without the call into the loader that a thread-local variable of a shared
//! library costs.

use libc::c_void;

/// The address behind the call that has brought this thread here; only at the very beginning of a
/// wrapper. 0 where it is not known.
#[inline(always)]
pub fn site() -> usize {
    word::load::<0>()
}

/// What [`set_record`] has set in this thread; null before.
#[inline(always)]
pub fn record() -> *const c_void {
    word::load::<8>() as *const c_void
}

/// Sets the second word of this thread.
#[inline]
pub fn set_record(record: *const c_void) {
    word::store::<8>(record as usize);
}

/// What [`set_repeated`] has set in this thread; null before, and always where calls are not
/// compared with the one before.
#[inline(always)]
pub fn repeated() -> *const c_void {
    word::load::<16>() as *const c_void
}

/// Sets the third word of this thread.
#[inline]
pub fn set_repeated(entry: *const c_void) {
    word::store::<16>(entry as usize);
}

/// The place of the calls of [`placed!`](crate::placed) in this thread; 0: they have none.
#[inline]
pub fn place() -> usize {
    word::load::<24>()
}

/// Sets the fourth word of this thread.
#[inline]
pub fn set_place(place: usize) {
    word::store::<24>(place);
}

#[cfg(target_arch = "x86_64")]
mod word {
    /// Reads the word at this place.
    #[inline(always)]
    pub fn load<const AT: usize>() -> usize {
        let word;
        // SAFETY: reads one of the words below.
        unsafe {
            std::arch::asm!(
                "mov {word}, qword ptr [rip + lapiprof_site@GOTTPOFF]",
                "mov {word}, qword ptr fs:[{word} + {at}]",
                word = out(reg) word,
                at = const AT,
                options(nostack, preserves_flags, readonly),
            );
        }
        word
    }

    /// Writes it.
    #[inline(always)]
    pub fn store<const AT: usize>(value: usize) {
        // SAFETY: writes one of the words below, which hold what this function was given.
        unsafe {
            std::arch::asm!(
                "mov {word}, qword ptr [rip + lapiprof_site@GOTTPOFF]",
                "mov qword ptr fs:[{word} + {at}], {value}",
                word = out(reg) _,
                value = in(reg) value,
                at = const AT,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod word {
    use std::cell::Cell;

    thread_local! {
        static RECORD: Cell<usize> = const { Cell::new(0) };
    }

    /// Reads the second word; the others are not used here.
    #[inline(always)]
    pub fn load<const AT: usize>() -> usize {
        if AT == 8 { RECORD.get() } else { 0 }
    }

    /// Writes it.
    #[inline(always)]
    pub fn store<const AT: usize>(value: usize) {
        if AT == 8 {
            RECORD.set(value);
        }
    }
}

#[cfg(target_arch = "x86_64")]
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
#[cfg(target_arch = "x86_64")]
#[macro_export]
macro_rules! placed {
    ($name:ident, $body:path, ($($arg:ident: $kind:ty),*)) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name($($arg: $kind),*) -> ::libc::c_int {
            // r10 and r11 hold nothing at the beginning of a function.
            ::std::arch::naked_asm!(
                "mov r10, qword ptr [rip + lapiprof_site@GOTTPOFF]",
                "mov r11, qword ptr fs:[r10 + 24]",
                "mov qword ptr fs:[r10], r11",
                "jmp {body}",
                body = sym $body,
            )
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

        $crate::exported!(@elsewhere LAPI_Put, $body, ($($arg: $kind),*));
    };
    ($symbol:ident, $body:path, ($($arg:ident: $kind:ty),*)) => {
        /// The call of this name, profiled.
        ///
        /// # Safety
        ///
        /// What the manual asks of the caller.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $symbol($($arg: $kind),*) -> ::libc::c_int {
            // r10 and r11 hold nothing at the beginning of a function.
            ::std::arch::naked_asm!(
                "mov r11, qword ptr [rsp]",
                "mov r10, qword ptr [rip + lapiprof_site@GOTTPOFF]",
                "mov qword ptr fs:[r10], r11",
                "jmp {body}",
                body = sym $body,
            )
        }

        $crate::exported!(@elsewhere $symbol, $body, ($($arg: $kind),*));
    };
    (@elsewhere $symbol:ident, $body:path, ($($arg:ident: $kind:ty),*)) => {
        /// The call of this name, profiled.
        ///
        /// # Safety
        ///
        /// What the manual asks of the caller.
        #[cfg(not(target_arch = "x86_64"))]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $symbol($($arg: $kind),*) -> ::libc::c_int {
            // SAFETY: what is asked of the caller is the same.
            unsafe { $body($($arg),*) }
        }
    };
}
