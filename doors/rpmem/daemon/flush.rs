//! Stores leave the caches of the processor.

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// A cache line, in bytes.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Whether every mapping counts as persistent memory (PMEM_IS_PMEM_FORCE=1).
pub fn is_forced() -> bool {
    cfg!(target_arch = "x86_64") && std::env::var_os("PMEM_IS_PMEM_FORCE").is_some_and(|value| value == "1")
}

/// The instruction for a line.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instruction {
    /// The line stays in the cache.
    WriteBack,
    /// The line leaves it, in any order.
    Optimized,
    /// The line leaves it.
    Ordered,
}

#[cfg(target_arch = "x86_64")]
fn instruction() -> Instruction {
    static FOUND: OnceLock<Instruction> = OnceLock::new();
    *FOUND.get_or_init(|| {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        // Leaf 7 has bits 24 and 23 in EBX for them.
        let features = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
        match () {
            () if features & 1 << 24 != 0 => Instruction::WriteBack,
            () if features & 1 << 23 != 0 => Instruction::Optimized,
            () => Instruction::Ordered,
        }
    })
}

/// The lines of a range begin to leave the caches. [`fence`] waits for them, on the same thread.
///
/// # Safety
/// The range is mapped.
#[cfg(target_arch = "x86_64")]
pub unsafe fn lines(from: *const u8, length: usize) {
    let begin = from.map_addr(|address| address / LINE * LINE);
    let count = (from.addr() + length).div_ceil(LINE) - begin.addr() / LINE;
    let instruction = instruction();
    for line in 0..count {
        let line = begin.wrapping_add(line * LINE);
        // SAFETY: a line of the range, and an instruction that the processor has. None changes
        // memory or registers.
        unsafe {
            match instruction {
                Instruction::WriteBack => {
                    std::arch::asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags))
                }
                Instruction::Optimized => {
                    std::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
                }
                Instruction::Ordered => std::arch::x86_64::_mm_clflush(line),
            }
        }
    }
}

/// Waits until the lines have left the caches.
#[cfg(target_arch = "x86_64")]
pub fn fence() {
    // SAFETY: every processor of this kind has it.
    unsafe { std::arch::x86_64::_mm_sfence() };
}

/// Nothing: no mapping counts as direct on this processor.
///
/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
pub unsafe fn lines(_: *const u8, _: usize) {}

/// See [`lines`].
#[cfg(not(target_arch = "x86_64"))]
pub fn fence() {}
