//! The instances of this process: which are taken, and the way from a handle to its port.
//!
//! The core calls handlers with a handle; the trampolines of this crate find the port by it. These
//! tables, and the count of forks, are the only globals of this crate. They are apart from those of
//! the C interface: a process that uses both names its instances.

use openlapi::abi::{LAPI_ERR_ALL_HNDL_IN_USE, lapi_handle_t};
use openlapi::api::env::INSTANCES;
use openlapi::error::{Error, Result};
use openlapi_runtime::fork;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Once, PoisonError, RwLock};

/// What a handle stands for.
pub type Owner = Arc<dyn Any + Send + Sync>;

static TAKEN: [AtomicBool; INSTANCES] = [const { AtomicBool::new(false) }; INSTANCES];
static OWNERS: [RwLock<Option<Owner>>; INSTANCES] = [const { RwLock::new(None) }; INSTANCES];
static GENERATION: AtomicU32 = AtomicU32::new(0);
static FORKS: AtomicU32 = AtomicU32::new(0);

/// An instance that is taken, until this is dropped.
#[derive(Debug)]
pub struct Instance {
    index: usize,
    forks: u32,
}

impl Instance {
    /// Takes the instance `number`, 1 and up; 0 is the lowest free one.
    pub fn take(number: u32) -> Result<Self> {
        prepare_for_forks();
        let mut places = match number {
            0 => 0..INSTANCES,
            _ => number as usize - 1..(number as usize).min(INSTANCES),
        };
        let free = places.find(|&index| !TAKEN[index].swap(true, Ordering::AcqRel));
        let index = free.ok_or_else(|| {
            let detail = format!("instance {number}; there are {INSTANCES}, and each can be open once");
            Error::new(LAPI_ERR_ALL_HNDL_IN_USE, detail)
        })?;
        Ok(Self { index, forks: forks() })
    }

    /// The index of the place, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// A handle that no context of this process has had before.
    pub fn handle(&self) -> lapi_handle_t {
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed) & (u32::MAX >> 6);
        generation * INSTANCES as u32 + self.index as u32 + 1
    }

    /// Whether this process has taken it: a forked child has no contexts.
    #[inline]
    pub fn is_own(&self) -> bool {
        self.forks == forks()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if self.is_own() {
            TAKEN[self.index].store(false, Ordering::Release);
        }
    }
}

/// What [`owner`] returns for this instance from now on.
pub fn set_owner(index: usize, owner: Option<Owner>) {
    let before = {
        let mut place = OWNERS[index].write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, owner)
    };
    // Without the lock: the closures of a program may be dropped with it.
    drop(before);
}

/// The owner of the instance of a handle.
pub fn owner(handle: lapi_handle_t) -> Option<Owner> {
    let index = handle.wrapping_sub(1) as usize % INSTANCES;
    OWNERS[index].read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Shared memory is not mapped in a forked child, and the threads are the parent's: its contexts
/// are refused there.
fn prepare_for_forks() {
    extern "C" fn before() {
        fork::before();
    }
    extern "C" fn in_parent() {
        fork::in_parent();
    }
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
        TAKEN.iter().for_each(|taken| taken.store(false, Ordering::Relaxed));
        fork::in_child();
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the functions stay as long as the program.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}
