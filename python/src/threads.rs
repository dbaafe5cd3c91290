//! Threads of the library that run code of Python.
//!
//! Python makes a state for such a thread when it attaches, and removes it when it detaches. To
//! make one takes a lock of Python, which up to 3.12 `os.fork` does not hold: a child that was
//! forked meanwhile would find it taken for ever. So a state is made once for each thread, never
//! while this process forks, and removed at the end of the thread, with Python's lock held. From
//! 3.13 on `os.fork` holds that lock: to wait for a thread that makes a state would be for ever.

use crate::open;
use crate::port::{Port, lock};
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The interpreter that has loaded this module.
static INTERPRETER: AtomicPtr<ffi::PyInterpreterState> = AtomicPtr::new(ptr::null_mut());
/// Held while a state is made, and while this process forks, up to Python 3.12.
static MAKING: Mutex<()> = Mutex::new(());

/// What a child of fork must not find taken.
type Locks = (Option<MutexGuard<'static, ()>>, MutexGuard<'static, Vec<Arc<Port>>>);

/// A state that was made for this thread.
struct State(bool);

thread_local! {
    static STATE: State = State(make());
    /// The locks during a fork.
    static FORKING: RefCell<Option<Locks>> = const { RefCell::new(None) };
}

/// To be called once, when the module is loaded.
pub fn prepare(_py: Python<'_>) {
    // SAFETY: Python's lock is held.
    let interpreter = unsafe { ffi::PyInterpreterState_Get() };
    if INTERPRETER.swap(interpreter, Ordering::SeqCst).is_null() {
        // SAFETY: functions that live as long as the process: Python never unloads a module.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
    }
}

/// Keeps other threads from making a state, where Python does not do that itself in a fork.
fn making() -> Option<MutexGuard<'static, ()>> {
    // SAFETY: a constant of the interpreter.
    let version = unsafe { ffi::Py_Version };
    (version < 0x030d_0000).then(|| lock(&MAKING))
}

extern "C" fn before_fork() {
    let held = (making(), open::hold());
    FORKING.with(|forking| *forking.borrow_mut() = Some(held));
}

extern "C" fn after_fork() {
    FORKING.with(|forking| drop(forking.borrow_mut().take()));
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
