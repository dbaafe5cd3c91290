//! The header handlers, and what they know of the row that is being measured.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use nix::libc::{c_int, c_uint, c_ulong, c_void};
use openlapi::abi::*;

/// Returns the address of a handler: a constant cannot be one.
type Address = fn() -> *mut c_void;

/// The index of each handler in LAPI_Addr_set's table, and its address.
pub(super) const ALL: [(c_int, Address); 4] = [
    (PLAIN, || plain as hdr_hndlr_t as *mut c_void),
    (VECTOR, || vector as vhdr_hndlr_t as *mut c_void),
    (LIGHT, || light as hdr_hndlr_t as *mut c_void),
    (LAYOUT, || layout as hdr_hndlr_t as *mut c_void),
];

/// The data goes to one place.
pub(super) const PLAIN: c_int = 1;
/// The data goes to a vector.
pub(super) const VECTOR: c_int = 2;
/// The message is looked at and dropped.
pub(super) const LIGHT: c_int = 3;
/// The data is laid out by a gather/scatter program.
pub(super) const LAYOUT: c_int = 4;

/// Where messages go.
pub(super) struct Arrival {
    pub(super) data: *mut c_void,
    pub(super) vector: *mut lapi_vec_t,
    pub(super) dgsp: lapi_dg_handle_t,
}

/// Of the row that is being measured. Set before the tasks meet and cleared after they have met again.
static ARRIVAL: AtomicPtr<Arrival> = AtomicPtr::new(ptr::null_mut());
/// Light-weight messages that no wait has taken yet.
static LIGHT_COUNT: AtomicU64 = AtomicU64::new(0);

/// Lets the handlers use an arrival from now on; null for none.
pub(super) fn expect(arrival: *mut Arrival) {
    ARRIVAL.store(arrival, Ordering::Release);
}

/// Takes `count` light-weight messages, when there are so many.
#[inline]
pub(super) fn take_light(count: u64) -> bool {
    let enough = LIGHT_COUNT.load(Ordering::Acquire) >= count;
    if enough {
        LIGHT_COUNT.fetch_sub(count, Ordering::AcqRel);
    }
    enough
}

fn arrival() -> &'static Arrival {
    let arrival = ARRIVAL.load(Ordering::Acquire);
    assert!(!arrival.is_null(), "a message of no row");
    // SAFETY: set by the measuring thread, which keeps it until all messages of the row have arrived.
    unsafe { &*arrival }
}

unsafe extern "C" fn plain(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    _: *mut c_ulong,
    completion: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: LAPI gives a place for it.
    unsafe { *completion = None };
    arrival().data
}

unsafe extern "C" fn vector(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    _: *mut c_ulong,
    completion: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut lapi_vec_t {
    // SAFETY: LAPI gives a place for it.
    unsafe { *completion = None };
    arrival().vector
}

unsafe extern "C" fn light(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    length: *mut c_ulong,
    completion: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: LAPI gives a place for it, and the length is the first field of such a structure.
    unsafe {
        *completion = None;
        (*length.cast::<lapi_return_info_t>()).ctl_flags = LAPI_BURY_MSG;
    }
    LIGHT_COUNT.fetch_add(1, Ordering::AcqRel);
    ptr::null_mut()
}

unsafe extern "C" fn layout(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    length: *mut c_ulong,
    completion: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    let arrival = arrival();
    // SAFETY: as for `light`.
    unsafe {
        *completion = None;
        let info = &mut *length.cast::<lapi_return_info_t>();
        info.dgsp_handle = arrival.dgsp;
        info.bytes = info.msg_len;
    }
    arrival.data
}
