//! What this machine has, and how a test says that it cannot run without it.

use std::ffi::CStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Whether the PATH has such a command.
pub fn is_installed(command: &str) -> bool {
    let is_program = |path: &Path| {
        fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| is_program(&folder.join(command))))
}

/// Whether the dynamic linker finds such a library.
pub fn is_library(name: &CStr) -> bool {
    // SAFETY: it is loaded and unloaded; the constructors of those that the tests ask for need
    // nothing of this process.
    unsafe {
        let library = libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL);
        !library.is_null() && libc::dlclose(library) == 0
    }
}

/// Prints that a test is skipped, without the test harness, which hides the output of
/// tests that pass.
pub fn skipped(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {what}: {why}");
}
