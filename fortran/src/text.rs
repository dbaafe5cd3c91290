//! LAPI_MSG_STRING: a text as Fortran has it, without a zero at its end and filled up with blanks.

use crate::common;
use libc::{c_char, c_int, c_void, size_t};
use openlapi::abi::LAPI_MAX_ERR_STRING;

/// The C call.
pub type InC = unsafe extern "C" fn(c_int, *mut c_void) -> c_int;

/// Puts the text into a CHARACTER variable. `length` is what the compiler adds to the arguments:
/// the length of the variable, or of each element of an array; CHARACTER buf(LAPI_MAX_ERR_STRING),
/// which the man page asks for, has 1.
///
/// # Safety
/// The buffer is as long as `length` says, or an array of LAPI_MAX_ERR_STRING characters.
pub unsafe fn message(call: InC, code: c_int, buffer: *mut c_char, length: size_t) -> c_int {
    let buffer = common::or_null(buffer).cast::<u8>();
    if buffer.is_null() {
        // SAFETY: the call returns an error: there is no place for its text.
        return unsafe { call(code, buffer.cast()) };
    }
    let room = if length == 1 { LAPI_MAX_ERR_STRING } else { length };
    let mut text = [0u8; LAPI_MAX_ERR_STRING];
    // SAFETY: a buffer of the length that the call asks for.
    let outcome = unsafe { call(code, text.as_mut_ptr().cast()) };
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len()).min(room);
    // SAFETY: the program's variable has this room.
    unsafe {
        buffer.copy_from_nonoverlapping(text.as_ptr(), end);
        buffer.add(end).write_bytes(b' ', room - end);
    }
    outcome
}
