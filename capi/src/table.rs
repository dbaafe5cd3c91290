//! The table of handles, and the way from a handle to its context.
//!
//! A handle is a place in the table and a generation, so that one that has been ended stays wrong when its place is
//! taken again. A place keeps its context for good, open or closed: a call that comes too late finds it closed.

use libc::c_int;
use openlapi::abi::{LAPI_ERR_ALL_HNDL_IN_USE, LAPI_ERR_HNDL_INVALID, LAPI_SUCCESS, lapi_handle_t};
use openlapi::api::env::INSTANCES;
use openlapi::engine::context::{Context, Held};
use openlapi::error::{Error, Result};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

static CONTEXTS: [OnceLock<Arc<Context>>; INSTANCES] = [const { OnceLock::new() }; INSTANCES];

/// Which places are taken.
static TAKEN: Mutex<[bool; INSTANCES]> = Mutex::new([false; INSTANCES]);

/// The number of contexts that were ever opened.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A place that is taken, until it is dropped without having been kept.
pub struct Place {
    index: usize,
    kept: bool,
}

impl Place {
    /// Takes the place of instance `number`, 1 and up; 0 is the lowest free one.
    pub fn take(number: u32) -> Result<Self> {
        let mut taken = TAKEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let index = match number {
            0 => taken.iter().position(|taken| !taken),
            _ => Some(number as usize - 1).filter(|&index| index < INSTANCES && !taken[index]),
        };
        let Some(index) = index else {
            let detail = format!("instance {number}; there are {INSTANCES}, and each can be open once");
            return Err(Error::new(LAPI_ERR_ALL_HNDL_IN_USE, detail));
        };
        taken[index] = true;
        Ok(Self { index, kept: false })
    }

    /// Its number, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The context of this place.
    pub fn context(&self) -> &'static Arc<Context> {
        CONTEXTS[self.index].get_or_init(|| Arc::new(Context::new()))
    }

    /// A handle that was never given out.
    pub fn handle(&self) -> lapi_handle_t {
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed) & (u32::MAX >> 6);
        generation * INSTANCES as u32 + self.index as u32 + 1
    }

    /// The context is open now: the place stays taken.
    pub fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.kept {
            release(self.index);
        }
    }
}

fn release(index: usize) {
    TAKEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())[index] = false;
}

/// The open context of a handle.
#[inline]
pub fn find(handle: lapi_handle_t) -> Result<&'static Arc<Context>> {
    let index = handle.wrapping_sub(1) as usize % INSTANCES;
    match CONTEXTS[index].get() {
        Some(context) if context.handle() == handle => Ok(context),
        _ => Err(invalid(handle)),
    }
}

/// Frees the place of a handle that has been ended.
pub fn free(handle: lapi_handle_t) {
    release(handle.wrapping_sub(1) as usize % INSTANCES);
}

#[cold]
fn invalid(handle: lapi_handle_t) -> Error {
    Error::new(LAPI_ERR_HNDL_INVALID, format!("handle {handle:#x} is not initialized, or has been ended"))
}

/// Makes a call: finds the context, takes its lock, and turns the outcome into a return code.
#[inline]
pub fn call(name: &str, handle: lapi_handle_t, run: impl FnOnce(&mut Held<'_>) -> Result<()>) -> c_int {
    let outcome = find(handle).and_then(|context| {
        let mut held = context.enter()?;
        run(&mut held)
    });
    code(name, handle, outcome)
}

/// The return code of an outcome. Errors are told on standard error from MP_INFOLEVEL 1 on.
#[inline]
pub fn code(name: &str, handle: lapi_handle_t, outcome: Result<()>) -> c_int {
    match outcome {
        Ok(()) => LAPI_SUCCESS,
        Err(error) => tell(name, handle, error),
    }
}

#[cold]
fn tell(name: &str, handle: lapi_handle_t, error: Error) -> c_int {
    let level = find(handle).map_or_else(|_| level_of_environment(), |context| context.info_level());
    if level >= 1 {
        eprintln!("LAPI: {name}: {error}");
    }
    error.code
}

/// Before and after the life of a context there is only the environment to ask.
fn level_of_environment() -> i32 {
    std::env::var("MP_INFOLEVEL").ok().and_then(|level| level.trim().parse().ok()).unwrap_or(0)
}
