//! LAPI_Qenv, LAPI_Senv, LAPI_Msg_string.

use crate::boundary;
use libc::{c_char, c_int, c_void};
use openlapi::abi::*;
use openlapi::api::env::{self, Value};
use openlapi::error::Error;
use openlapi_runtime::environment::process_env;
use openlapi_runtime::{console, messages};

pub(crate) unsafe fn qenv(hndl: lapi_handle_t, query: lapi_query_t, ret_val: *mut c_int) -> c_int {
    boundary::call("LAPI_Qenv", hndl, |held| {
        if query >= LAST_QUERY {
            env::query(held, query)?;
        }
        if ret_val.is_null() {
            return Err(Error::new(LAPI_ERR_RET_PTR_NULL, "ret_val is null"));
        }
        let value = env::query(held, query)?;
        // SAFETY: the program gives room for what this query returns, as the man page says.
        unsafe {
            match value {
                Value::Number(number) => ret_val.write(number),
                Value::List(list) => ret_val.copy_from_nonoverlapping(list.as_ptr(), list.len()),
                Value::Statistics(path) => {
                    ret_val.cast::<lapi_statistics_t>().write_unaligned(path.as_statistics());
                }
                Value::Lines(lines) => held.unlocked(|| console::print(&lines)),
            }
        }
        Ok(())
    })
}

pub(crate) unsafe fn senv(hndl: lapi_handle_t, query: lapi_query_t, set_val: c_int) -> c_int {
    boundary::call("LAPI_Senv", hndl, |held| env::set(held.context(), query, set_val))
}

pub(crate) unsafe fn msg_string(error_code: c_int, buf: *mut c_void) -> c_int {
    if buf.is_null() {
        let error = Error::new(LAPI_ERR_RET_PTR_NULL, "a null pointer for the text");
        return boundary::code("LAPI_Msg_string", LAPI_VOID_HANDLE, Err(error));
    }
    let (text, outcome) = messages::message(error_code, &process_env);
    // SAFETY: the program gives LAPI_MAX_ERR_STRING bytes; the text is shorter, so that its
    // zero fits too.
    unsafe {
        let to = buf.cast::<c_char>();
        to.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        to.add(text.len()).write(0);
    }
    boundary::code("LAPI_Msg_string", LAPI_VOID_HANDLE, outcome)
}
