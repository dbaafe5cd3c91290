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
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// What a handle stands for.
pub type Owner = Arc<dyn Any + Send + Sync>;

static TAKEN: Instances = Instances::new();
/// The owner of each instance: null until one is set. It is never freed. A forked child begins with
/// another one, because threads of the parent may hold locks of this one for ever there.
static OWNERS: AtomicPtr<Owners> = AtomicPtr::new(ptr::null_mut());
static FORKS: AtomicU32 = AtomicU32::new(0);

type Owners = [RwLock<Option<Owner>>; INSTANCES];

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
        let mut slot = owners()[index].write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *slot, owner)
    };
    // Without the lock: the closures of a program may be dropped with it.
    drop(before);
}

/// The owner of the instance of a handle.
pub fn owner(handle: lapi_handle_t) -> Option<Owner> {
    owners()[instances::index(handle)].read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn owners() -> &'static Owners {
    let mut owners = OWNERS.load(Ordering::Acquire);
    if owners.is_null() {
        let fresh = Box::into_raw(Box::new([const { RwLock::new(None) }; INSTANCES]));
        owners = match OWNERS.compare_exchange(owners, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(other) => {
                // SAFETY: made from a box above, and nothing else has its address.
                drop(unsafe { Box::from_raw(fresh) });
                other
            }
        };
    }
    // SAFETY: made from a box above, and never freed.
    unsafe { &*owners }
}

fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Shared memory is not mapped in a forked child, and the threads are the parent's: its contexts
/// are refused there.
extern "C" fn forget_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    OWNERS.store(ptr::null_mut(), Ordering::Relaxed);
    TAKEN.release_all();
    fork::in_child();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The child would wait for ever where the threads of its parent hold locks.
    #[test]
    fn a_forked_child_waits_for_no_thread_of_its_parent() {
        const LAST: u32 = INSTANCES as u32;
        let place = Instance::take(LAST).expect("it is free");
        set_owner(place.index(), Some(Arc::new("parent")));
        let handle = place.handle();
        let held = owners()[place.index()].write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the child does what programs do there, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: it ends a child that waits.
            unsafe { libc::alarm(60) };
            let inherited = owner(handle).is_some();
            let taken = Instance::take(LAST).is_ok();
            set_owner(place.index(), Some(Arc::new("child")));
            let own = owner(handle).is_some_and(|owner| owner.downcast_ref() == Some(&"child"));
            // SAFETY: nothing of the parent's is to run in it.
            unsafe { libc::_exit(i32::from(inherited || !taken || !own)) };
        }
        drop(held);
        let mut status = 0;
        // SAFETY: a child of this process, and a place for its status.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        assert!(owner(handle).is_some_and(|owner| owner.downcast_ref() == Some(&"parent")));
        set_owner(place.index(), None);
    }
}
