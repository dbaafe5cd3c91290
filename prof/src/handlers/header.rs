//! Wrappers of header handlers: one for each different handler that the program enters in a table.

use super::{loans, not_timed};
use crate::calls::Call;
use crate::record::{Seen, Traffic, handler_begins, record_handler};
use libc::{c_uint, c_ulong, c_void};
use openlapi::abi::{LAPI_DROP_PKT, compl_hndlr_p, hdr_hndlr_t, lapi_handle_t, lapi_return_info_t};
use openlapi::base::clock::ticks;
use std::mem::transmute;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many different handlers can be wrapped.
const WRAPPERS: usize = 128;

/// The handler behind each wrapper, 0 while it has none. An entry does not change any more.
static WRAPPED: [AtomicUsize; WRAPPERS] = [const { AtomicUsize::new(0) }; WRAPPERS];

macro_rules! eight {
    ($($first:literal)*) => {
        [$(
            wrapper::<{ 8 * $first }>, wrapper::<{ 8 * $first + 1 }>, wrapper::<{ 8 * $first + 2 }>,
            wrapper::<{ 8 * $first + 3 }>, wrapper::<{ 8 * $first + 4 }>, wrapper::<{ 8 * $first + 5 }>,
            wrapper::<{ 8 * $first + 6 }>, wrapper::<{ 8 * $first + 7 }>,
        )*]
    };
}

/// The wrappers themselves: the same code with different numbers.
static CODE: [hdr_hndlr_t; WRAPPERS] = eight!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

/// What the table gets in place of a handler: its wrapper, or the handler itself when there are too many.
pub fn wrapper_of(handler: usize) -> usize {
    if handler == 0 || wrapped_by(handler) != handler {
        return handler;
    }
    for (wrapped, code) in WRAPPED.iter().zip(CODE) {
        match wrapped.compare_exchange(0, handler, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return code as usize,
            Err(found) if found == handler => return code as usize,
            Err(_) => {}
        }
    }
    not_timed();
    handler
}

/// The handler behind a wrapper; any other address as it is.
pub fn wrapped_by(address: usize) -> usize {
    match CODE.iter().position(|code| *code as usize == address) {
        Some(at) => WRAPPED[at].load(Ordering::Acquire),
        None => address,
    }
}

unsafe extern "C" fn wrapper<const AT: usize>(
    hndl: *mut lapi_handle_t,
    uhdr: *mut c_void,
    uhdr_len: *mut c_uint,
    msg_len: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    uinfo: *mut *mut c_void,
) -> *mut c_void {
    // The number is read, so that no two of these functions are one and the same.
    let handler = WRAPPED[AT].load(Ordering::Acquire);
    // SAFETY: the arguments of the library, for the handler that the program has entered.
    unsafe { timed(handler, hndl, uhdr, uhdr_len, msg_len, comp_h, uinfo) }
}

unsafe fn timed(
    handler: usize,
    hndl: *mut lapi_handle_t,
    uhdr: *mut c_void,
    uhdr_len: *mut c_uint,
    msg_len: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    uinfo: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: the program has entered it as a header handler.
    let real: hdr_hndlr_t = unsafe { transmute(handler) };
    let info: *mut lapi_return_info_t = msg_len.cast();
    // SAFETY: the library hands a whole structure to every header handler, and the lengths beside it. The handler may change
    // them: they are read first.
    let traffic = unsafe {
        Traffic { peer: (*info).src as u32, bytes: u64::from(*uhdr_len).saturating_add((*info).msg_len) }
    };
    let start = ticks();
    let around = handler_begins(Call::HeaderHandler, handler, start);
    // SAFETY: the library's arguments.
    let buffer = unsafe { real(hndl, uhdr, uhdr_len, msg_len, comp_h, uinfo) };
    let end = ticks();
    record_handler(
        Seen { call: Call::HeaderHandler, site: handler, start, end, good: true, traffic: Some(traffic) },
        around,
    );
    // SAFETY: as above. A message that is dropped comes again, and the completion handler of this time is never run.
    unsafe {
        if let Some(completion) = *comp_h
            && (*info).ctl_flags != LAPI_DROP_PKT
            && let Some((wrapper, loan)) = loans::completion(completion, *uinfo)
        {
            *comp_h = Some(wrapper);
            *uinfo = loan;
        }
    }
    buffer
}

#[cfg(test)]
mod tests {
    use super::{CODE, wrapped_by, wrapper_of};
    use std::collections::HashSet;

    #[test]
    fn each_handler_has_one_wrapper_and_finds_back() {
        assert_eq!(CODE.iter().map(|code| *code as usize).collect::<HashSet<_>>().len(), CODE.len());
        let (one, other) = (0x1000, 0x2000);
        let wrapper = wrapper_of(one);
        assert_ne!(wrapper, one);
        assert_eq!((wrapper_of(one), wrapped_by(wrapper), wrapped_by(one)), (wrapper, one, one));
        assert_ne!(wrapper_of(other), wrapper);
        assert_eq!(wrapper_of(wrapper), wrapper, "a wrapper is not wrapped");
        assert_eq!(wrapper_of(0), 0);
        for more in 0..CODE.len() {
            wrapper_of(0x10_0000 + more);
        }
        assert_eq!(wrapper_of(0x77_0000), 0x77_0000, "there are too many");
    }
}
