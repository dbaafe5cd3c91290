//! The C interface, documented in `include/netio3/openlapi_netio3.h`.

use crate::receiver::{Received, Receiver, listen};
use crate::sender::{Connection, Status};
use crate::slots::Slots;
use libc::{c_char, c_int, c_uint, c_void, iovec, size_t};
use openlapi_session::{Listener, Routes, Settings};
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::fmt::Display;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::{Duration, Instant};

const OVER: c_int = -1;
const CLOSED: c_int = -2;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// A listener, and the longest message of its connections.
pub struct Passive {
    listener: Listener,
    longest: usize,
    patience: Duration,
    address: CString,
}

/// Notes what has failed, for `olnetio3_error`.
fn note(why: impl Display) {
    LAST.with(|last| *last.borrow_mut() = c_text(&why.to_string()));
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// The number for a result, whose error is noted.
fn number(result: Result<c_int, impl Display>) -> c_int {
    result.unwrap_or_else(|why| {
        note(why);
        OVER
    })
}

/// The text at an address; `None` for null.
///
/// # Safety
/// A C string, or null, which lives as long as the result.
unsafe fn text<'a>(at: *const c_char) -> Option<&'a str> {
    // SAFETY: the caller's promise.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_str().unwrap_or_default())
}

fn settings(ways: c_uint, patience_ms: c_uint) -> Settings {
    let routes = if ways == 0 { Routes::ALL } else { Routes(ways as u8).and(Routes::ALL) };
    Settings { routes, patience: Duration::from_millis(patience_ms.into()), ..Settings::default() }
}

/// A deadline in so many milliseconds; negative: none.
fn deadline(ms: c_int) -> Option<Instant> {
    u64::try_from(ms).ok().map(|ms| Instant::now() + Duration::from_millis(ms))
}

/// What failed last in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// A header buffer.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_slots_new() -> *const Slots {
    Arc::into_raw(Arc::new(Slots::new()))
}

/// The end of a header buffer.
///
/// # Safety
/// One of [`olnetio3_slots_new`], not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_slots_free(slots: *const Slots) {
    // SAFETY: the caller's promise.
    drop(unsafe { Arc::from_raw(slots) });
}

/// Frees a slot, and gives its key; 0: it is not in use, or under way.
///
/// # Safety
/// A header buffer, and room for a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_slots_release(slots: *const Slots, slot: u64, key: *mut u64) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { (*slots).release(slot) } {
        Some(found) => {
            // SAFETY: the caller's promise.
            unsafe { key.write(found) };
            1
        }
        None => 0,
    }
}

/// The fewest slots that were free since the last call.
///
/// # Safety
/// A header buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_slots_available(slots: *const Slots) -> size_t {
    // SAFETY: the caller's promise.
    unsafe { (*slots).fewest() }
}

/// Connects; null: see [`olnetio3_error`].
///
/// # Safety
/// C strings; the key file may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_connect(
    address: *const c_char,
    key_file: *const c_char,
    ways: c_uint,
    patience_ms: c_uint,
) -> *mut Connection {
    // SAFETY: the caller's promise.
    let (address, key) = unsafe { (text(address).unwrap_or_default(), text(key_file)) };
    match Connection::open(address, key, &settings(ways, patience_ms)) {
        Ok(connection) => Box::into_raw(Box::new(connection)),
        Err(why) => {
            note(why);
            null_mut()
        }
    }
}

/// Ends a connection at once.
///
/// # Safety
/// One of [`olnetio3_connect`], not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_connection_free(connection: *mut Connection) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(connection) });
}

/// The header buffer as a connection refers to it.
///
/// # Safety
/// A header buffer.
unsafe fn shared(slots: *const Slots) -> Arc<Slots> {
    // SAFETY: the caller's promise; one reference more.
    unsafe {
        Arc::increment_strong_count(slots);
        Arc::from_raw(slots)
    }
}

/// Starts to send.
///
/// # Safety
/// A connection and a header buffer; `count` pieces, which stay as they are until the message has
/// ended; a header of `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_send(
    connection: *mut Connection,
    slots: *const Slots,
    pieces: *const iovec,
    count: size_t,
    header: *const c_void,
    length: size_t,
    key: u64,
) -> Status {
    // SAFETY: the caller's promise; null stands for no bytes.
    let (pieces, header) = unsafe {
        let pieces = if count == 0 { &[] } else { std::slice::from_raw_parts(pieces, count) };
        let header = if length == 0 { &[] } else { std::slice::from_raw_parts(header.cast::<u8>(), length) };
        (pieces, header)
    };
    let pieces: Vec<_> =
        pieces.iter().map(|piece| (piece.iov_base.cast_const().cast(), piece.iov_len)).collect();
    // SAFETY: the caller's promise.
    let sent = unsafe { (*connection).send(&shared(slots), &pieces, header, key) };
    sent.unwrap_or_else(|why| {
        note(why);
        Status::Failed
    })
}

/// A slot whose message has ended, or -1.
///
/// # Safety
/// A connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_completed(connection: *mut Connection) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { (*connection).completed() }.map_or(-1, |slot| slot as i64)
}

/// Makes progress: 0, or -1 once the connection is over.
///
/// # Safety
/// A connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_progress(connection: *mut Connection) -> c_int {
    // SAFETY: the caller's promise.
    number(unsafe { (*connection).progress() }.map(|()| 0))
}

/// Whether an event loop may sleep: 1 or 0, or -1 once the connection is over.
///
/// # Safety
/// A connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_arm(connection: *mut Connection) -> c_int {
    // SAFETY: the caller's promise.
    number(unsafe { (*connection).arm() }.map(c_int::from))
}

/// The descriptor of an event loop, or -1 once the connection is over.
///
/// # Safety
/// A connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_descriptor(connection: *const Connection) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { (*connection).descriptor() }.unwrap_or(-1)
}

/// The keys of messages that have not ended: how many there are, of which `room` are given.
///
/// # Safety
/// A connection, a header buffer, and room for as many keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_pending(
    connection: *const Connection,
    slots: *const Slots,
    keys: *mut u64,
    room: size_t,
) -> size_t {
    // SAFETY: the caller's promise.
    let pending = unsafe { (*connection).pending(&shared(slots)) };
    for (at, key) in pending.iter().take(room).enumerate() {
        // SAFETY: within the room.
        unsafe { keys.add(at).write(*key) };
    }
    pending.len()
}

/// Closes a connection in order: 0 or -1.
///
/// # Safety
/// A connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_close(connection: *mut Connection) -> c_int {
    // SAFETY: the caller's promise.
    number(unsafe { (*connection).close() }.map(|()| 0))
}

/// The data of a header buffer's messages is not to be read any more.
///
/// # Safety
/// A connection and a header buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_abandon(connection: *mut Connection, slots: *const Slots) {
    // SAFETY: the caller's promise.
    unsafe { (*connection).abandon(&shared(slots)) };
}

/// Listens; null: see [`olnetio3_error`].
///
/// # Safety
/// C strings; the key file may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_listen(
    address: *const c_char,
    key_file: *const c_char,
    ways: c_uint,
    patience_ms: c_uint,
    longest: size_t,
) -> *mut Passive {
    // SAFETY: the caller's promise.
    let (address, key) = unsafe { (text(address).unwrap_or_default(), text(key_file)) };
    let settings = Settings { longest, ..settings(ways, patience_ms) };
    match listen(address, key, &settings) {
        Ok(listener) => {
            let at = listener.address().map_or_else(|| address.to_owned(), |at| format!("tcp:{at}"));
            Box::into_raw(Box::new(Passive {
                listener,
                longest,
                patience: settings.patience,
                address: c_text(&at),
            }))
        }
        Err(why) => {
            note(why);
            null_mut()
        }
    }
}

/// Where a listener can be reached.
///
/// # Safety
/// A listener.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_listener_address(passive: *const Passive) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { (*passive).address.as_ptr() }
}

/// The descriptor of an event loop.
///
/// # Safety
/// A listener.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_listener_descriptor(passive: *const Passive) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { (*passive).listener.as_fd().as_raw_fd() }
}

/// The next connection: 1, 0 for none in time, or -1 where one could not be opened.
///
/// # Safety
/// A listener, and room for an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_accept(passive: *mut Passive, ms: c_int, to: *mut *mut Receiver) -> c_int {
    // SAFETY: the caller's promise.
    let passive = unsafe { &mut *passive };
    let accepted = passive.listener.accept(deadline(ms));
    let receiver = accepted.and_then(|session| {
        session
            .map(|session| Receiver::new(session, passive.longest, Instant::now() + passive.patience))
            .transpose()
    });
    number(receiver.map(|receiver| match receiver {
        Some(receiver) => {
            // SAFETY: the caller's promise.
            unsafe { to.write(Box::into_raw(Box::new(receiver))) };
            1
        }
        None => 0,
    }))
}

/// The end of a listener.
///
/// # Safety
/// One of [`olnetio3_listen`], not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_listener_free(passive: *mut Passive) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(passive) });
}

/// The next message: 1, 0 for none in time, -1 where the connection is lost, -2 where it is closed.
///
/// # Safety
/// A receiver, and room for what is said of a message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_receive(
    receiver: *mut Receiver,
    ms: c_int,
    bytes: *mut *const u8,
    length: *mut size_t,
    header: *mut size_t,
) -> c_int {
    // SAFETY: the caller's promise.
    let received = unsafe { (*receiver).receive(deadline(ms)) };
    let (result, found) = match received {
        Ok(Received::Message(whole)) => (1, (whole.bytes.as_ptr(), whole.bytes.len(), whole.header)),
        Ok(Received::None) => (0, (null(), 0, 0)),
        Ok(Received::Closed) => (CLOSED, (null(), 0, 0)),
        Err(why) => {
            note(why);
            (OVER, (null(), 0, 0))
        }
    };
    // SAFETY: the caller's promise.
    unsafe {
        bytes.write(found.0);
        length.write(found.1);
        header.write(found.2);
    }
    result
}

/// Makes progress, and whether an event loop may sleep then: 1 or 0, or -1 where there may be
/// something to take before the connection is over.
///
/// # Safety
/// A receiver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_receiver_arm(receiver: *const Receiver) -> c_int {
    // SAFETY: the caller's promise.
    number(unsafe { (*receiver).session().arm() }.map(c_int::from))
}

/// The descriptor of an event loop.
///
/// # Safety
/// A receiver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_receiver_descriptor(receiver: *const Receiver) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { (*receiver).session().as_fd().as_raw_fd() }
}

/// Ends a connection at once.
///
/// # Safety
/// One of [`olnetio3_accept`], not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_receiver_free(receiver: *mut Receiver) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(receiver) });
}
