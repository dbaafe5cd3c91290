//! The words of a thread, and the beginnings of functions, on Arm processors of 64 bits. x16 and
//! x17 hold nothing at the beginning of a function, x30 the address behind the call.

/// Reads the word at this place.
#[inline(always)]
pub fn load<const AT: usize>() -> usize {
    let word;
    // SAFETY: reads one of the words of `lapiprof_site`.
    unsafe {
        std::arch::asm!(
            "mrs {thread}, tpidr_el0",
            "adrp {word}, :gottprel:lapiprof_site",
            "ldr {word}, [{word}, #:gottprel_lo12:lapiprof_site]",
            "add {word}, {word}, {thread}",
            "ldr {word}, [{word}, #{at}]",
            thread = out(reg) _,
            word = out(reg) word,
            at = const AT,
            options(nostack, preserves_flags, readonly),
        );
    }
    word
}

/// Writes the word at this place.
#[inline(always)]
pub fn store<const AT: usize>(value: usize) {
    // SAFETY: writes one of the words of `lapiprof_site`, which hold what this function was given.
    unsafe {
        std::arch::asm!(
            "mrs {thread}, tpidr_el0",
            "adrp {word}, :gottprel:lapiprof_site",
            "ldr {word}, [{word}, #:gottprel_lo12:lapiprof_site]",
            "add {word}, {word}, {thread}",
            "str {value}, [{word}, #{at}]",
            thread = out(reg) _,
            word = out(reg) _,
            value = in(reg) value,
            at = const AT,
            options(nostack, preserves_flags),
        );
    }
}

/// The whole of a function: it notes its caller, and continues with the body.
#[macro_export]
macro_rules! note_caller {
    ($symbol:expr, $body:path) => {
        ::std::arch::naked_asm!(
            "mrs x16, tpidr_el0",
            "adrp x17, :gottprel:lapiprof_site",
            "ldr x17, [x17, #:gottprel_lo12:lapiprof_site]",
            "str x30, [x16, x17]",
            "b {body}",
            body = sym $body,
        )
    };
}

/// The whole of a function: it notes the place that is set, and continues with the body.
#[macro_export]
macro_rules! note_place {
    ($body:path) => {
        ::std::arch::naked_asm!(
            "mrs x16, tpidr_el0",
            "adrp x17, :gottprel:lapiprof_site",
            "ldr x17, [x17, #:gottprel_lo12:lapiprof_site]",
            "add x16, x16, x17",
            "ldr x17, [x16, #24]",
            "str x17, [x16]",
            "b {body}",
            body = sym $body,
        )
    };
}
