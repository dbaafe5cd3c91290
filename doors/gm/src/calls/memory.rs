//! Memory that is registered, or made so: man page gm_memory(3).

use super::{GmPort, StatusCode, with};
use crate::abi::Status;
use std::ffi::{c_ulong, c_void};
use std::ptr;

/// GM_PAGE_LEN: the length of a page in bytes.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "GM's name")]
pub static GM_PAGE_LEN: c_ulong = 4096;

/// Registers memory.
#[unsafe(no_mangle)]
pub extern "C" fn gm_register_memory(port: *mut GmPort, start: *mut c_void, length: c_ulong) -> StatusCode {
    if start.is_null() {
        return Status::InvalidParameter as StatusCode;
    }
    let done = with(port, |_, open| open.port.registered().add(start.addr(), length as usize));
    done.map_or(Status::InvalidParameter, |()| Status::Success) as StatusCode
}

/// Ends a registration.
#[unsafe(no_mangle)]
pub extern "C" fn gm_deregister_memory(port: *mut GmPort, start: *mut c_void, length: c_ulong) -> StatusCode {
    let done = with(port, |_, open| open.port.registered().remove(start.addr(), length as usize));
    match done {
        Some(true) => Status::Success as StatusCode,
        _ => Status::InvalidParameter as StatusCode,
    }
}

/// Memory that may be sent; null: there is none.
#[unsafe(no_mangle)]
pub extern "C" fn gm_dma_malloc(port: *mut GmPort, length: c_ulong) -> *mut c_void {
    let memory = gm_alloc_pages(length);
    if !memory.is_null() {
        with(port, |_, open| open.port.registered().add_allocated(memory.addr(), length as usize));
    }
    memory
}

/// Memory of zeros that may be sent; null: there is none.
#[unsafe(no_mangle)]
pub extern "C" fn gm_dma_calloc(port: *mut GmPort, count: c_ulong, length: c_ulong) -> *mut c_void {
    let Some(length) = count.checked_mul(length) else { return ptr::null_mut() };
    let memory = gm_dma_malloc(port, length);
    if !memory.is_null() {
        // SAFETY: the memory has that length.
        unsafe { ptr::write_bytes(memory.cast::<u8>(), 0, length as usize) };
    }
    memory
}

/// Frees memory of gm_dma_malloc or gm_dma_calloc.
///
/// # Safety
/// It is such memory, which nothing uses any more; or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_dma_free(port: *mut GmPort, memory: *mut c_void) {
    with(port, |_, open| open.port.registered().remove_at(memory.addr()));
    // SAFETY: the caller's promise.
    unsafe { libc::free(memory) };
}

/// Pages for that many bytes; null: there are none.
#[unsafe(no_mangle)]
pub extern "C" fn gm_alloc_pages(length: c_ulong) -> *mut c_void {
    let length = usize::try_from(length).unwrap_or(usize::MAX).max(1);
    let Some(length) = length.checked_next_multiple_of(GM_PAGE_LEN as usize) else { return ptr::null_mut() };
    let mut memory = ptr::null_mut();
    // SAFETY: the place for the address is writable.
    match unsafe { libc::posix_memalign(&raw mut memory, GM_PAGE_LEN as usize, length) } {
        0 => memory,
        _ => ptr::null_mut(),
    }
}

/// Frees pages of gm_alloc_pages.
///
/// # Safety
/// They are such pages, which nothing uses any more; or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_free_pages(memory: *mut c_void, _length: c_ulong) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(memory) };
}

/// One page; null: there is none.
#[unsafe(no_mangle)]
pub extern "C" fn gm_page_alloc() -> *mut c_void {
    gm_alloc_pages(GM_PAGE_LEN)
}

/// Frees a page of gm_page_alloc.
///
/// # Safety
/// It is such a page, which nothing uses any more; or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_page_free(page: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(page) };
}
