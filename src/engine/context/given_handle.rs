//! The handle as handlers get it: a pointer to a variable of the context.
//!
//! Each opening of a context stores its handle in the same variable, except after one whose
//! completion handlers LAPI_Term may not have waited for: such a handler would find another
//! opening's handle there. It keeps its variable, in which no handle is any more, and the context
//! goes on with a new one. A pointer that a handler has kept is valid as long as the context.

use crate::abi::{LAPI_VOID_HANDLE, lapi_handle_t};
use crate::base::sync::Mutex;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The variable of the present opening, and those of former ones.
pub struct GivenHandle {
    present: AtomicPtr<lapi_handle_t>,
    all: Mutex<Vec<Arc<AtomicU32>>>,
}

impl GivenHandle {
    /// One variable, without a handle.
    pub fn new() -> Self {
        let given = Self { present: AtomicPtr::new(ptr::null_mut()), all: Mutex::new(Vec::new()) };
        given.renew();
        given
    }

    /// Takes a new variable. The former one has no handle from now on, and stays.
    pub fn renew(&self) {
        let variable = Arc::new(AtomicU32::new(LAPI_VOID_HANDLE));
        let mut all = self.all.lock();
        if let Some(former) = all.last() {
            former.store(LAPI_VOID_HANDLE, Ordering::Relaxed);
        }
        self.present.store(variable.as_ptr(), Ordering::Release);
        all.push(variable);
    }

    /// Stores a handle, LAPI_VOID_HANDLE for none.
    pub fn set(&self, handle: lapi_handle_t) {
        if let Some(variable) = self.all.lock().last() {
            variable.store(handle, Ordering::Relaxed);
        }
    }

    /// The address of the variable of the present opening.
    #[inline]
    pub fn pointer(&self) -> *mut lapi_handle_t {
        self.present.load(Ordering::Acquire)
    }
}
