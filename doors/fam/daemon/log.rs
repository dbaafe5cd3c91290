//! The log: lines on standard error, which the one that starts the daemon keeps.

use std::io::Write;

/// Writes a line. Where it cannot be written, the daemon goes on: its memory is worth more.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "openfamd: {text}");
}
