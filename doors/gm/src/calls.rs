//! The functions of gm.h, one file per group: check, convert, one call, result.

mod alarms;
mod helpers;
mod memory;
mod names;
mod ports;
mod receive;
mod send;
mod tokens;

use crate::world::{Open, Slot, World, current};
use std::ffi::{c_uint, c_void};

/// `struct gm_port`: the address is the port's number and one, so that a stale one does no harm.
#[repr(C)]
pub struct GmPort {
    _opaque: [u8; 0],
}

/// `gm_status_t`.
type StatusCode = c_uint;

fn handle(number: u8) -> *mut GmPort {
    std::ptr::without_provenance_mut(usize::from(number) + 1)
}

fn place(port: *mut GmPort) -> Option<(&'static World, &'static Slot)> {
    let world = current()?;
    Some((world, world.slot(port.addr().checked_sub(1)?)?))
}

/// Changes the state of an open port; `None`: it is none.
fn with<T>(port: *mut GmPort, change: impl FnOnce(&World, &mut Open) -> T) -> Option<T> {
    let (world, slot) = place(port)?;
    world.with(slot, |open| change(world, open))
}

/// The address of a function that a program has given, as a callback.
fn address_of(function: Option<crate::abi::Callback>) -> usize {
    function.map_or(0, |function| function as *const c_void as usize)
}
