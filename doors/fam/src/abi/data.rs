//! Data: put, get, scatter, gather, atomics, and items in this process's memory.

use super::control::item;
use super::{code, context, give};
use crate::client::{Atomic, Context, Elements, Item, Memory, Places};
use crate::error::{FamError, Result};
use crate::wire::{Change, Kind};
use libc::{c_int, c_void};

/// `struct olfam_elements` of `shim/abi.h`.
#[repr(C)]
pub struct RawElements {
    count: u64,
    first: u64,
    stride: u64,
    index: *const u64,
    size: u64,
}

fn invalid<T>(why: &str) -> Result<T> {
    Err(FamError::Invalid.because(why))
}

/// Local memory of a call.
fn memory(local: *mut c_void, length: u64) -> Result<Memory> {
    if local.is_null() {
        return invalid("the local memory is NULL");
    }
    match usize::try_from(length) {
        Ok(0) => invalid("no byte is to be moved"),
        Ok(length) => Ok(Memory { at: local.cast(), length }),
        Err(_) => invalid("more bytes than there is memory"),
    }
}

/// Copies bytes of an item; see fam_get_blocking(3).
///
/// # Safety
/// Context and item were made by this library. `local` is NULL, or nothing else uses `length` bytes
/// there until the call has returned, or olfam_quiet after one that does not wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_get(
    of: *mut Context,
    source: *mut Item,
    local: *mut c_void,
    offset: u64,
    length: u64,
    blocking: c_int,
) -> c_int {
    let get = || {
        let memory = memory(local, length)?;
        // SAFETY: the caller's promise.
        unsafe { context(of)?.get(item(source)?, memory, offset, blocking != 0) }
    };
    code(get())
}

/// Copies bytes into an item; see fam_put_blocking(3).
///
/// # Safety
/// Context and item were made by this library. `local` is NULL, or `length` bytes there can be read
/// and do not change until the call has returned, or olfam_quiet after one that does not wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_put(
    of: *mut Context,
    target: *mut Item,
    local: *const c_void,
    offset: u64,
    length: u64,
    blocking: c_int,
) -> c_int {
    let put = || {
        let memory = memory(local.cast_mut(), length)?;
        // SAFETY: the caller's promise.
        unsafe { context(of)?.put(item(target)?, memory, offset, blocking != 0) }
    };
    code(put())
}

/// # Safety
/// `raw` is valid, and so is its index, if it is not NULL.
unsafe fn elements<'a>(raw: *const RawElements, local: *const c_void) -> Result<Elements<'a>> {
    // SAFETY: the caller's promise.
    let raw = unsafe { &*raw };
    if local.is_null() {
        return invalid("the local memory is NULL");
    }
    if raw.count == 0 || raw.size == 0 {
        return invalid("no byte is to be moved");
    }
    let places = match usize::try_from(raw.count) {
        _ if raw.index.is_null() => Places::Strided { first: raw.first, stride: raw.stride },
        Ok(count) if count <= isize::MAX as usize / 8 => {
            // SAFETY: the caller's promise.
            Places::Listed(unsafe { std::slice::from_raw_parts(raw.index, count) })
        }
        _ => return invalid("more elements than there is memory"),
    };
    Ok(Elements { count: raw.count, places, size: raw.size })
}

/// Copies elements of an item; see fam_gather_blocking(3).
///
/// # Safety
/// Those of [`olfam_get`], for memory of all elements; `elements` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_gather(
    of: *mut Context,
    source: *mut Item,
    local: *mut c_void,
    which: *const RawElements,
    blocking: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let gather = || unsafe {
        let elements = elements(which, local)?;
        context(of)?.gather(item(source)?, local.cast(), &elements, blocking != 0)
    };
    code(gather())
}

/// Copies memory to elements of an item; see fam_scatter_blocking(3).
///
/// # Safety
/// Those of [`olfam_put`], for memory of all elements; `elements` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_scatter(
    of: *mut Context,
    target: *mut Item,
    local: *const c_void,
    which: *const RawElements,
    blocking: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let scatter = || unsafe {
        let elements = elements(which, local)?;
        context(of)?.scatter(item(target)?, local.cast_mut().cast(), &elements, blocking != 0)
    };
    code(scatter())
}

/// The operations, in the order of `shim/abi.h`: a set is a swap whose result is dropped.
const CHANGES: [Change; 11] = [
    Change::Swap,
    Change::Fetch,
    Change::Swap,
    Change::Add,
    Change::Subtract,
    Change::Min,
    Change::Max,
    Change::And,
    Change::Or,
    Change::Xor,
    Change::CompareSwap,
];

/// A number of the shim.
///
/// # Safety
/// It is NULL, or as many bytes can be read.
unsafe fn number(at: *const c_void, size: usize) -> u128 {
    let mut bytes = [0; 16];
    if !at.is_null() {
        // SAFETY: the caller's promise; no kind of number is longer.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(at.cast(), size) };
    }
    u128::from_ne_bytes(bytes)
}

/// Changes a number of an item as one step; see fam_atomics(3). With `old` NULL it does not wait.
///
/// # Safety
/// Context and item were made by this library; the values are as long as the type, and `old` may be
/// written, if it is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_atomic(
    of: *mut Context,
    target: *mut Item,
    offset: u64,
    operation: c_int,
    kind: c_int,
    value: *const c_void,
    comparand: *const c_void,
    old: *mut c_void,
) -> c_int {
    let change = || {
        // SAFETY: the caller's promise.
        let (context, item) = unsafe { (context(of)?, item(target)?) };
        let known = usize::try_from(operation).ok().and_then(|operation| CHANGES.get(operation));
        let kind = usize::try_from(kind).ok().and_then(|kind| Kind::ALL.get(kind));
        let (Some(change), Some(kind)) = (known, kind) else { return invalid("no such atomic operation") };
        let size = kind.size();
        // SAFETY: the caller's promise.
        let (operand, comparand) = unsafe { (number(value, size), number(comparand, size)) };
        let atomic = Atomic { change: *change, kind: *kind, operand, comparand };
        let before = context.atomic(item, offset, &atomic, !old.is_null())?;
        if !old.is_null() {
            // SAFETY: the caller's promise.
            unsafe { old.cast::<u8>().copy_from_nonoverlapping(before.to_ne_bytes().as_ptr(), size) };
        }
        Ok(())
    };
    code(change())
}

/// Maps an item; see fam_map(3).
///
/// # Safety
/// Context and item were made by this library; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_map(of: *mut Context, mapped: *mut Item, out: *mut *mut c_void) -> c_int {
    let map = || {
        // SAFETY: the caller's promise.
        let (context, item) = unsafe { (context(of)?, item(mapped)?) };
        Ok(std::ptr::with_exposed_provenance_mut(item.map(context.control()?)?))
    };
    // SAFETY: the caller's place.
    unsafe { give(map(), out) }
}

/// Takes a mapping away; see fam_unmap(3).
///
/// # Safety
/// Context and item were made by this library; the program uses the memory no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_unmap(of: *mut Context, mapped: *mut Item, local: *mut c_void) -> c_int {
    let unmap = || {
        // SAFETY: the caller's promise.
        let (context, item) = unsafe { (context(of)?, item(mapped)?) };
        context.control()?;
        item.unmap(local.addr())
    };
    code(unmap())
}
