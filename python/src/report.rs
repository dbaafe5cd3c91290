//! Which line of the program a thread is in that waits in the library, for the library's reports.
//!
//! The library asks in a thread of its own. Python's lock may be taken for long, so that another
//! thread takes it and looks; a report does without when that has no time.

use crate::place::is_of_package;
use crate::threads;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What the library calls (src/base/callers.rs).
type Hook = extern "C" fn(thread: c_int, text: *mut u8, room: usize) -> usize;

static HOOK: Hook = line;
/// How long a report waits.
const PATIENCE: Duration = Duration::from_millis(800);
/// The interpreter is about to end.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Lets the library ask; one without that hook does not.
pub fn watch() {
    // SAFETY: the name is a C string.
    let symbol: *mut c_void = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"lapi_caller_hook".as_ptr()) };
    // SAFETY: null, or the library's variable, which points to a variable of this type.
    let hook = unsafe { symbol.cast::<&'static AtomicPtr<Hook>>().as_ref() };
    if let Some(hook) = hook {
        hook.store((&raw const HOOK).cast_mut(), Ordering::Release);
    }
}

/// Python's lock is not asked for any more.
pub fn end() {
    ENDED.store(true, Ordering::SeqCst);
}

/// The hook.
extern "C" fn line(thread: c_int, text: *mut u8, room: usize) -> usize {
    static ASKED: AtomicBool = AtomicBool::new(false);
    // One that was asked before, and still waits, is enough.
    if ENDED.load(Ordering::SeqCst) || ASKED.swap(true, Ordering::SeqCst) {
        return 0;
    }
    let (sender, receiver) = mpsc::channel();
    let look = move || {
        let found = threads::attach(|py| place(py, thread)).flatten();
        ASKED.store(false, Ordering::SeqCst);
        // A report that has not waited.
        let _ = sender.send(found);
    };
    if thread::Builder::new().name("lapi-line".into()).spawn(look).is_err() {
        ASKED.store(false, Ordering::SeqCst);
        return 0;
    }
    let Ok(Some(found)) = receiver.recv_timeout(PATIENCE) else { return 0 };
    let length = found.len().min(room);
    // SAFETY: the library has this much room, and the text is as long.
    unsafe { ptr::copy_nonoverlapping(found.as_ptr(), text, length) };
    length
}

/// The innermost line outside of this package in which the thread is with this number.
fn place(py: Python<'_>, number: c_int) -> Option<String> {
    let threads = py.import("threading").ok()?.call_method0("enumerate").ok()?;
    let is_it = |thread: &Bound<'_, PyAny>| {
        thread.getattr("native_id").is_ok_and(|native| native.extract().is_ok_and(|id: c_int| id == number))
    };
    let thread = threads.try_iter().ok()?.flatten().find(is_it)?;
    let frames = py.import("sys").ok()?.call_method0("_current_frames").ok()?;
    let mut frame = frames.get_item(thread.getattr("ident").ok()?).ok()?;
    loop {
        let code = frame.getattr("f_code").ok()?;
        let file: String = code.getattr("co_filename").ok()?.extract().ok()?;
        if !is_of_package(py, &file)? {
            let function: String = code.getattr("co_qualname").ok()?.extract().ok()?;
            let line: u32 = frame.getattr("f_lineno").ok()?.extract().ok()?;
            let name = Path::new(&file).file_name()?.to_string_lossy().into_owned();
            return Some(format!("{function} at {name}:{line}"));
        }
        frame = frame.getattr("f_back").ok().filter(|back| !back.is_none())?;
    }
}
