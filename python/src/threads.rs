//! Threads of the library that run code of Python.
//!
//! Python makes a state for such a thread when it attaches, and removes it when it detaches. To
//! make one takes a lock of Python, which up to 3.12 `os.fork` does not hold: a child that was
//! forked meanwhile would find it taken for ever. So a state is made once for each thread, never
//! while this process forks, and removed at the end of the thread, with Python's lock held. From
//! 3.13 on `os.fork` holds that lock: to wait for a thread that makes a state would be for ever.

use pyo3::ffi;
use pyo3::prelude::*;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The interpreter that has loaded this module.
static INTERPRETER: AtomicPtr<ffi::PyInterpreterState> = AtomicPtr::new(ptr::null_mut());
/// Held while a state is made, and while this process forks, up to Python 3.12.
static MAKING: Mutex<()> = Mutex::new(());

/// A state that was made for this thread.
struct State(bool);

thread_local! {
    static STATE: State = State(make());
}

/// To be called when the module is loaded.
pub fn prepare(_py: Python<'_>) {
    // SAFETY: Python's lock is held.
    INTERPRETER.store(unsafe { ffi::PyInterpreterState_Get() }, Ordering::SeqCst);
}

/// Keeps other threads from making a state, where Python does not do that itself in a fork.
pub fn making() -> Option<MutexGuard<'static, ()>> {
    // SAFETY: a constant of the interpreter.
    let version = unsafe { ffi::Py_Version };
    (version < 0x030d_0000).then(|| MAKING.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs something with Python's lock; `None`: the interpreter has ended.
pub fn attach<R>(run: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    // SAFETY: it may be called at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return None;
    }
    STATE.with(|_made| Python::try_attach(run))
}

/// Makes a state for this thread, unless it has one: threads of Python do.
fn make() -> bool {
    let _making = making();
    // SAFETY: neither needs Python's lock; the interpreter lives, as `attach` has seen.
    unsafe {
        ffi::PyGILState_GetThisThreadState().is_null()
            && !ffi::PyThreadState_New(INTERPRETER.load(Ordering::SeqCst)).is_null()
    }
}

impl Drop for State {
    /// At the end of the thread.
    fn drop(&mut self) {
        // SAFETY: it may be called at any time.
        if self.0 && unsafe { ffi::Py_IsInitialized() } != 0 {
            // SAFETY: with one release more than there were attachments, the next one, at the end
            // of this one, removes the state.
            Python::try_attach(|_| unsafe {
                ffi::PyGILState_Release(ffi::PyGILState_STATE::PyGILState_LOCKED)
            });
        }
    }
}
