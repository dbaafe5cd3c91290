//! Messages of this process on standard error, and the task that they name.

use openlapi::base::patient;
use std::fmt::Arguments;
use std::sync::atomic::{AtomicU32, Ordering};

/// The task that this process is, for its messages.
static TASK: AtomicU32 = AtomicU32::new(UNKNOWN_TASK);
const UNKNOWN_TASK: u32 = u32::MAX;

/// Sets the task that messages name; `None`: it is not known, as in the child of a fork.
pub fn set_task(task: Option<u32>) {
    TASK.store(task.unwrap_or(UNKNOWN_TASK), Ordering::Relaxed);
}

/// The task that messages name.
pub fn task() -> Option<u32> {
    Some(TASK.load(Ordering::Relaxed)).filter(|task| *task != UNKNOWN_TASK)
}

/// Writes a line to standard error, in one piece: `LAPI: task 3: ` and the message. A standard
/// error that is closed or broken must not end the process ([`patient::say`]).
pub fn log(line: Arguments<'_>) {
    let line = match task() {
        None => format!("LAPI: {line}\n"),
        Some(task) => format!("LAPI: task {task}: {line}\n"),
    };
    write(&line);
}

/// Writes to standard error, as [`log`] does.
pub fn write(text: &str) {
    patient::say(text.as_bytes());
}

/// Writes to C's stdout, after what the program has printed before, and in one piece so that the
/// lines of several tasks stay together.
pub fn print(text: &str) {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // SAFETY: the C library's stream, which is locked for each call; the text is readable. Nothing
    // can be done about a stream that fails.
    unsafe {
        // What the program has buffered goes first; the lines are then written with one call.
        libc::fflush(stdout);
        libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout);
        libc::fflush(stdout);
    }
}
