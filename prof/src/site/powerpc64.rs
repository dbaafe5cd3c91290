//! The words of a thread, and the beginnings of functions, on POWER processors of 64 bits with the
//! second ELF ABI. r0 and r11 hold nothing at the beginning of a function, the link register the
//! address behind the call; r12 has the function's address where its caller has another table of
//! contents, which is then still in r2.

// Where the words are, relative to r13. A function that finds this by instructions of its own needs
// r2, and the compiler does not know of that.
std::arch::global_asm!(
    ".pushsection .data.rel.ro.lapiprof_offset,\"aw\",@progbits",
    ".p2align 3",
    ".globl lapiprof_offset",
    ".hidden lapiprof_offset",
    ".type lapiprof_offset,@object",
    ".size lapiprof_offset,8",
    "lapiprof_offset:",
    ".quad lapiprof_site@tprel",
    ".popsection",
);

unsafe extern "C" {
    safe static lapiprof_offset: usize;
}

/// Reads the word at this place.
#[inline(always)]
pub fn load<const AT: usize>() -> usize {
    let word;
    // SAFETY: reads one of the words of `lapiprof_site`.
    unsafe {
        std::arch::asm!(
            "add {word}, {offset}, 13",
            "ld {word}, {at}({word})",
            offset = in(reg) lapiprof_offset,
            word = out(reg_nonzero) word,
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
            "add {word}, {offset}, 13",
            "std {value}, {at}({word})",
            offset = in(reg) lapiprof_offset,
            word = out(reg_nonzero) _,
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
            "0:",
            "addis 2, 12, .TOC.-0b@ha",
            "addi 2, 2, .TOC.-0b@l",
            concat!(".localentry ", $symbol, ", .-", $symbol),
            "addis 11, 2, lapiprof_site@got@tprel@ha",
            "ld 11, lapiprof_site@got@tprel@l(11)",
            "add 11, 11, lapiprof_site@tls",
            "mflr 0",
            "std 0, 0(11)",
            "b {body}",
            body = sym $body,
        )
    };
}

/// The whole of a function: it notes the place that is set, and continues with the body. It is
/// called by its address alone, which r12 has then.
#[macro_export]
macro_rules! note_place {
    ($body:path) => {
        ::std::arch::naked_asm!(
            "0:",
            "addis 2, 12, .TOC.-0b@ha",
            "addi 2, 2, .TOC.-0b@l",
            "addis 11, 2, lapiprof_site@got@tprel@ha",
            "ld 11, lapiprof_site@got@tprel@l(11)",
            "add 11, 11, lapiprof_site@tls",
            "ld 0, 24(11)",
            "std 0, 0(11)",
            "b {body}",
            body = sym $body,
        )
    };
}
