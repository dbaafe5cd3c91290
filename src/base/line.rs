//! Words in shared memory on cache lines of their own.

/// A value that begins on a line of its own, and that nothing follows on it. As wide as two lines,
/// for processors fetch them in pairs, and as wide in programs of 32 bits as in those of 64: they
/// share memory. (crossbeam's `CachePadded` has another width for each.)
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Line<T>(T);

impl<T> Line<T> {
    /// Around a value.
    #[cfg(loom)]
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> std::ops::Deref for Line<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Fetches the line with this byte, which will be read soon: a hint.
#[inline(always)]
pub fn prefetch(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: a prefetch has no effect on memory, whatever the address is.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = at;
}

/// Fetches the line with this byte, which will be written soon: a hint. Other processors lose it.
///
/// By the instruction itself. Compilers make one that fetches the line for reading instead where a
/// processor may lack it, which then does nothing; and a line that was fetched for reading takes as
/// long to be written as one that was not.
#[inline(always)]
pub fn prefetch_to_write(at: *mut u8) {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    // SAFETY: a prefetch has no effect on memory, whatever the address is.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at.addr(), options(nomem, nostack, preserves_flags));
    }
    #[cfg(all(target_arch = "aarch64", not(any(loom, miri))))]
    // SAFETY: a prefetch has no effect on memory, whatever the address is.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) at.addr(), options(nomem, nostack, preserves_flags));
    }
    #[cfg(any(loom, miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}
