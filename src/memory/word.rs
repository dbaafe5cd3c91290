//! Words of the program: variables that other tasks change, and values that calls take and give.

use crate::abi::{COMPARE_AND_SWAP, FETCH_AND_ADD, FETCH_AND_OR, SWAP};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Carries out a read-modify-write on a variable of this task, atomically also with regard to the
/// program's own atomic instructions. Returns the previous value, or whether the swap was done;
/// `None` for an unknown operation, and for an address that is not a multiple of the variable's
/// width: atomic instructions need that.
///
/// # Safety
/// `var` must be the address of a variable of that width.
pub unsafe fn read_modify_write(op: u32, wide: bool, var: u64, value: u64, swap: u64) -> Option<u64> {
    let order = Ordering::SeqCst;
    if !var.is_multiple_of(if wide { 8 } else { 4 }) {
        return None;
    }
    if wide {
        // SAFETY: the caller's promise.
        let variable = unsafe { AtomicU64::from_ptr(var as *mut u64) };
        return Some(match op {
            FETCH_AND_ADD => variable.fetch_add(value, order),
            FETCH_AND_OR => variable.fetch_or(value, order),
            SWAP => variable.swap(value, order),
            COMPARE_AND_SWAP => variable.compare_exchange(value, swap, order, order).is_ok().into(),
            _ => return None,
        });
    }
    // SAFETY: the caller's promise.
    let variable = unsafe { AtomicU32::from_ptr(var as *mut u32) };
    let (value, swap) = (value as u32, swap as u32);
    Some(u64::from(match op {
        FETCH_AND_ADD => variable.fetch_add(value, order),
        FETCH_AND_OR => variable.fetch_or(value, order),
        SWAP => variable.swap(value, order),
        COMPARE_AND_SWAP => variable.compare_exchange(value, swap, order, order).is_ok().into(),
        _ => return None,
    }))
}

/// Reads a value of the program: 8 bytes (`wide`) or 4, at any address.
///
/// # Safety
/// `at` must be readable for as many bytes.
pub unsafe fn load(at: usize, wide: bool) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match wide {
            true => (at as *const u64).read_unaligned(),
            false => (at as *const u32).read_unaligned().into(),
        }
    }
}

/// Gives the program a value, at any address; 0 is none.
///
/// # Safety
/// `at` must be 0 or writable for 8 bytes (`wide`) or 4.
#[inline]
pub unsafe fn store(at: usize, wide: bool, value: u64) {
    if at != 0 {
        // SAFETY: the caller's promise.
        unsafe {
            match wide {
                true => (at as *mut u64).write_unaligned(value),
                false => (at as *mut u32).write_unaligned(value as u32),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_not_aligned_is_refused() {
        let mut words = [7u64; 2];
        let at = words.as_mut_ptr() as u64;
        for offset in 1..8 {
            // SAFETY: the variables lie within the words.
            let (wide, narrow) = unsafe {
                let wide = read_modify_write(FETCH_AND_ADD, true, at + offset, 1, 0);
                (wide, read_modify_write(FETCH_AND_ADD, false, at + offset, 1, 0))
            };
            assert_eq!((wide, narrow.is_some()), (None, offset == 4));
        }
        // SAFETY: the first word.
        let before = unsafe { read_modify_write(FETCH_AND_ADD, true, at, 1, 0) };
        assert_eq!(before, Some(7 + (1 << 32)));
        assert_eq!(words, [8 + (1 << 32), 7]);
    }
}
