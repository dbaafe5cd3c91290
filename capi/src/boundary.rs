//! The boundary between C and the core: a call's context and lock on the way in, its return code
//! on the way out.

use crate::handles::{self, find};
use libc::c_int;
use openlapi::abi::{
    LAPI_ERR_HNDL_INVALID, LAPI_ERR_NO_RDMA_RESOURCE, LAPI_ERR_UTIL_CMD, LAPI_SUCCESS, lapi_handle_t,
};
use openlapi::api::{Clear, Held, ShortCall};
use openlapi::error::{Error, Result};
use openlapi_runtime::{console, environment, init};

/// Makes a call: finds the context, takes its lock, and turns the outcome into a return code.
pub fn call(name: &str, handle: lapi_handle_t, run: impl FnOnce(&mut Held<'_>) -> Result<()>) -> c_int {
    let outcome = match enter(handle) {
        Ok(mut held) => run(&mut held),
        Err(error) => Err(error),
    };
    code(name, handle, outcome)
}

/// Finds the context and takes its lock.
fn enter(handle: lapi_handle_t) -> Result<Held<'static>> {
    let context = find(handle)?;
    let held = context.enter()?;
    // The context may have been ended, and opened again, since it was found.
    if context.handle() == handle { Ok(held) } else { Err(handles::invalid(handle)) }
}

/// Begins a call by a short way, in the caller's own frame. `None`: it is to be made by [`call`].
#[inline(always)]
pub fn short(handle: lapi_handle_t, way: Clear) -> Option<ShortCall<'static>> {
    let short = handles::at(handle)?.enter_short(way)?;
    if short.context().handle() == handle { Some(short) } else { None }
}

/// The return code of an outcome. From MP_INFOLEVEL 1 on, an error is written to
/// standard error too.
#[inline]
pub fn code(name: &str, handle: lapi_handle_t, outcome: Result<()>) -> c_int {
    match outcome {
        Ok(()) => LAPI_SUCCESS,
        Err(error) => log(name, handle, error),
    }
}

#[cold]
fn log(name: &str, handle: lapi_handle_t, error: Error) -> c_int {
    let level = find(handle).map_or_else(|_| environment::info_level(), |context| context.info_level());
    // A thread that calls while another one ends the handle has made no mistake.
    let race = error.code == LAPI_ERR_HNDL_INVALID && handles::ended_a_moment_ago(handle);
    // A program that asks what there is has a way without it. One that transfers has not asked.
    let none = matches!(error.code, LAPI_ERR_UTIL_CMD | LAPI_ERR_NO_RDMA_RESOURCE);
    let probe = none && name == "LAPI_Util";
    if level >= if race || probe { 2 } else { 1 } {
        if console::task().is_none() {
            // Then the message does not name it.
            let _ = init::identify();
        }
        console::log(format_args!("{name}: {error}"));
    }
    error.code
}
