//! The time in the program's handlers: the library calls each by the profiler's hook
//! ([`openlapi::base::handler_runs`]).

use crate::calls::Call;
use crate::record::{Seen, Traffic, handler_begins, record_handler};
use libc::c_void;
use openlapi::base::clock::ticks;
use openlapi::base::handler_runs::{HandlerKind, Hook};
use std::sync::atomic::{AtomicPtr, Ordering};

static TIMED: Hook = timed;

/// After the first LAPI_Init, by which the library is known.
pub fn watch() {
    // SAFETY: the name is a C string.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"lapi_handler_hook".as_ptr()) };
    // SAFETY: null, or the library's variable of this type, which it never changes.
    let hook = unsafe { symbol.cast::<&'static AtomicPtr<Hook>>().as_ref() };
    if let Some(hook) = hook {
        hook.store((&raw const TIMED).cast_mut(), Ordering::Release);
    }
}

extern "C" fn timed(
    kind: u32,
    address: usize,
    peer: u32,
    bytes: u64,
    run: extern "C" fn(*mut c_void),
    state: *mut c_void,
) {
    let Some((call, traffic)) = of_kind(kind, Traffic { peer, bytes }) else { return run(state) };
    let start = ticks();
    let around = handler_begins(call, address, start);
    run(state);
    record_handler(Seen { call, site: address, start, end: ticks(), good: true, traffic }, around);
}

/// How a handler is counted, and with what it has to do; `None`: not by itself.
fn of_kind(kind: u32, traffic: Traffic) -> Option<(Call, Option<Traffic>)> {
    const HEADER: u32 = HandlerKind::Header as u32;
    const SEND_COMPLETION: u32 = HandlerKind::SendCompletion as u32;
    const COMPLETION: u32 = HandlerKind::Completion as u32;
    match kind {
        HEADER => Some((Call::HeaderHandler, Some(traffic))),
        SEND_COMPLETION => Some((Call::SendHandler, Some(traffic))),
        COMPLETION => Some((Call::CompletionHandler, None)),
        _ => None,
    }
}
