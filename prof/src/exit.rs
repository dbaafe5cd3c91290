//! `_exit`: a task that ends so writes its part before.
//!
//! No function of atexit runs at `_exit`, and LAPI itself calls it when a task has no error handler
//! and another task dies. The profiler is found before the C library, so its `_exit` is the one
//! that is called.

use crate::watcher;
use libc::c_int;

/// Ends the process as the C library's function does. Async-signal-safe; the child of a fork or a
/// vfork ends at once.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    if watcher::watches() {
        watcher::ask(watcher::EXIT, true);
    }
    loop {
        // SAFETY: no preconditions; it does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}
