//! The table of handles, and the way from a handle to its context.
//!
//! A handle is a place in the table and a generation, so that one that has been ended stays wrong
//! when its place is taken again. A place keeps its context for ever, open or closed: a call that
//! comes too late finds it closed.

use openlapi::abi::{LAPI_ERR_ALL_HNDL_IN_USE, LAPI_ERR_HNDL_INVALID, lapi_handle_t};
use openlapi::api::Context;
use openlapi::api::env::INSTANCES;
use openlapi::error::{Error, Result};
use openlapi_runtime::{exit, fork};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The context of each place, made when the place is first taken, and never freed.
static CONTEXTS: [AtomicPtr<Arc<Context>>; INSTANCES] =
    [const { AtomicPtr::new(ptr::null_mut()) }; INSTANCES];

/// Which places are taken.
static TAKEN: [AtomicBool; INSTANCES] = [const { AtomicBool::new(false) }; INSTANCES];

/// The number of contexts that were ever opened.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A place that is taken, until it is dropped without having been kept.
pub struct Instance {
    index: usize,
    kept: bool,
}

impl Instance {
    /// Takes the place of instance `number`, 1 and up; 0 is the lowest free one.
    pub fn take(number: u32) -> Result<Self> {
        prepare_for_forks();
        let mut places = match number {
            0 => 0..INSTANCES,
            _ => number as usize - 1..(number as usize).min(INSTANCES),
        };
        match places.find(|&index| !TAKEN[index].swap(true, Ordering::AcqRel)) {
            Some(index) => Ok(Self { index, kept: false }),
            None => {
                let detail = format!("instance {number}; there are {INSTANCES}, and each can be open once");
                Err(Error::new(LAPI_ERR_ALL_HNDL_IN_USE, detail))
            }
        }
    }

    /// The index of the handle, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The context of this place.
    pub fn context(&self) -> &'static Arc<Context> {
        let place = &CONTEXTS[self.index];
        let mut context = place.load(Ordering::Acquire);
        if context.is_null() {
            context = Box::into_raw(Box::new(Arc::new(Context::new())));
            place.store(context, Ordering::Release);
        }
        // SAFETY: made from a box above, and never freed. Only the thread that has taken the
        // place gets here.
        unsafe { &*context }
    }

    /// A handle that no LAPI_Init has returned before.
    pub fn handle(&self) -> lapi_handle_t {
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed) & (u32::MAX >> 6);
        generation * INSTANCES as u32 + self.index as u32 + 1
    }

    /// The context is open now: the place stays taken.
    pub fn keep(mut self) {
        self.kept = true;
        exit::prepare(leave);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.kept {
            release(self.index);
        }
    }
}

fn release(index: usize) {
    TAKEN[index].store(false, Ordering::Release);
}

/// Makes sure that a forked child has no contexts: their threads, and their place in the job, are
/// the parent's. What they hold stays as it was; a new LAPI_Init makes new ones.
pub fn prepare_for_forks() {
    extern "C" fn before() {
        fork::before();
    }
    extern "C" fn in_parent() {
        fork::in_parent();
    }
    extern "C" fn in_child() {
        for (context, taken) in CONTEXTS.iter().zip(&TAKEN) {
            context.store(ptr::null_mut(), Ordering::Relaxed);
            taken.store(false, Ordering::Relaxed);
        }
        fork::in_child();
    }
    /// Not a `Once`: a child that is forked in the middle of it would wait for ever. Two threads
    /// may register the same functions twice; they do no harm when they are called twice.
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    if !REGISTERED.load(Ordering::Acquire) {
        // SAFETY: the functions stay as long as the library.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        REGISTERED.store(true, Ordering::Release);
    }
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

/// The context in the place of a handle, if there is one: perhaps closed, or under another handle.
#[inline(always)]
pub fn at(handle: lapi_handle_t) -> Option<&'static Context> {
    // SAFETY: null, or made from a box by `Instance::context` and never freed.
    unsafe { CONTEXTS[place(handle)].load(Ordering::Acquire).as_ref() }.map(|context| &**context)
}

/// The open context of a handle.
pub fn find(handle: lapi_handle_t) -> Result<&'static Arc<Context>> {
    // SAFETY: null, or made from a box by `Instance::context` and never freed.
    match unsafe { CONTEXTS[place(handle)].load(Ordering::Acquire).as_ref() } {
        Some(context) if context.handle() == handle => Ok(context),
        _ => Err(invalid(handle)),
    }
}

/// Frees the place of a handle that has been ended.
pub fn free(handle: lapi_handle_t) {
    release(place(handle));
}

/// The handle that each place had when it was last ended, and in the lower half the second in
/// which that was.
static ENDED: [AtomicU64; INSTANCES] = [const { AtomicU64::new(0) }; INSTANCES];

/// For this many seconds other threads may not know that the handle was ended.
const MOMENT: u32 = 5;

/// This process ends a handle.
pub fn note_end(handle: lapi_handle_t) {
    let now = u64::from(handle) << 32 | u64::from(second());
    ENDED[place(handle)].store(now, Ordering::Release);
}

/// Whether this process has ended the handle a moment ago.
pub fn ended_a_moment_ago(handle: lapi_handle_t) -> bool {
    let ended = ENDED[place(handle)].load(Ordering::Acquire);
    (ended >> 32) as u32 == handle && second().wrapping_sub(ended as u32) <= MOMENT
}

/// The second of the monotonic clock.
fn second() -> u32 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is writable; the clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u32
}

/// The place of a handle.
#[inline(always)]
fn place(handle: lapi_handle_t) -> usize {
    handle.wrapping_sub(1) as usize % INSTANCES
}

#[cold]
pub fn invalid(handle: lapi_handle_t) -> Error {
    Error::new(LAPI_ERR_HNDL_INVALID, format!("handle {handle:#x}"))
}
