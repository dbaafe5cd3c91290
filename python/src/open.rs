//! The contexts that are open, by their handles.
//!
//! Threads of the library look here without Python's lock, so that a fork waits until the list is
//! free ([`crate::fork`]): a child would find it locked for ever.

use crate::port::{Port, lock};
use openlapi::abi::lapi_handle_t;
use std::sync::{Arc, Mutex, MutexGuard};

static OPEN: Mutex<Vec<Arc<Port>>> = Mutex::new(Vec::new());

/// Keeps the list as it is, during a fork.
pub fn hold() -> MutexGuard<'static, Vec<Arc<Port>>> {
    lock(&OPEN)
}

/// A context is open.
pub fn add(port: Arc<Port>) {
    lock(&OPEN).push(port);
}

/// Removes a context that has ended. The library may have given its handle to a new one since.
pub fn remove(ended: &Arc<Port>) {
    lock(&OPEN).retain(|port| !Arc::ptr_eq(port, ended));
}

/// The context that a handle stands for: the newest, for the same reason.
pub fn of(handle: lapi_handle_t) -> Option<Arc<Port>> {
    lock(&OPEN).iter().rev().find(|port| port.handle == handle).cloned()
}

/// All that this process has opened.
pub fn all() -> Vec<Arc<Port>> {
    lock(&OPEN).iter().filter(|port| port.is_own()).cloned().collect()
}
