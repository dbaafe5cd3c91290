//! The program's counts of send tokens, and sizes: man page gm_send(3).

use super::{GmPort, with};
use crate::abi::{LEAST_SIZE, SIZES, capacity};
use std::ffi::{c_int, c_uint, c_ulong};

fn count<T>(port: *mut GmPort, priority: c_uint, change: impl FnOnce(&mut u32) -> T) -> Option<T> {
    with(port, |_, open| open.tokens.get_mut(priority as usize).map(change)).flatten()
}

/// Takes one token that was given back; 0: there is none.
#[unsafe(no_mangle)]
pub extern "C" fn gm_alloc_send_token(port: *mut GmPort, priority: c_uint) -> c_int {
    let taken = count(port, priority, |tokens| {
        let left = tokens.checked_sub(1);
        *tokens = left.unwrap_or(0);
        left.is_some()
    });
    taken.unwrap_or(false).into()
}

/// Whether gm_alloc_send_token would take one.
#[unsafe(no_mangle)]
pub extern "C" fn gm_send_token_available(port: *mut GmPort, priority: c_uint) -> c_int {
    count(port, priority, |tokens| *tokens != 0).unwrap_or(false).into()
}

/// Gives a token back.
#[unsafe(no_mangle)]
pub extern "C" fn gm_free_send_token(port: *mut GmPort, priority: c_uint) {
    gm_free_send_tokens(port, priority, 1);
}

/// Gives tokens back.
#[unsafe(no_mangle)]
pub extern "C" fn gm_free_send_tokens(port: *mut GmPort, priority: c_uint, more: c_uint) {
    count(port, priority, |tokens| *tokens = tokens.saturating_add(more));
}

/// The least size of a message of that many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn gm_min_size_for_length(length: c_ulong) -> c_uint {
    let fits = |size: &u8| capacity(*size) >= length;
    (LEAST_SIZE..SIZES).find(fits).unwrap_or(SIZES).into()
}

/// How many bytes a message of this size has at most.
#[unsafe(no_mangle)]
pub extern "C" fn gm_max_length_for_size(size: c_uint) -> c_ulong {
    capacity(size.min(SIZES.into()) as u8)
}
