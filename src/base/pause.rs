//! A moment in which a thread that polls leaves the processor's resources to others.

/// Tells the processor that the thread polls: a few tens of nanoseconds.
#[inline(always)]
pub fn pause() {
    // Rust's hint is no instruction there. This one leaves more of the core to its other threads,
    // for a while.
    #[cfg(target_arch = "powerpc64")]
    // SAFETY: the instruction copies a register onto itself.
    unsafe {
        core::arch::asm!("or 27,27,27", options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "powerpc64"))]
    std::hint::spin_loop();
}
