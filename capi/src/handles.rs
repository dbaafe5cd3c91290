//! The table of handles, and the way from a handle to its context.
//!
//! An instance keeps its context for ever, open or closed: a call that comes too late finds it
//! closed.

use openlapi::abi::{LAPI_ERR_HNDL_INVALID, LAPI_VOID_HANDLE, lapi_handle_t};
use openlapi::api::Context;
use openlapi::api::env::INSTANCES;
use openlapi::error::{Error, Result};
use openlapi_runtime::instances::{Instances, index};
use openlapi_runtime::{exit, fork};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// The context of each instance, made when the instance is first taken, and never freed.
static CONTEXTS: [AtomicPtr<Arc<Context>>; INSTANCES] =
    [const { AtomicPtr::new(ptr::null_mut()) }; INSTANCES];

static TAKEN: Instances = Instances::new();

/// An instance that is taken, until it is dropped without having been kept.
pub struct Instance {
    index: usize,
    kept: bool,
}

impl Instance {
    /// Takes the instance `number`, 1 and up; 0 is the lowest free one.
    pub fn take(number: u32) -> Result<Self> {
        prepare_for_forks();
        Ok(Self { index: TAKEN.take(number)?, kept: false })
    }

    /// The index of the instance, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The context of this instance.
    pub fn context(&self) -> &'static Arc<Context> {
        let slot = &CONTEXTS[self.index];
        let mut context = slot.load(Ordering::Acquire);
        if context.is_null() {
            context = Box::into_raw(Box::new(Arc::new(Context::new())));
            slot.store(context, Ordering::Release);
        }
        // SAFETY: made from a box above, and never freed. Only the thread that has taken the
        // instance gets here.
        unsafe { &*context }
    }

    /// A handle that no LAPI_Init has returned before.
    pub fn handle(&self) -> lapi_handle_t {
        TAKEN.handle(self.index)
    }

    /// The context is open now: the instance stays taken.
    pub fn keep(mut self) {
        self.kept = true;
        exit::prepare(leave);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.kept {
            TAKEN.release(self.index);
        }
    }
}

/// See [`fork::prepare`]. What the contexts of the parent hold stays as it was; a new LAPI_Init
/// makes new ones.
pub fn prepare_for_forks() {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    fork::prepare(&REGISTERED, forget_in_child);
}

extern "C" fn forget_in_child() {
    CONTEXTS.iter().for_each(|context| context.store(ptr::null_mut(), Ordering::Relaxed));
    TAKEN.release_all();
    fork::in_child();
}

/// The process exits.
extern "C" fn leave() {
    for context in &CONTEXTS {
        // SAFETY: null, or made from a box by `Instance::context` and never freed.
        if let Some(context) = unsafe { context.load(Ordering::Acquire).as_ref() } {
            exit::leave(context);
        }
    }
}

/// The context of a handle's instance, if there is one: perhaps closed, or under another handle.
#[inline(always)]
pub fn at(handle: lapi_handle_t) -> Option<&'static Context> {
    // SAFETY: null, or made from a box by `Instance::context` and never freed.
    unsafe { CONTEXTS[index(handle)].load(Ordering::Acquire).as_ref() }.map(|context| &**context)
}

/// The open context of a handle.
pub fn find(handle: lapi_handle_t) -> Result<&'static Arc<Context>> {
    // SAFETY: null, or made from a box by `Instance::context` and never freed.
    match unsafe { CONTEXTS[index(handle)].load(Ordering::Acquire).as_ref() } {
        // A closed context has that handle, too.
        Some(context) if context.handle() == handle && handle != LAPI_VOID_HANDLE => Ok(context),
        _ => Err(invalid(handle)),
    }
}

/// Frees the instance of a handle that has been ended.
pub fn free(handle: lapi_handle_t) {
    TAKEN.release(index(handle));
}

/// The handle that each instance had when it was last ended, and in the lower half the second in
/// which that was.
static ENDED: [AtomicU64; INSTANCES] = [const { AtomicU64::new(0) }; INSTANCES];

/// For this many seconds other threads may not know that the handle was ended.
const MOMENT: u32 = 5;

/// This process ends a handle.
pub fn note_end(handle: lapi_handle_t) {
    let now = u64::from(handle) << 32 | u64::from(second());
    ENDED[index(handle)].store(now, Ordering::Release);
}

/// Whether this process has ended the handle a moment ago.
pub fn ended_a_moment_ago(handle: lapi_handle_t) -> bool {
    let ended = ENDED[index(handle)].load(Ordering::Acquire);
    (ended >> 32) as u32 == handle && second().wrapping_sub(ended as u32) <= MOMENT
}

/// The second of the monotonic clock.
fn second() -> u32 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is writable; the clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u32
}

#[cold]
pub fn invalid(handle: lapi_handle_t) -> Error {
    Error::new(LAPI_ERR_HNDL_INVALID, format!("handle {handle:#x}"))
}
