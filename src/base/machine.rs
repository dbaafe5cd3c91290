//! What the library needs to know of the machine.

use std::num::NonZero;

/// The processors of the machine: a pinned task may use one of them, but its peers have the others.
pub fn processors() -> u32 {
    // SAFETY: sysconf takes a number and returns a number.
    let online = u32::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1);
    let available = std::thread::available_parallelism().map_or(1, NonZero::get);
    online.max(available as u32)
}

/// The bytes of a page of memory: 4 KiB to 64 KiB, by the processor and the kernel.
pub fn page() -> usize {
    // SAFETY: sysconf takes a number and returns a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
