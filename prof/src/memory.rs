//! Memory that is kept until the process ends: zeroed, and in use only where it was touched.

use std::ptr::null_mut;

/// Room for `count` values, all zeroes, never freed; `None` when memory is exhausted.
///
/// # Safety
///
/// All zeroes must be a valid `T`.
pub unsafe fn zeroed<T: Sync>(count: usize) -> Option<&'static [T]> {
    let bytes = count.checked_mul(size_of::<T>()).filter(|bytes| *bytes != 0)?;
    const { assert!(align_of::<T>() <= 4096) };
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let at = unsafe {
        libc::mmap(
            null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: `bytes` were mapped, at the beginning of a page, and are never unmapped.
    Some(unsafe { std::slice::from_raw_parts(at.cast(), count) })
}
