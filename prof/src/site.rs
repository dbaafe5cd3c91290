//! Where a call comes from, and where it is recorded: two words of each thread.
//!
//! A function cannot see its return address in Rust. So each exported symbol is a few instructions that put the address
//! away, in a word of the thread's own, and continue with the function proper with everything else unchanged.

use libc::c_void;

/// The address behind the call that has brought this thread here; only at the very beginning of a wrapper.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub fn site() -> usize {
    let site;
    // SAFETY: reads the word below.
    unsafe {
        std::arch::asm!(
            "mov {site}, qword ptr [rip + lapiprof_site@GOTTPOFF]",
            "mov {site}, qword ptr fs:[{site}]",
            site = out(reg) site,
            options(nostack, preserves_flags, readonly),
        );
    }
    site
}

/// Nowhere: this is not known here.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub fn site() -> usize {
    0
}

/// What [`set_record`] has set in this thread; null before. Without the call into the loader that a thread-local variable of a shared
/// library costs.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub fn record() -> *const c_void {
    let record;
    // SAFETY: reads the second word below.
    unsafe {
        std::arch::asm!(
            "mov {record}, qword ptr [rip + lapiprof_site@GOTTPOFF]",
            "mov {record}, qword ptr fs:[{record} + 8]",
            record = out(reg) record,
            options(nostack, preserves_flags, readonly),
        );
    }
    record
}

/// Sets the second word of this thread.
#[inline]
#[cfg(target_arch = "x86_64")]
pub fn set_record(record: *const c_void) {
    // SAFETY: writes the second word below, which this function alone does.
    unsafe {
        std::arch::asm!(
            "mov {word}, qword ptr [rip + lapiprof_site@GOTTPOFF]",
            "mov qword ptr fs:[{word} + 8], {record}",
            word = out(reg) _,
            record = in(reg) record,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
thread_local! {
    static RECORD: std::cell::Cell<*const c_void> = const { std::cell::Cell::new(std::ptr::null()) };
}

/// What [`set_record`] has set in this thread; null before.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub fn record() -> *const c_void {
    RECORD.get()
}

/// Sets that word of this thread.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub fn set_record(record: *const c_void) {
    RECORD.set(record);
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .tbss.lapiprof_site,\"awT\",@nobits",
    ".p2align 3",
    ".globl lapiprof_site",
    ".hidden lapiprof_site",
    ".type lapiprof_site,@object",
    ".size lapiprof_site,16",
    "lapiprof_site:",
    ".zero 16",
    ".popsection",
);

/// Exports a symbol that notes its caller and continues with a function of the same arguments.
#[macro_export]
macro_rules! exported {
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
