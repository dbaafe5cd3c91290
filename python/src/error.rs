//! `openlapi.Error`, with LAPI's code and name.

use crate::library::library;
use openlapi::abi::*;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::ffi::{CStr, c_char, c_int};

pyo3::create_exception!(
    _core,
    Error,
    PyException,
    "An error of LAPI: `code` is its number, `name` its name in lapi.h."
);

/// Raises what a call has returned, unless it is success.
#[inline]
pub fn check(code: c_int, what: &str) -> PyResult<()> {
    if code == LAPI_SUCCESS { Ok(()) } else { Err(error(code, what)) }
}

/// The exception for an error number; `what` says what was tried.
#[cold]
pub fn error(code: c_int, what: &str) -> PyErr {
    let text = text(code);
    // "LAPI_ERR_TGT (428): ...": the name comes first.
    let name = text.split([' ', ':', '(', ',']).next().unwrap_or_default().to_owned();
    let raised = Error::new_err(format!("{what}: {text}"));
    Python::attach(|py| {
        let value = raised.value(py);
        value.setattr("code", code)?;
        value.setattr("name", name)
    })
    .map_or_else(|failed: PyErr| failed, |()| raised)
}

/// LAPI's text of an error number.
fn text(code: c_int) -> String {
    let Ok(library) = library() else { return code.to_string() };
    let mut text = [0 as c_char; LAPI_MAX_ERR_STRING];
    // SAFETY: the buffer has the size that the call wants; it writes a C string, for an
    // unknown code too.
    unsafe {
        (library.LAPI_Msg_string)(code, text.as_mut_ptr().cast());
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    }
}
