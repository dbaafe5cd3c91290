//! LAPI_Init and LAPI_Term.

use crate::table::{self, Place};
use libc::c_int;
use openlapi::abi::*;
use openlapi::api::init::{self, Request};
use openlapi::base::thread::ThreadConfig;
use openlapi::error::{Error, Result};

pub(crate) unsafe fn init(hndl: *mut lapi_handle_t, lapi_info: *mut lapi_info_t) -> c_int {
    // SAFETY: null, or as the man page wants them.
    let (hndl, info) = unsafe { (hndl.as_mut(), lapi_info.as_mut()) };
    table::code("LAPI_Init", LAPI_VOID_HANDLE, open(hndl, info))
}

fn open(hndl: Option<&mut lapi_handle_t>, info: Option<&mut lapi_info_t>) -> Result<()> {
    let hndl = hndl.ok_or_else(|| Error::new(LAPI_ERR_HNDL_INVALID, "a null pointer to the handle"))?;
    let info = info.ok_or_else(|| Error::new(LAPI_ERR_INFO_NULL, "a null pointer to lapi_info_t"))?;
    if info.info6 != 0 {
        let detail = format!("info6 is {}; clear the structure before its fields are set", info.info6);
        return Err(Error::new(LAPI_ERR_INFO_NONZERO, detail));
    }
    let place = Place::take(info.instance_no)?;
    // SAFETY: null, or the program's structure.
    let recipe = unsafe { info.lapi_thread_attr.as_ref() }.map_or(ThreadConfig::PLAIN, ThreadConfig::of);
    let request = Request {
        handle: place.handle(),
        instance: place.index(),
        level: info.lib_vers,
        error_handler: info.err_hndlr,
        completion_threads: info.num_compl_hndlr_thr,
        recipe,
        interrupts: info.protocol & LAPI_INTERRUPT_OFF == 0,
    };
    // Before the threads run: a handler may use the program's own variable.
    *hndl = request.handle;
    match init::init(place.context(), &request) {
        Ok(device) => {
            info.protocol = device;
            place.keep();
            Ok(())
        }
        Err(error) => {
            *hndl = LAPI_VOID_HANDLE;
            Err(error)
        }
    }
}

pub(crate) unsafe fn term(hndl: lapi_handle_t) -> c_int {
    let outcome = table::find(hndl).and_then(|context| init::term(context));
    if outcome.is_ok() {
        table::free(hndl);
    }
    table::code("LAPI_Term", hndl, outcome)
}
