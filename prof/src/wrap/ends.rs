//! LAPI_Init and LAPI_Term, and the calls of the table of addresses.

use crate::calls::Call;
use crate::real::Real;
use crate::record::{Seen, record};
use crate::site::site;
use crate::{exported, handlers, process};
use libc::{c_int, c_void};
use openlapi::abi::{LAPI_SUCCESS, NUM_TASKS, TASK_ID, lapi_handle_t, lapi_info_t, lapi_query_t};
use openlapi::base::clock::ticks;
use std::mem::transmute;

exported!(LAPI_Init, init, (hndl: *mut lapi_handle_t, lapi_info: *mut lapi_info_t));
exported!(LAPI_Term, term, (hndl: lapi_handle_t));
exported!(LAPI_Addr_set, addr_set, (hndl: lapi_handle_t, addr: *mut c_void, addr_hndl: c_int));
exported!(LAPI_Addr_get, addr_get, (hndl: lapi_handle_t, addr: *mut *mut c_void, addr_hndl: c_int));

fn seen(call: Call, site: usize, start: u64, code: c_int) -> c_int {
    record(Seen { call, site, start, end: ticks(), good: code == LAPI_SUCCESS, traffic: None });
    code
}

unsafe extern "C" fn init(hndl: *mut lapi_handle_t, lapi_info: *mut lapi_info_t) -> c_int {
    static REAL: Real = Real::new(c"PLAPI_Init");
    let site = site();
    process::before_init();
    // SAFETY: the symbol of this name has this type.
    let real: unsafe extern "C" fn(*mut lapi_handle_t, *mut lapi_info_t) -> c_int =
        unsafe { transmute(REAL.address()) };
    let start = ticks();
    // SAFETY: the caller's own arguments.
    let code = unsafe { real(hndl, lapi_info) };
    if code == LAPI_SUCCESS {
        // SAFETY: the call has filled it in.
        let hndl = unsafe { *hndl };
        process::opened(asked(hndl, TASK_ID), asked(hndl, NUM_TASKS));
    }
    seen(Call::Init, site, start, code)
}

unsafe extern "C" fn term(hndl: lapi_handle_t) -> c_int {
    static REAL: Real = Real::new(c"PLAPI_Term");
    let site = site();
    // SAFETY: the symbol of this name has this type.
    let real: unsafe extern "C" fn(lapi_handle_t) -> c_int = unsafe { transmute(REAL.address()) };
    let start = ticks();
    // SAFETY: the caller's own arguments.
    let code = seen(Call::Term, site, start, unsafe { real(hndl) });
    if code == LAPI_SUCCESS {
        process::closed();
    }
    code
}

/// Enters the address of a wrapper in place of the header handler's own.
unsafe extern "C" fn addr_set(hndl: lapi_handle_t, addr: *mut c_void, addr_hndl: c_int) -> c_int {
    static REAL: Real = Real::new(c"PLAPI_Addr_set");
    let site = site();
    // SAFETY: the symbol of this name has this type.
    let real: unsafe extern "C" fn(lapi_handle_t, *mut c_void, c_int) -> c_int =
        unsafe { transmute(REAL.address()) };
    let wrapper = handlers::wrapper_of(addr as usize) as *mut c_void;
    let start = ticks();
    // SAFETY: the caller's own arguments, but for a wrapper's address in place of the handler's.
    seen(Call::AddrSet, site, start, unsafe { real(hndl, wrapper, addr_hndl) })
}

unsafe extern "C" fn addr_get(hndl: lapi_handle_t, addr: *mut *mut c_void, addr_hndl: c_int) -> c_int {
    static REAL: Real = Real::new(c"PLAPI_Addr_get");
    let site = site();
    // SAFETY: the symbol of this name has this type.
    let real: unsafe extern "C" fn(lapi_handle_t, *mut *mut c_void, c_int) -> c_int =
        unsafe { transmute(REAL.address()) };
    let start = ticks();
    // SAFETY: the caller's own arguments.
    let code = unsafe { real(hndl, addr, addr_hndl) };
    if code == LAPI_SUCCESS {
        // SAFETY: the call has filled it in.
        unsafe { *addr = handlers::wrapped_by(*addr as usize) as *mut c_void };
    }
    seen(Call::AddrGet, site, start, code)
}

fn asked(hndl: lapi_handle_t, query: lapi_query_t) -> u32 {
    static REAL: Real = Real::new(c"PLAPI_Qenv");
    // SAFETY: the symbol of this name has this type.
    let real: unsafe extern "C" fn(lapi_handle_t, lapi_query_t, *mut c_int) -> c_int =
        unsafe { transmute(REAL.address()) };
    let mut value = 0;
    // SAFETY: both queries code an int, into one that lives during the call.
    unsafe { real(hndl, query, &mut value) };
    value as u32
}
