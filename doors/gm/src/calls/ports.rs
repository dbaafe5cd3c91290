//! gm_init, gm_finalize, gm_open, gm_close, and what a port allows.

use super::{GmPort, StatusCode, handle, place, with};
use crate::abi::{MTU, PORTS, RECEIVE_TOKENS, SEND_TOKENS, Status};
use crate::world::{self, current};
use std::ffi::{c_char, c_uint, c_ulong};

/// The versions of the interface that a program may be compiled for.
const VERSIONS: [c_uint; 11] =
    [0x100, 0x101, 0x102, 0x103, 0x104, 0x105, 0x106, 0x200, 0x20006, 0x2000c, 0x20010];
/// The ports that GM keeps for itself.
const OF_THE_SYSTEM: [c_uint; 3] = [0, 1, 3];

/// Joins the job; the first call is collective in it. Man page gm_open(3).
#[unsafe(no_mangle)]
pub extern "C" fn gm_init() -> StatusCode {
    world::init().err().unwrap_or(Status::Success) as StatusCode
}

/// Ends what one gm_init has begun. Man page gm_open(3).
#[unsafe(no_mangle)]
pub extern "C" fn gm_finalize() {
    world::finalize();
}

/// Opens a port. Man page gm_open(3).
///
/// # Safety
/// `port` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_open(
    port: *mut *mut GmPort,
    unit: c_uint,
    number: c_uint,
    _name: *const c_char,
    version: c_uint,
) -> StatusCode {
    let opened = (|| {
        if port.is_null() {
            return Err(Status::InvalidParameter);
        }
        let world = current().ok_or(Status::Unattached)?;
        if !VERSIONS.contains(&version) {
            return Err(Status::IncompatibleLibAndDriver);
        }
        if unit != 0 {
            return Err(Status::NoSuchDevice);
        }
        if number as usize >= PORTS {
            return Err(Status::InvalidPortNumber);
        }
        if OF_THE_SYSTEM.contains(&number) {
            return Err(Status::Busy);
        }
        let slot = world.slot(number as usize).ok_or(Status::InvalidPortNumber)?;
        world.open(slot)?;
        Ok(handle(slot.number()))
    })();
    match opened {
        Ok(opened) => {
            // SAFETY: the caller's promise.
            unsafe { port.write(opened) };
            Status::Success as StatusCode
        }
        Err(status) => status as StatusCode,
    }
}

/// Closes a port, when the network uses no memory of the program for it. Man page gm_open(3).
#[unsafe(no_mangle)]
pub extern "C" fn gm_close(port: *mut GmPort) {
    if let Some((world, slot)) = place(port) {
        world.close(slot);
    }
}

/// Others may put and get at any address of this process. Man page gm_put(3).
#[unsafe(no_mangle)]
pub extern "C" fn gm_allow_remote_memory_access(port: *mut GmPort) -> StatusCode {
    let done = with(port, |_, open| open.port.allow_remote_access());
    done.map_or(Status::InvalidParameter, |()| Status::Success) as StatusCode
}

/// Which sizes of messages are taken. Man page gm_receive(3).
#[unsafe(no_mangle)]
pub extern "C" fn gm_set_acceptable_sizes(port: *mut GmPort, priority: c_uint, mask: c_ulong) -> StatusCode {
    let done = (priority < 2)
        .then(|| with(port, |_, open| open.port.set_acceptable(priority as u8, mask)))
        .flatten();
    done.map_or(Status::InvalidParameter, |()| Status::Success) as StatusCode
}

/// The number of a port; 0 where it is none. Man page gm_open(3).
#[unsafe(no_mangle)]
pub extern "C" fn gm_get_port_id(port: *mut GmPort) -> c_uint {
    place(port).map_or(0, |(_, slot)| slot.number().into())
}

/// How many ports a node has. Man page gm_open(3).
#[unsafe(no_mangle)]
pub extern "C" fn gm_num_ports(_port: *mut GmPort) -> c_uint {
    PORTS as c_uint
}

/// How many sends a port has under way at most. Man page gm_send(3).
#[unsafe(no_mangle)]
pub extern "C" fn gm_num_send_tokens(_port: *mut GmPort) -> c_uint {
    SEND_TOKENS as c_uint
}

/// How many buffers a port takes at most. Man page gm_receive(3).
#[unsafe(no_mangle)]
pub extern "C" fn gm_num_receive_tokens(_port: *mut GmPort) -> c_uint {
    RECEIVE_TOKENS as c_uint
}

/// The longest datagram, in bytes. Man page gm_send(3).
#[unsafe(no_mangle)]
pub extern "C" fn gm_mtu(_port: *mut GmPort) -> c_uint {
    MTU
}

/// The least size of a message. Man page gm_receive(3).
#[unsafe(no_mangle)]
pub extern "C" fn gm_min_message_size(_port: *mut GmPort) -> c_uint {
    crate::abi::LEAST_SIZE.into()
}
