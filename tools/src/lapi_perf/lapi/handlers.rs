//! The header handlers, and what they know of the row that is being measured.

use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use nix::libc::{c_int, c_uint, c_ulong, c_void};
use openlapi::abi::*;

/// Returns the address of a handler: a constant cannot be one.
type Address = fn() -> *mut c_void;

/// The index of each handler in LAPI_Addr_set's table, and its address.
pub(super) const ALL: [(c_int, Address); 5] = [
    (PLAIN, || plain as hdr_hndlr_t as *mut c_void),
    (VECTOR, || vector as vhdr_hndlr_t as *mut c_void),
    (LIGHT, || light as hdr_hndlr_t as *mut c_void),
    (LAYOUT, || layout as hdr_hndlr_t as *mut c_void),
    (READ, || read as hdr_hndlr_t as *mut c_void),
];

/// The data goes to one place.
pub(super) const PLAIN: c_int = 1;
/// The data goes to a vector.
pub(super) const VECTOR: c_int = 2;
/// The message is counted and dropped.
pub(super) const LIGHT: c_int = 3;
/// The data is laid out by a gather/scatter program.
pub(super) const LAYOUT: c_int = 4;
/// The data is read where it has arrived, and the message dropped.
pub(super) const READ: c_int = 5;

/// Where messages go.
pub(super) struct Arrival {
    pub(super) data: *mut c_void,
    pub(super) vector: *mut lapi_vec_t,
    pub(super) dgsp: lapi_dg_handle_t,
}

/// Of the row that is being measured. Set before the tasks meet and cleared after they
/// have met again.
static ARRIVAL: AtomicPtr<Arrival> = AtomicPtr::new(ptr::null_mut());
/// Messages that were dropped, and that no wait has taken yet.
static DROPPED: AtomicU64 = AtomicU64::new(0);
/// Whether a message to be read was not whole.
static IN_PIECES: AtomicBool = AtomicBool::new(false);

/// Lets the handlers use an arrival from now on; null for none.
pub(super) fn expect(arrival: *mut Arrival) {
    ARRIVAL.store(arrival, Ordering::Release);
}

/// Takes `count` dropped messages, when there are that many.
#[inline]
pub(super) fn take_dropped(count: u64) -> bool {
    let enough = DROPPED.load(Ordering::Acquire) >= count;
    if enough {
        DROPPED.fetch_sub(count, Ordering::AcqRel);
    }
    enough
}

/// Whether a message could not be read, because only a part of it was there.
pub(super) fn in_pieces() -> bool {
    IN_PIECES.load(Ordering::Acquire)
}

fn arrival() -> &'static Arrival {
    let arrival = ARRIVAL.load(Ordering::Acquire);
    assert!(!arrival.is_null(), "a message of no row");
    // SAFETY: set by the measuring thread, which keeps it until all messages of the
    // row have arrived.
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
    DROPPED.fetch_add(1, Ordering::AcqRel);
    ptr::null_mut()
}

unsafe extern "C" fn read(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    length: *mut c_ulong,
    completion: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: as for `light`. Where there is a pointer, `msg_len` bytes are there.
    unsafe {
        *completion = None;
        let info = &mut *length.cast::<lapi_return_info_t>();
        let data = info.udata_one_pkt_ptr.cast::<u8>();
        if data.is_null() {
            IN_PIECES.store(info.msg_len > 0, Ordering::Release);
        } else if info.msg_len > 0 {
            black_box(data.add(info.msg_len as usize - 1).read_volatile());
        }
        info.ctl_flags = LAPI_BURY_MSG;
    }
    DROPPED.fetch_add(1, Ordering::AcqRel);
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
