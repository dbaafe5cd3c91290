//! Sends, puts and gets: man pages gm_send(3) and gm_put(3).

use super::{GmPort, address_of, place};
use crate::abi::{Callback, SIZES};
use crate::protocol::{Request, Target, Then};
use crate::wire::Kind;
use openlapi_runtime::console;
use std::ffi::{c_uint, c_ulong, c_void};

/// A port or a size that no port has: what the program gives may be anything.
fn narrow(value: c_uint) -> u8 {
    value.try_into().unwrap_or(u8::MAX)
}

fn then(callback: Option<Callback>, context: *mut c_void) -> Then {
    Then { callback: address_of(callback), context: context.expose_provenance() }
}

fn start(port: *mut GmPort, name: &str, request: Request) {
    let started = place(port)
        .and_then(|(world, slot)| world.with(slot, |open| open.port.start(world.roughly_now(), request)));
    if started.is_none() {
        no_port(name);
    }
}

fn no_port(name: &str) {
    console::log(format_args!("{name}: the port is not open"));
}

#[expect(clippy::too_many_arguments, reason = "GM's arguments")]
fn send(
    port: *mut GmPort,
    kind: Kind,
    message: *mut c_void,
    size: c_uint,
    length: c_ulong,
    priority: c_uint,
    (node, target): (c_uint, c_uint),
    then: Then,
) {
    let size = narrow(size).min(SIZES);
    let target = Target { node, port: narrow(target), priority: narrow(priority) };
    let address = message.expose_provenance();
    start(port, "gm_send", Request { kind, target, size, address, length, remote: 0, then });
}

fn number(port: *mut GmPort) -> c_uint {
    super::ports::gm_get_port_id(port)
}

/// Sends a message.
#[unsafe(no_mangle)]
pub extern "C" fn gm_send_with_callback(
    port: *mut GmPort,
    message: *mut c_void,
    size: c_uint,
    length: c_ulong,
    priority: c_uint,
    node: c_uint,
    target: c_uint,
    callback: Option<Callback>,
    context: *mut c_void,
) {
    let then = then(callback, context);
    send(port, Kind::Send, message, size, length, priority, (node, target), then);
}

/// Sends a message to the port of the same number.
#[unsafe(no_mangle)]
pub extern "C" fn gm_send_to_peer_with_callback(
    port: *mut GmPort,
    message: *mut c_void,
    size: c_uint,
    length: c_ulong,
    priority: c_uint,
    node: c_uint,
    callback: Option<Callback>,
    context: *mut c_void,
) {
    let then = then(callback, context);
    send(port, Kind::Send, message, size, length, priority, (node, number(port)), then);
}

/// Sends a message, whose end is a GM_SENT_EVENT.
#[unsafe(no_mangle)]
pub extern "C" fn gm_send(
    port: *mut GmPort,
    message: *mut c_void,
    size: c_uint,
    length: c_ulong,
    priority: c_uint,
    node: c_uint,
    target: c_uint,
) {
    let then = then(None, std::ptr::null_mut());
    send(port, Kind::Send, message, size, length, priority, (node, target), then);
}

/// Sends a message to the port of the same number, whose end is a GM_SENT_EVENT.
#[unsafe(no_mangle)]
pub extern "C" fn gm_send_to_peer(
    port: *mut GmPort,
    message: *mut c_void,
    size: c_uint,
    length: c_ulong,
    priority: c_uint,
    node: c_uint,
) {
    let then = then(None, std::ptr::null_mut());
    send(port, Kind::Send, message, size, length, priority, (node, number(port)), then);
}

/// Sends a message that is lost where it finds no buffer.
#[unsafe(no_mangle)]
pub extern "C" fn gm_datagram_send(
    port: *mut GmPort,
    message: *mut c_void,
    size: c_uint,
    length: c_ulong,
    priority: c_uint,
    node: c_uint,
    target: c_uint,
    callback: Option<Callback>,
    context: *mut c_void,
) {
    let then = then(callback, context);
    send(port, Kind::Datagram, message, size, length, priority, (node, target), then);
}

#[expect(clippy::too_many_arguments, reason = "GM's arguments")]
fn access(
    port: *mut GmPort,
    kind: Kind,
    local: *mut c_void,
    remote: u64,
    length: c_ulong,
    priority: c_uint,
    (node, target): (c_uint, c_uint),
    then: Then,
) {
    let target = Target { node, port: narrow(target), priority: narrow(priority) };
    let address = local.expose_provenance();
    start(port, "gm_put", Request { kind, target, size: 0, address, length, remote, then });
}

/// Copies memory of this process to an address of the target's.
#[unsafe(no_mangle)]
pub extern "C" fn gm_put(
    port: *mut GmPort,
    local: *mut c_void,
    remote: u64,
    length: c_ulong,
    priority: c_uint,
    node: c_uint,
    target: c_uint,
    callback: Option<Callback>,
    context: *mut c_void,
) {
    access(port, Kind::Put, local, remote, length, priority, (node, target), then(callback, context));
}

/// gm_put by its older name.
#[unsafe(no_mangle)]
pub extern "C" fn gm_directed_send_with_callback(
    port: *mut GmPort,
    local: *mut c_void,
    remote: u64,
    length: c_ulong,
    priority: c_uint,
    node: c_uint,
    target: c_uint,
    callback: Option<Callback>,
    context: *mut c_void,
) {
    gm_put(port, local, remote, length, priority, node, target, callback, context);
}

/// gm_put whose end is a GM_SENT_EVENT.
#[unsafe(no_mangle)]
pub extern "C" fn gm_directed_send(
    port: *mut GmPort,
    local: *mut c_void,
    remote: u64,
    length: c_ulong,
    priority: c_uint,
    node: c_uint,
    target: c_uint,
) {
    gm_put(port, local, remote, length, priority, node, target, None, std::ptr::null_mut());
}

/// Copies memory of the target's process to this one.
#[unsafe(no_mangle)]
pub extern "C" fn gm_get(
    port: *mut GmPort,
    remote: u64,
    local: *mut c_void,
    length: c_ulong,
    priority: c_uint,
    node: c_uint,
    target: c_uint,
    callback: Option<Callback>,
    context: *mut c_void,
) {
    access(port, Kind::Get, local, remote, length, priority, (node, target), then(callback, context));
}

/// Goes on after a failure, without the message that has failed.
#[unsafe(no_mangle)]
pub extern "C" fn gm_resume_sending(
    port: *mut GmPort,
    priority: c_uint,
    node: c_uint,
    target: c_uint,
    callback: Option<Callback>,
    context: *mut c_void,
) {
    let target = Target { node, port: narrow(target), priority: narrow(priority) };
    let then = then(callback, context);
    let done = place(port).and_then(|(world, slot)| {
        world.with(slot, |open| open.port.resume(world.roughly_now(), target, then))
    });
    done.unwrap_or_else(|| no_port("gm_resume_sending"));
}

/// Ends after a failure all that waits for the same target.
#[unsafe(no_mangle)]
pub extern "C" fn gm_drop_sends(
    port: *mut GmPort,
    priority: c_uint,
    node: c_uint,
    target: c_uint,
    callback: Option<Callback>,
    context: *mut c_void,
) {
    let target = Target { node, port: narrow(target), priority: narrow(priority) };
    let then = then(callback, context);
    let done = place(port).and_then(|(world, slot)| {
        world.with(slot, |open| open.port.drop_sends(world.roughly_now(), target, then))
    });
    done.unwrap_or_else(|| no_port("gm_drop_sends"));
}
