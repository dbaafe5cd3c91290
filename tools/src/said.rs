//! What the tools say on standard error.

use std::fmt::Display;

use openlapi::base::patient;

/// Writes a message, after the name of the tool. A standard error that is full or closed changes
/// nothing about what the tool does: its exit status says it, too.
pub(crate) fn say(tool: &str, message: impl Display) {
    patient::say(format!("{tool}: {message}\n").as_bytes());
}
