//! The twelve functions of librpmem.h.

use crate::attributes::Attributes;
use crate::client::{self, Local, Pool};
use crate::failure::{Failure, Result, last_text, report};
use crate::log::{FAILURES, log};
use crate::wire::Depth;
use libc::{c_char, c_int, c_uint, c_void, size_t};
use std::ffi::CStr;
use std::ptr;

/// The version of the interface.
const MAJOR: c_uint = 1;
const MINOR: c_uint = 3;
/// The smallest pool, in bytes.
const MIN_POOL: size_t = 8192;
/// RPMEM_PERSIST_RELAXED and RPMEM_FLUSH_RELAXED.
const RELAXED: c_uint = 1;
/// RPMEM_REMOVE_FORCE.
const FORCE: c_int = 1;
/// RPMEM_REMOVE_POOL_SET.
const POOL_SET: c_int = 2;

/// The sentence of [`rpmem_check_version`].
const OTHER_MAJOR: &CStr = c"librpmem: the program needs another major version than 1";
const OTHER_MINOR: &CStr = c"librpmem: the program needs a later minor version than 3";

/// Creates a remote pool; see rpmem_create(3).
///
/// # Safety
/// The pointers are NULL or valid, the texts end by 0, and the local pool stays mapped until the
/// remote one is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpmem_create(
    target: *const c_char,
    set: *const c_char,
    address: *mut c_void,
    size: size_t,
    lanes: *mut c_uint,
    attributes: *const Attributes,
) -> *mut Pool {
    // SAFETY: NULL, or the caller's structure.
    let attributes = unsafe { attributes.as_ref() }.copied().unwrap_or_default();
    // SAFETY: the caller's promise.
    handle("rpmem_create", unsafe { begin(target, set, (address, size), lanes, Some(attributes)) })
        .map_or(ptr::null_mut(), |(pool, _)| Box::into_raw(Box::new(pool)))
}

/// Opens a remote pool; see rpmem_create(3).
///
/// # Safety
/// The conditions of [`rpmem_create`] hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpmem_open(
    target: *const c_char,
    set: *const c_char,
    address: *mut c_void,
    size: size_t,
    lanes: *mut c_uint,
    attributes: *mut Attributes,
) -> *mut Pool {
    // SAFETY: the caller's promise.
    let opened = handle("rpmem_open", unsafe { begin(target, set, (address, size), lanes, None) });
    let Some((pool, found)) = opened else { return ptr::null_mut() };
    // SAFETY: NULL, or the caller's structure.
    if let Some(attributes) = unsafe { attributes.as_mut() } {
        *attributes = found;
    }
    Box::into_raw(Box::new(pool))
}

/// Changes the attributes of a pool; see rpmem_create(3).
///
/// # Safety
/// The pool is open; `attributes` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpmem_set_attr(pool: *mut Pool, attributes: *const Attributes) -> c_int {
    // SAFETY: NULL, or the caller's structure.
    let attributes = unsafe { attributes.as_ref() }.copied().unwrap_or_default();
    // SAFETY: an open pool.
    status("rpmem_set_attr", unsafe { with(pool, |pool| pool.set_attributes(attributes)) })
}

/// Closes a pool; see rpmem_create(3).
///
/// # Safety
/// The pool is open, and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpmem_close(pool: *mut Pool) -> c_int {
    if pool.is_null() {
        return status("rpmem_close", Err(no_pool()));
    }
    // SAFETY: it comes from Box::into_raw, and this is its last use.
    let pool = unsafe { Box::from_raw(pool) };
    status("rpmem_close", pool.close())
}

/// Removes a pool; see rpmem_create(3).
///
/// # Safety
/// The texts are NULL or end by 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpmem_remove(target: *const c_char, set: *const c_char, flags: c_int) -> c_int {
    let remove = || {
        if flags & !(FORCE | POOL_SET) != 0 {
            return Err(Failure::invalid(format!("flags {flags:#x}")));
        }
        // SAFETY: the caller's texts.
        let (target, set) = unsafe { (text(target, "target")?, text(set, "pool_set_name")?) };
        client::remove(target, set, flags & FORCE != 0, flags & POOL_SET != 0)
    };
    status("rpmem_remove", remove())
}

/// Copies a range, durable after the next drain; see rpmem_persist(3).
///
/// # Safety
/// The pool is open, its local memory mapped, and the range does not change during the call. One
/// thread at a time uses a lane.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpmem_flush(
    pool: *mut Pool,
    offset: size_t,
    length: size_t,
    lane: c_uint,
    flags: c_uint,
) -> c_int {
    let flush = |pool: &Pool| {
        check_flags(flags, RELAXED)?;
        // SAFETY: the caller's promise.
        unsafe { pool.flush(offset, length, lane) }
    };
    // SAFETY: an open pool.
    status("rpmem_flush", unsafe { with(pool, flush) })
}

/// Waits until all flushes of a lane are durable; see rpmem_persist(3).
///
/// # Safety
/// The pool is open. One thread at a time uses a lane.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpmem_drain(pool: *mut Pool, lane: c_uint, flags: c_uint) -> c_int {
    let drain = |pool: &Pool| {
        check_flags(flags, 0)?;
        pool.drain(lane)
    };
    // SAFETY: an open pool.
    status("rpmem_drain", unsafe { with(pool, drain) })
}

/// Copies a range, durable when it returns; see rpmem_persist(3).
///
/// # Safety
/// The conditions of [`rpmem_flush`] hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpmem_persist(
    pool: *mut Pool,
    offset: size_t,
    length: size_t,
    lane: c_uint,
    flags: c_uint,
) -> c_int {
    let persist = |pool: &Pool| {
        check_flags(flags, RELAXED)?;
        // SAFETY: the caller's promise.
        unsafe { pool.persist(offset, length, lane, Depth::Usual) }
    };
    // SAFETY: an open pool.
    status("rpmem_persist", unsafe { with(pool, persist) })
}

/// Copies a range, durable in the deepest way when it returns; see rpmem_persist(3).
///
/// # Safety
/// The conditions of [`rpmem_flush`] hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpmem_deep_persist(
    pool: *mut Pool,
    offset: size_t,
    length: size_t,
    lane: c_uint,
) -> c_int {
    // SAFETY: the caller's promise.
    let persist = |pool: &Pool| unsafe { pool.persist(offset, length, lane, Depth::Deep) };
    // SAFETY: an open pool.
    status("rpmem_deep_persist", unsafe { with(pool, persist) })
}

/// Copies a range of the remote pool here; see rpmem_persist(3).
///
/// # Safety
/// The pool is open, and `to` has room for `length` bytes. One thread at a time uses a lane.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpmem_read(
    pool: *mut Pool,
    to: *mut c_void,
    offset: size_t,
    length: size_t,
    lane: c_uint,
) -> c_int {
    let read = |pool: &Pool| {
        if to.is_null() && length != 0 {
            return Err(Failure::invalid("buff is NULL"));
        }
        // SAFETY: the caller's promise.
        unsafe { pool.read(to.cast(), offset, length, lane) }
    };
    // SAFETY: an open pool.
    status("rpmem_read", unsafe { with(pool, read) })
}

/// NULL if this is the version of the interface that the program needs, otherwise a sentence.
#[unsafe(no_mangle)]
pub extern "C" fn rpmem_check_version(major: c_uint, minor: c_uint) -> *const c_char {
    match (major, minor) {
        (MAJOR, ..=MINOR) => ptr::null(),
        (MAJOR, _) => OTHER_MINOR.as_ptr(),
        _ => OTHER_MAJOR.as_ptr(),
    }
}

/// The text of the calling thread's last failure, valid until the next one.
#[unsafe(no_mangle)]
pub extern "C" fn rpmem_errormsg() -> *const c_char {
    last_text()
}

/// What create and open have in common.
///
/// # Safety
/// The conditions of [`rpmem_create`] hold.
unsafe fn begin(
    target: *const c_char,
    set: *const c_char,
    (address, size): (*mut c_void, size_t),
    lanes: *mut c_uint,
    create: Option<Attributes>,
) -> Result<(Pool, Attributes)> {
    let page = rustix::param::page_size();
    if address.is_null() {
        return Err(Failure::invalid("pool_addr is NULL"));
    }
    if !address.addr().is_multiple_of(page) {
        return Err(Failure::invalid("pool_addr is not a multiple of the page size"));
    }
    if !size.is_multiple_of(page) {
        return Err(Failure::invalid("pool_size is not a multiple of the page size"));
    }
    if size < MIN_POOL {
        return Err(Failure::invalid(format!("pool_size is less than {MIN_POOL} bytes")));
    }
    // SAFETY: NULL, or the caller's number.
    let Some(lanes) = (unsafe { lanes.as_mut() }) else { return Err(Failure::invalid("nlanes is NULL")) };
    if *lanes == 0 {
        return Err(Failure::invalid("*nlanes is 0"));
    }
    // SAFETY: the caller's texts.
    let (target, set) = unsafe { (text(target, "target")?, text(set, "pool_set_name")?) };
    let local = Local { address: address.expose_provenance(), size, lanes: *lanes };
    let (pool, count, attributes) = client::open(target, set, local, create)?;
    *lanes = count;
    Ok((pool, attributes))
}

fn check_flags(flags: c_uint, known: c_uint) -> Result<()> {
    if flags & !known != 0 {
        return Err(Failure::invalid(format!("flags {flags:#x}")));
    }
    Ok(())
}

fn no_pool() -> Failure {
    Failure::invalid("the pool is NULL")
}

/// Calls with an open pool.
///
/// # Safety
/// `pool` is NULL, or comes from [`rpmem_create`] or [`rpmem_open`] and is not closed.
unsafe fn with(pool: *mut Pool, call: impl FnOnce(&Pool) -> Result<()>) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { pool.as_ref() }.map_or_else(|| Err(no_pool()), call)
}

/// A text of the caller.
///
/// # Safety
/// It is NULL, or ends by 0.
unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str> {
    if text.is_null() {
        return Err(Failure::invalid(format!("{name} is NULL")));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::invalid(format!("{name} is not UTF-8")))
}

/// The value of a call, or its failure as errno and text.
fn handle<T>(call: &str, result: Result<T>) -> Option<T> {
    result
        .inspect_err(|failure| {
            log(FAILURES, || format!("{call}: {failure} (errno {})", failure.errno));
            report(failure);
        })
        .ok()
}

fn status(call: &str, result: Result<()>) -> c_int {
    if handle(call, result).is_some() { 0 } else { -1 }
}
