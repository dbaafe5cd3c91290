//! The log: lines on standard error, which the one that starts the daemon keeps.

/// Writes a line.
pub fn line(text: &str) {
    eprintln!("openfamd: {text}");
}
