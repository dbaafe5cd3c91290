//! The library's log: to RPMEM_LOG_FILE, or to standard error, as RPMEM_LOG_LEVEL asks.

use crate::environment::environment;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::LazyLock;

static FILE: LazyLock<Option<File>> = LazyLock::new(|| {
    let path = environment().log_file.as_ref()?;
    OpenOptions::new().create(true).append(true).open(path).ok()
});

/// Failures of calls.
pub const FAILURES: u32 = 1;
/// What the library does.
pub const STEPS: u32 = 3;

/// Writes a line, if the level is asked for.
pub fn log(level: u32, line: impl FnOnce() -> String) {
    if level > environment().log_level {
        return;
    }
    let line = format!("<librpmem>: <{level}> {}\n", line());
    // A log that cannot be written ends no call.
    let _ = match FILE.as_ref() {
        Some(mut file) => Write::write_all(&mut file, line.as_bytes()),
        None => std::io::stderr().write_all(line.as_bytes()),
    };
}
