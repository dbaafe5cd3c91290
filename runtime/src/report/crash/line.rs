//! Lines of messages that may be written in a signal handler.

use openlapi::base::patient;
use std::ffi::CStr;
use std::fmt::{self, Write as _};

/// A line of a message, made without the heap. What is too long is cut off.
pub(super) struct Line {
    bytes: [u8; 1024],
    length: usize,
}

impl Line {
    pub(super) fn new() -> Self {
        let mut line = Self { bytes: [0; 1024], length: 0 };
        let _ = match crate::console::task() {
            Some(task) => write!(line, "LAPI: task {task}: "),
            None => write!(line, "LAPI: "),
        };
        line
    }

    pub(super) fn text(&mut self, text: *const libc::c_char) {
        // SAFETY: a text of the loader.
        let text = unsafe { CStr::from_ptr(text) };
        self.add(text.to_bytes());
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        // The last byte is for the end of the line.
        let room = self.bytes.len() - 1 - self.length;
        let bytes = &bytes[..bytes.len().min(room)];
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// How many bytes it has.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Whether there is little room left.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.length > self.bytes.len() * 3 / 4
    }

    /// Writes the line, with its end.
    pub(super) fn end(mut self) {
        self.bytes[self.length] = b'\n';
        patient::say(&self.bytes[..=self.length]);
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}
