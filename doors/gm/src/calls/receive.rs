//! Buffers and events: man page gm_receive(3).

use super::{GmPort, place, with};
use crate::abi::{self, Callback, RecvEvent, SIZES, Status};
use crate::protocol::Event;
use crate::world::{Next, Pending, Slot, World};
use openlapi_runtime::console;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

/// What a program gets from a port that is not open.
static NOTHING: RecvEvent = RecvEvent::plain(abi::NO_RECV);

/// Provides a buffer.
#[unsafe(no_mangle)]
pub extern "C" fn gm_provide_receive_buffer(
    port: *mut GmPort,
    buffer: *mut c_void,
    size: c_uint,
    priority: c_uint,
) {
    gm_provide_receive_buffer_with_tag(port, buffer, size, priority, 0);
}

/// Provides a buffer, with a tag that comes back with it.
#[unsafe(no_mangle)]
pub extern "C" fn gm_provide_receive_buffer_with_tag(
    port: *mut GmPort,
    buffer: *mut c_void,
    size: c_uint,
    priority: c_uint,
    tag: c_uint,
) {
    if size >= SIZES.into() || priority > 1 {
        let call = "gm_provide_receive_buffer";
        return console::log(format_args!("{call}: there is no size {size} with priority {priority}"));
    }
    let address = buffer.expose_provenance();
    let provided = with(port, |_, open| open.port.provide(address, size as u8, priority as u8, tag as u8));
    match provided {
        Some(true) => {}
        Some(false) => console::log(format_args!(
            "gm_provide_receive_buffer: the port has {} buffers, and takes no more",
            abi::RECEIVE_TOKENS
        )),
        None => console::log(format_args!("gm_provide_receive_buffer: the port is not open")),
    }
}

/// The next event, or GM_NO_RECV_EVENT.
#[unsafe(no_mangle)]
pub extern "C" fn gm_receive(port: *mut GmPort) -> *mut RecvEvent {
    deliver(port, |world, slot| world.next_event(slot))
}

/// The next event: polls for a while, then sleeps.
#[unsafe(no_mangle)]
pub extern "C" fn gm_blocking_receive(port: *mut GmPort) -> *mut RecvEvent {
    deliver(port, |world, slot| world.wait_for_event(slot, true))
}

/// The next event: sleeps until it is there.
#[unsafe(no_mangle)]
pub extern "C" fn gm_blocking_receive_no_spin(port: *mut GmPort) -> *mut RecvEvent {
    deliver(port, |world, slot| world.wait_for_event(slot, false))
}

fn deliver(port: *mut GmPort, next: impl FnOnce(&World, &Slot) -> Option<Next>) -> *mut RecvEvent {
    let Some((world, slot)) = place(port) else { return (&raw const NOTHING).cast_mut() };
    let (mut event, mut list) = (RecvEvent::plain(abi::NO_RECV), None);
    match next(world, slot) {
        None => {}
        Some(Next::Alarm(_)) => event.kind = abi::ALARM,
        Some(Next::Event(Event::Received { buffer, tag, size, priority, length, node, port })) => {
            let kind = if priority == 0 { abi::RECV } else { abi::HIGH_RECV };
            event = RecvEvent {
                message: buffer,
                buffer,
                length,
                sender_node: node,
                tag,
                size,
                sender_port: port,
                ..RecvEvent::plain(kind)
            };
        }
        Some(Next::Event(Event::Ended { then, status, address })) if then.callback == 0 => {
            event.kind = abi::SENT;
            list = Some(address);
            if status != Status::Success {
                console::log(format_args!(
                    "a message without a callback was not delivered: {}",
                    super::helpers::text(status as u32)
                ));
            }
        }
        Some(Next::Event(Event::Ended { .. })) => event.kind = abi::CALLBACK,
    }
    // SAFETY: GM allows one thread at a time on a port.
    unsafe { slot.store(event, list) }
}

/// Does what an event asks for that the program does not know.
///
/// # Safety
/// `event` is the last one of this port; callbacks are the program's functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_unknown(port: *mut GmPort, event: *mut RecvEvent) {
    if event.is_null() {
        return;
    }
    match with(port, |_, open| open.pending.take()).flatten() {
        None => {}
        Some(Pending::Callback(then, status)) => {
            // SAFETY: the address of a function that the program has given for this.
            unsafe {
                let callback: Callback = std::mem::transmute(then.callback);
                callback(port.cast(), ptr::with_exposed_provenance_mut(then.context), status as c_uint);
            }
        }
        // SAFETY: the program's structure, which it has given for this and not taken back.
        Some(Pending::Alarm(alarm)) => unsafe { super::alarms::run(alarm) },
    }
}

/// The type of the next event, which stays; `sender` is the node of a message.
///
/// # Safety
/// `sender` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_next_event_peek(port: *mut GmPort, sender: *mut u16) -> c_int {
    let Some((kind, node)) = peek(port) else { return abi::NO_RECV.into() };
    if let Some(node) = node
        && !sender.is_null()
    {
        // SAFETY: the caller's promise.
        unsafe { sender.write(node) };
    }
    kind.into()
}

/// Whether there is an event.
#[unsafe(no_mangle)]
pub extern "C" fn gm_receive_pending(port: *mut GmPort) -> c_int {
    peek(port).is_some().into()
}

/// The type of the next event, and the node of the sender of a message.
fn peek(port: *mut GmPort) -> Option<(u8, Option<u16>)> {
    let (world, slot) = place(port)?;
    Some(match world.peek(slot)? {
        Next::Alarm(_) => (abi::ALARM, None),
        Next::Event(Event::Received { priority: 0, node, .. }) => (abi::RECV, Some(node)),
        Next::Event(Event::Received { node, .. }) => (abi::HIGH_RECV, Some(node)),
        Next::Event(Event::Ended { then, .. }) if then.callback == 0 => (abi::SENT, None),
        Next::Event(Event::Ended { .. }) => (abi::CALLBACK, None),
    })
}

/// Copies a message to its buffer, where it is elsewhere. Returns the buffer.
///
/// # Safety
/// A message of that many bytes, and a buffer for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_memorize_message(
    message: *mut c_void,
    buffer: *mut c_void,
    length: c_uint,
) -> *mut c_void {
    if message != buffer {
        // SAFETY: the caller's promise.
        unsafe { ptr::copy(message.cast::<u8>(), buffer.cast::<u8>(), length as usize) };
    }
    buffer
}
