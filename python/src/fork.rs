//! What a child of `os.fork` must not find taken: a thread of the library that held it would not be
//! there to give it back. So a fork waits until it is free, and holds it meanwhile.

use crate::port::Port;
use crate::{open, threads};
use std::cell::RefCell;
use std::sync::{Arc, MutexGuard, Once};

type Locks = (Option<MutexGuard<'static, ()>>, MutexGuard<'static, Vec<Arc<Port>>>);

thread_local! {
    /// The locks during a fork.
    static FORKING: RefCell<Option<Locks>> = const { RefCell::new(None) };
}

/// To be called when the module is loaded.
pub fn prepare() {
    static ONCE: Once = Once::new();
    // SAFETY: functions that live as long as the process: Python never unloads a module.
    ONCE.call_once(|| unsafe { _ = libc::pthread_atfork(Some(before), Some(after), Some(after)) });
}

extern "C" fn before() {
    let held = (threads::making(), open::hold());
    FORKING.with(|forking| *forking.borrow_mut() = Some(held));
}

extern "C" fn after() {
    FORKING.with(|forking| drop(forking.borrow_mut().take()));
}
