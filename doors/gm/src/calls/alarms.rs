//! Alarms and time: man page gm_alarm(3).

use super::{GmPort, with};
use crate::world::current;
use std::ffi::c_void;

/// What an alarm calls.
type Function = unsafe extern "C" fn(*mut c_void);

/// `gm_alarm_t`.
#[repr(C)]
pub struct GmAlarm {
    function: Option<Function>,
    context: *mut c_void,
    port: *mut GmPort,
    reserved: [u64; 5],
}

/// Makes an alarm that is not set.
///
/// # Safety
/// `alarm` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_initialize_alarm(alarm: *mut GmAlarm) {
    let fresh = GmAlarm {
        function: None,
        context: std::ptr::null_mut(),
        port: std::ptr::null_mut(),
        reserved: [0; 5],
    };
    // SAFETY: the caller's promise.
    unsafe { alarm.write(fresh) };
}

/// Sets an alarm: in that many microseconds an event comes, for which gm_unknown calls the
/// function. One that was set is set again.
///
/// # Safety
/// `alarm` was initialized, and stays until it has been delivered or cancelled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_set_alarm(
    port: *mut GmPort,
    alarm: *mut GmAlarm,
    usec: u64,
    function: Option<Function>,
    context: *mut c_void,
) {
    // SAFETY: the caller's promise.
    unsafe {
        gm_cancel_alarm(alarm);
        (*alarm).function = function;
        (*alarm).context = context;
        (*alarm).port = port;
    }
    let place = alarm.expose_provenance();
    with(port, |world, open| open.alarms.push((world.now().saturating_add(usec), place)));
}

/// Takes an alarm back: its function is not called any more.
///
/// # Safety
/// `alarm` was initialized.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_cancel_alarm(alarm: *mut GmAlarm) {
    // SAFETY: the caller's promise.
    let port = unsafe { (*alarm).port };
    let place = alarm.addr();
    with(port, |_, open| open.forget(Some(place)));
}

/// Takes all alarms of a port back.
#[unsafe(no_mangle)]
pub extern "C" fn gm_flush_alarm(port: *mut GmPort) {
    with(port, |_, open| open.forget(None));
}

/// Time, in units of half a microsecond; 0 where gm_init was not called.
#[unsafe(no_mangle)]
pub extern "C" fn gm_ticks(_port: *mut GmPort) -> u64 {
    current().map_or(0, |world| 2 * world.now())
}

/// Calls an alarm's function.
///
/// # Safety
/// The address of an alarm that was set.
pub unsafe fn run(alarm: usize) {
    let alarm: *mut GmAlarm = std::ptr::with_exposed_provenance_mut(alarm);
    // SAFETY: the caller's promise; the function is the program's.
    unsafe {
        let (function, context) = ((*alarm).function, (*alarm).context);
        if let Some(function) = function {
            function(context);
        }
    }
}
