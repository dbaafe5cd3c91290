//! The contexts that are open, by their handles.

use crate::port::{Port, lock};
use openlapi::abi::lapi_handle_t;
use std::sync::{Arc, Mutex};

static OPEN: Mutex<Vec<Arc<Port>>> = Mutex::new(Vec::new());

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
