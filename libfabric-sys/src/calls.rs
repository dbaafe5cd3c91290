//! The inline functions of libfabric's headers: calls through the tables of an object. The names
//! are those of the headers without `fi_`.
//!
//! # Safety
//! Of each function: the objects are open and of this library, the pointers are as the man page of
//! the call says. A table that a provider does not fill holds functions that return -FI_ENOSYS.

#![allow(clippy::missing_safety_doc, reason = "one promise, above, for all of them")]

use crate::bindings::*;
use std::ffi::{c_char, c_int, c_void};

/// What a table lacks: the entry is null.
const NOT_THERE: c_int = -(FI_ENOSYS as c_int);

macro_rules! call {
    ($object:expr, $table:ident . $function:ident ($($argument:expr),*)) => {{
        let table = (*$object).$table;
        match (*table).$function {
            Some(function) => function($($argument),*),
            None => NOT_THERE as _,
        }
    }};
}

/// Closes any object.
pub unsafe fn close(object: *mut fid) -> c_int {
    // SAFETY: the module's promise.
    unsafe { call!(object, ops.close(object)) }
}

/// Binds one object to another.
pub unsafe fn bind(object: *mut fid, to: *mut fid, flags: u64) -> c_int {
    // SAFETY: the module's promise.
    unsafe { call!(object, ops.bind(object, to, flags)) }
}

/// Commands to any object: FI_ENABLE, FI_GETWAIT.
pub unsafe fn control(object: *mut fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the module's promise.
    unsafe { call!(object, ops.control(object, command, argument)) }
}

/// Opens a domain.
pub unsafe fn domain(fabric: *mut fid_fabric, info: *mut fi_info, domain: *mut *mut fid_domain) -> c_int {
    // SAFETY: the module's promise.
    unsafe { call!(fabric, ops.domain(fabric, info, domain, std::ptr::null_mut())) }
}

/// Whether a thread may sleep on the descriptors of these objects.
pub unsafe fn trywait(fabric: *mut fid_fabric, objects: *mut *mut fid, count: c_int) -> c_int {
    // SAFETY: the module's promise.
    unsafe { call!(fabric, ops.trywait(fabric, objects, count)) }
}

/// Opens an endpoint.
pub unsafe fn endpoint(domain: *mut fid_domain, info: *mut fi_info, endpoint: *mut *mut fid_ep) -> c_int {
    // SAFETY: the module's promise.
    unsafe { call!(domain, ops.endpoint(domain, info, endpoint, std::ptr::null_mut())) }
}

/// Opens an address vector.
pub unsafe fn av_open(domain: *mut fid_domain, attributes: *mut fi_av_attr, av: *mut *mut fid_av) -> c_int {
    // SAFETY: the module's promise.
    unsafe { call!(domain, ops.av_open(domain, attributes, av, std::ptr::null_mut())) }
}

/// Opens a completion queue.
pub unsafe fn cq_open(domain: *mut fid_domain, attributes: *mut fi_cq_attr, cq: *mut *mut fid_cq) -> c_int {
    // SAFETY: the module's promise.
    unsafe { call!(domain, ops.cq_open(domain, attributes, cq, std::ptr::null_mut())) }
}

/// Registers memory.
pub unsafe fn mr_reg(
    domain: *mut fid_domain,
    memory: *const c_void,
    len: usize,
    access: u64,
    requested_key: u64,
    flags: u64,
    mr: *mut *mut fid_mr,
) -> c_int {
    // SAFETY: the module's promise.
    unsafe {
        let object = &raw mut (*domain).fid;
        call!(domain, mr.reg(object, memory, len, access, 0, requested_key, flags, mr, std::ptr::null_mut()))
    }
}

/// The key by which peers reach the memory.
pub unsafe fn mr_key(mr: *mut fid_mr) -> u64 {
    // SAFETY: the module's promise.
    unsafe { (*mr).key }
}

/// What operations on the memory here are given.
pub unsafe fn mr_desc(mr: *mut fid_mr) -> *mut c_void {
    // SAFETY: the module's promise.
    unsafe { (*mr).mem_desc }
}

/// Sets an option of an endpoint.
pub unsafe fn setopt(
    endpoint: *mut fid_ep,
    level: c_int,
    option: c_int,
    value: *const c_void,
    len: usize,
) -> c_int {
    // SAFETY: the module's promise.
    unsafe { call!(endpoint, ops.setopt(&raw mut (*endpoint).fid, level, option, value, len)) }
}

/// Reads an option of an endpoint.
pub unsafe fn getopt(
    endpoint: *mut fid_ep,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut usize,
) -> c_int {
    // SAFETY: the module's promise.
    unsafe { call!(endpoint, ops.getopt(&raw mut (*endpoint).fid, level, option, value, len)) }
}

/// Gives an operation up, if the provider can.
pub unsafe fn cancel(endpoint: *mut fid_ep, context: *mut c_void) -> isize {
    // SAFETY: the module's promise.
    unsafe { call!(endpoint, ops.cancel(&raw mut (*endpoint).fid, context)) }
}

/// The address of an endpoint.
pub unsafe fn getname(endpoint: *mut fid_ep, address: *mut c_void, len: *mut usize) -> c_int {
    // SAFETY: the module's promise.
    unsafe { call!(endpoint, cm.getname(&raw mut (*endpoint).fid, address, len)) }
}

/// Sends a message.
pub unsafe fn sendmsg(endpoint: *mut fid_ep, message: *const fi_msg, flags: u64) -> isize {
    // SAFETY: the module's promise.
    unsafe { call!(endpoint, msg.sendmsg(endpoint, message, flags)) }
}

/// Sends a short message whose memory is free when this returns, and which is not reported.
pub unsafe fn inject(endpoint: *mut fid_ep, bytes: *const c_void, len: usize, to: fi_addr_t) -> isize {
    // SAFETY: the module's promise.
    unsafe { call!(endpoint, msg.inject(endpoint, bytes, len, to)) }
}

/// Posts memory for messages.
pub unsafe fn recvmsg(endpoint: *mut fid_ep, message: *const fi_msg, flags: u64) -> isize {
    // SAFETY: the module's promise.
    unsafe { call!(endpoint, msg.recvmsg(endpoint, message, flags)) }
}

/// Reads a peer's memory.
pub unsafe fn readmsg(endpoint: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize {
    // SAFETY: the module's promise.
    unsafe { call!(endpoint, rma.readmsg(endpoint, message, flags)) }
}

/// Writes a peer's memory.
pub unsafe fn writemsg(endpoint: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize {
    // SAFETY: the module's promise.
    unsafe { call!(endpoint, rma.writemsg(endpoint, message, flags)) }
}

/// Takes entries out of a completion queue, and makes progress.
#[inline]
pub unsafe fn cq_read(cq: *mut fid_cq, entries: *mut c_void, count: usize) -> isize {
    // SAFETY: the module's promise.
    unsafe { call!(cq, ops.read(cq, entries, count)) }
}

/// Takes the entry of an operation that failed.
pub unsafe fn cq_readerr(cq: *mut fid_cq, entry: *mut fi_cq_err_entry, flags: u64) -> isize {
    // SAFETY: the module's promise.
    unsafe { call!(cq, ops.readerr(cq, entry, flags)) }
}

/// The provider's text for an error; null when it has none.
pub unsafe fn cq_strerror(cq: *mut fid_cq, number: c_int, data: *const c_void) -> *const c_char {
    // SAFETY: the module's promise.
    unsafe {
        match (*(*cq).ops).strerror {
            Some(function) => function(cq, number, data, std::ptr::null_mut(), 0),
            None => std::ptr::null(),
        }
    }
}

/// Enters addresses: their number, or an error below 0.
pub unsafe fn av_insert(
    av: *mut fid_av,
    addresses: *const c_void,
    count: usize,
    entered: *mut fi_addr_t,
) -> c_int {
    // SAFETY: the module's promise.
    unsafe { call!(av, ops.insert(av, addresses, count, entered, 0, std::ptr::null_mut())) }
}

/// Removes addresses.
pub unsafe fn av_remove(av: *mut fid_av, addresses: *mut fi_addr_t, count: usize) -> c_int {
    // SAFETY: the module's promise.
    unsafe { call!(av, ops.remove(av, addresses, count, 0)) }
}
