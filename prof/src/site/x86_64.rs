//! The words of a thread, and the beginnings of functions, on x86-64 processors. r10 and r11 hold
//! nothing at the beginning of a function.

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

/// Writes the word at this place.
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

/// The whole of a function: it notes its caller, and continues with the body.
#[macro_export]
macro_rules! note_caller {
    ($symbol:expr, $body:path) => {
        ::std::arch::naked_asm!(
            "mov r11, qword ptr [rsp]",
            "mov r10, qword ptr [rip + lapiprof_site@GOTTPOFF]",
            "mov qword ptr fs:[r10], r11",
            "jmp {body}",
            body = sym $body,
        )
    };
}

/// The whole of a function: it notes the place that is set, and continues with the body.
#[macro_export]
macro_rules! note_place {
    ($body:path) => {
        ::std::arch::naked_asm!(
            "mov r10, qword ptr [rip + lapiprof_site@GOTTPOFF]",
            "mov r11, qword ptr fs:[r10 + 24]",
            "mov qword ptr fs:[r10], r11",
            "jmp {body}",
            body = sym $body,
        )
    };
}
