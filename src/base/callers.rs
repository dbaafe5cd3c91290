//! Where a program is that calls the library from an interpreter, for reports: the addresses behind
//! the calls are those of the interpreter.
//!
//! The library exports [`HOOK`] as `lapi_caller_hook`. It is null without an interpreter that sets
//! it.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The room for a place, in bytes.
const ROOM: usize = 512;

/// Writes where the thread with this number of the system is, `exchange at halo.py:120`, in UTF-8;
/// `room` bytes are there. It returns how many it has written; 0: it does not know. It comes back
/// within a second.
pub type Hook = extern "C" fn(thread: i32, text: *mut u8, room: usize) -> usize;

/// A [`Hook`], or null. Set at most once.
pub static HOOK: AtomicPtr<Hook> = AtomicPtr::new(null_mut());

/// Where a thread of the program is, in its interpreter's words; `None`: it is in none.
pub fn place(thread: i32) -> Option<String> {
    let hook = HOOK.load(Ordering::Acquire);
    if hook.is_null() {
        return None;
    }
    let mut text = [0; ROOM];
    // SAFETY: what is not null points to a function of this type that is never unloaded; the text
    // lives during the call.
    let length = unsafe { (*hook)(thread, text.as_mut_ptr(), ROOM) };
    let text = text.get(..length).filter(|text| !text.is_empty())?;
    Some(String::from_utf8_lossy(text).into_owned())
}
