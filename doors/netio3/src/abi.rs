//! The C interface, documented in `include/netio3/openlapi_netio3.h`.
//!
//! The header's pointers are references and boxes here where they may not be null: what C++ passes
//! points to what one of these functions has made and none has freed, or to room for a result.

use crate::receiver::{Passive, Receiver};
use crate::sender::Connection;
use libc::{c_char, c_int, c_uint, iovec, size_t};
use openlapi_session::{Error, Routes, Settings};
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::fmt::Display;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

const OVER: c_int = -1;
const CLOSED: c_int = -2;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// A listener, and where it can be reached.
pub struct Listener(Passive, CString);

/// Notes what has failed, for `olnetio3_error`.
fn note(why: impl Display) {
    LAST.with(|last| *last.borrow_mut() = c_text(&why.to_string()));
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// The number for a result, whose error is noted.
fn number(result: Result<impl Into<c_int>, impl Display>) -> c_int {
    result.map_err(note).map_or(OVER, Into::into)
}

/// The text at an address.
///
/// # Safety
/// A C string, which lives as long as the result.
unsafe fn text<'a>(at: *const c_char) -> &'a str {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(at) }.to_str().unwrap_or_default()
}

fn settings(ways: c_uint, patience_ms: c_uint) -> Settings {
    let routes = if ways == 0 { Routes::ALL } else { Routes(ways as u8).and(Routes::ALL) };
    Settings { routes, patience: Duration::from_millis(patience_ms.into()), ..Settings::default() }
}

/// The deadline `ms` milliseconds from now; negative: none.
fn deadline(ms: c_int) -> Option<Instant> {
    u64::try_from(ms).ok().map(|ms| Instant::now() + Duration::from_millis(ms))
}

/// What failed last in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// Connects; null: see [`olnetio3_error`].
///
/// # Safety
/// C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_connect(
    address: *const c_char,
    key_file: *const c_char,
    ways: c_uint,
    patience_ms: c_uint,
) -> Option<Box<Connection>> {
    // SAFETY: the caller's promise.
    let (address, key) = unsafe { (text(address), text(key_file)) };
    Connection::open(address, key, &settings(ways, patience_ms)).map(Box::new).map_err(note).ok()
}

/// Ends a connection at once.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_connection_free(_: Box<Connection>) {}

/// Starts to send: 1, 0 where too many are under way, or -1 where it cannot be sent.
///
/// # Safety
/// `count` pieces, which stay as they are until the message has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_send(
    connection: &mut Connection,
    pieces: *const iovec,
    count: size_t,
    slot: i64,
) -> c_int {
    // SAFETY: the caller's promise.
    number(unsafe { connection.send(std::slice::from_raw_parts(pieces, count), slot) })
}

/// The slot of a message that has ended, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_completed(connection: &mut Connection) -> i64 {
    connection.completed().unwrap_or(-1)
}

/// Makes progress: 0, or -1 once the connection is over.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_progress(connection: &mut Connection) -> c_int {
    number(connection.progress().map(|()| 0))
}

/// Whether an event loop may sleep: 1 or 0, or -1 once the connection is over.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_arm(connection: &mut Connection) -> c_int {
    number(connection.arm())
}

/// The descriptor of an event loop, or -1 once the connection is over.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_descriptor(connection: &Connection) -> c_int {
    connection.descriptor().unwrap_or(-1)
}

/// Closes a connection in order: 0 or -1.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_close(connection: &mut Connection) -> c_int {
    number(connection.close().map(|()| 0))
}

/// The pieces of messages are not to be read any more.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_abandon(connection: &mut Connection) {
    connection.abandon();
}

/// Listens; null: see [`olnetio3_error`].
///
/// # Safety
/// C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_listen(
    address: *const c_char,
    key_file: *const c_char,
    ways: c_uint,
    patience_ms: c_uint,
    longest: size_t,
) -> Option<Box<Listener>> {
    // SAFETY: the caller's promise.
    let (address, key) = unsafe { (text(address), text(key_file)) };
    let passive = Passive::listen(address, key, Settings { longest, ..settings(ways, patience_ms) });
    let passive = passive.map_err(note).ok()?;
    let at = c_text(passive.tcp_address().as_deref().unwrap_or(address));
    Some(Box::new(Listener(passive, at)))
}

/// Where a listener can be reached.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_listener_address(listener: &Listener) -> *const c_char {
    listener.1.as_ptr()
}

/// The descriptor of an event loop.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_listener_descriptor(listener: &Listener) -> c_int {
    listener.0.descriptor()
}

/// The next connection: 1, 0 for none in time, or -1 where one could not be opened.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_accept(
    listener: &mut Listener,
    ms: c_int,
    to: &mut MaybeUninit<Box<Receiver>>,
) -> c_int {
    let accepted = listener.0.accept(deadline(ms));
    number(accepted.map(|receiver| receiver.map(|receiver| to.write(Box::new(receiver))).is_some()))
}

/// The end of a listener.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_listener_free(_: Box<Listener>) {}

/// The next message: 1, 0 for none in time, -1 where the connection is lost, -2 where it is closed.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_receive(
    receiver: &mut Receiver,
    ms: c_int,
    bytes: &mut MaybeUninit<*const u8>,
    length: &mut MaybeUninit<size_t>,
    header: &mut MaybeUninit<size_t>,
) -> c_int {
    match receiver.receive(deadline(ms)) {
        Ok(Some(whole)) => {
            bytes.write(whole.bytes.as_ptr());
            length.write(whole.bytes.len());
            header.write(whole.header);
            1
        }
        Ok(None) => 0,
        Err(Error::Closed) => CLOSED,
        Err(why) => {
            note(why);
            OVER
        }
    }
}

/// Makes progress, and whether an event loop may sleep then: 1 or 0, or -1 where there may be
/// something to take before the connection is over.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_receiver_arm(receiver: &mut Receiver) -> c_int {
    number(receiver.arm())
}

/// The descriptor of an event loop.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_receiver_descriptor(receiver: &Receiver) -> c_int {
    receiver.descriptor()
}

/// Ends a connection at once.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_receiver_free(_: Box<Receiver>) {}
