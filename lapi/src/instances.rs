//! The instances of this process: which are taken, and the way from a handle to its port.
//!
//! The core calls handlers with a handle; the trampolines of this crate find the port by it. These
//! tables, and the count of forks, are the only globals of this crate. They are apart from those of
//! the C interface: a process that uses both names its instances.

use openlapi::abi::lapi_handle_t;
use openlapi::api::env::INSTANCES;
use openlapi::error::Result;
use openlapi_runtime::fork;
use openlapi_runtime::instances::{self, Instances};
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// What a handle stands for.
pub type Owner = Arc<dyn Any + Send + Sync>;

static TAKEN: Instances = Instances::new();
static OWNERS: [RwLock<Option<Owner>>; INSTANCES] = [const { RwLock::new(None) }; INSTANCES];
static FORKS: AtomicU32 = AtomicU32::new(0);

/// An instance that is taken, until it is released or this is dropped.
#[derive(Debug)]
pub struct Instance {
    index: usize,
    forks: u32,
    released: AtomicBool,
}

impl Instance {
    /// Takes the instance `number`, 1 and up; 0 is the lowest free one.
    pub fn take(number: u32) -> Result<Self> {
        static REGISTERED: AtomicBool = AtomicBool::new(false);
        fork::prepare(&REGISTERED, forget_in_child);
        Ok(Self { index: TAKEN.take(number)?, forks: forks(), released: AtomicBool::new(false) })
    }

    /// The index of the instance, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// A handle that no context of this process has had before.
    pub fn handle(&self) -> lapi_handle_t {
        TAKEN.handle(self.index)
    }

    /// Gives the instance back, once.
    pub fn release(&self) {
        if self.is_own() && !self.released.swap(true, Ordering::AcqRel) {
            TAKEN.release(self.index);
        }
    }

    /// Whether this process has taken it: a forked child has no contexts.
    #[inline]
    pub fn is_own(&self) -> bool {
        self.forks == forks()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.release();
    }
}

/// What [`owner`] returns for this instance from now on.
pub fn set_owner(index: usize, owner: Option<Owner>) {
    let before = {
        let mut slot = OWNERS[index].write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *slot, owner)
    };
    // Without the lock: the closures of a program may be dropped with it.
    drop(before);
}

/// The owner of the instance of a handle.
pub fn owner(handle: lapi_handle_t) -> Option<Owner> {
    OWNERS[instances::index(handle)].read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Shared memory is not mapped in a forked child, and the threads are the parent's: its contexts
/// are refused there.
extern "C" fn forget_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    TAKEN.release_all();
    fork::in_child();
}
