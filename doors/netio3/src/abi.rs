//! The C interface, documented in `include/netio3/openlapi_netio3.h`.
//!
//! The header's pointers are references and boxes here where they may not be null: what C++ passes
//! points to what one of these functions has made and none has freed, or to room for a result.

use crate::receiver::{Received, Receiver, listen};
use crate::sender::{Connection, Status};
use crate::slots::Slots;
use libc::{c_char, c_int, c_uint, c_void, iovec, size_t};
use openlapi_session::{Listener, Routes, Settings};
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::fmt::Display;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::null;
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

/// The deadline `ms` milliseconds from now; negative: none.
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
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_slots_release(slots: &Slots, slot: u64, key: &mut MaybeUninit<u64>) -> c_int {
    slots.release(slot).map(|found| key.write(found)).is_some().into()
}

/// The fewest slots that were free since the last call.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_slots_available(slots: &Slots) -> size_t {
    slots.fewest()
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
) -> Option<Box<Connection>> {
    // SAFETY: the caller's promise.
    let (address, key) = unsafe { (text(address).unwrap_or_default(), text(key_file)) };
    Connection::open(address, key, &settings(ways, patience_ms)).map(Box::new).map_err(note).ok()
}

/// Ends a connection at once.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_connection_free(_: Box<Connection>) {}

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
/// A header buffer; `count` pieces, which stay as they are until the message has
/// ended; a header of `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_send(
    connection: &mut Connection,
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
    let sent = unsafe { connection.send(&shared(slots), &pieces, header, key) };
    sent.unwrap_or_else(|why| {
        note(why);
        Status::Failed
    })
}

/// A slot whose message has ended, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_completed(connection: &mut Connection) -> i64 {
    connection.completed().map_or(-1, |slot| slot as i64)
}

/// Makes progress: 0, or -1 once the connection is over.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_progress(connection: &mut Connection) -> c_int {
    number(connection.progress().map(|()| 0))
}

/// Whether an event loop may sleep: 1 or 0, or -1 once the connection is over.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_arm(connection: &mut Connection) -> c_int {
    number(connection.arm().map(c_int::from))
}

/// The descriptor of an event loop, or -1 once the connection is over.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_descriptor(connection: &Connection) -> c_int {
    connection.descriptor().unwrap_or(-1)
}

/// The keys of messages that have not ended: how many there are, of which `room` are given.
///
/// # Safety
/// A header buffer, and room for as many keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_pending(
    connection: &Connection,
    slots: *const Slots,
    keys: *mut u64,
    room: size_t,
) -> size_t {
    // SAFETY: the caller's promise.
    let pending = connection.pending(&unsafe { shared(slots) });
    for (at, key) in pending.iter().take(room).enumerate() {
        // SAFETY: within the room.
        unsafe { keys.add(at).write(*key) };
    }
    pending.len()
}

/// Closes a connection in order: 0 or -1.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_close(connection: &mut Connection) -> c_int {
    number(connection.close().map(|()| 0))
}

/// The data of a header buffer's messages is not to be read any more.
///
/// # Safety
/// A header buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olnetio3_abandon(connection: &mut Connection, slots: *const Slots) {
    // SAFETY: the caller's promise.
    connection.abandon(&unsafe { shared(slots) });
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
) -> Option<Box<Passive>> {
    // SAFETY: the caller's promise.
    let (address, key) = unsafe { (text(address).unwrap_or_default(), text(key_file)) };
    let settings = Settings { longest, ..settings(ways, patience_ms) };
    let patience = settings.patience;
    let passive = listen(address, key, &settings).map(|listener| {
        let at = listener.address().map_or_else(|| address.to_owned(), |at| format!("tcp:{at}"));
        Box::new(Passive { listener, longest, patience, address: c_text(&at) })
    });
    passive.map_err(note).ok()
}

/// Where a listener can be reached.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_listener_address(passive: &Passive) -> *const c_char {
    passive.address.as_ptr()
}

/// The descriptor of an event loop.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_listener_descriptor(passive: &Passive) -> c_int {
    passive.listener.as_fd().as_raw_fd()
}

/// The next connection: 1, 0 for none in time, or -1 where one could not be opened.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_accept(
    passive: &mut Passive,
    ms: c_int,
    to: &mut MaybeUninit<Box<Receiver>>,
) -> c_int {
    let deadline = deadline(ms);
    let accepted = passive.listener.accept(deadline);
    let until = deadline.unwrap_or_else(|| Instant::now() + passive.patience);
    let receiver = accepted.and_then(|session| {
        session.map(|session| Receiver::new(session, passive.longest, until)).transpose()
    });
    number(receiver.map(|receiver| receiver.map(|receiver| to.write(Box::new(receiver))).is_some().into()))
}

/// The end of a listener.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_listener_free(_: Box<Passive>) {}

/// The next message: 1, 0 for none in time, -1 where the connection is lost, -2 where it is closed.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_receive(
    receiver: &mut Receiver,
    ms: c_int,
    bytes: &mut MaybeUninit<*const u8>,
    length: &mut MaybeUninit<size_t>,
    header: &mut MaybeUninit<size_t>,
) -> c_int {
    let (result, found) = match receiver.receive(deadline(ms)) {
        Ok(Received::Message(whole)) => (1, (whole.bytes.as_ptr(), whole.bytes.len(), whole.header)),
        Ok(Received::None) => (0, (null(), 0, 0)),
        Ok(Received::Closed) => (CLOSED, (null(), 0, 0)),
        Err(why) => {
            note(why);
            (OVER, (null(), 0, 0))
        }
    };
    bytes.write(found.0);
    length.write(found.1);
    header.write(found.2);
    result
}

/// Makes progress, and whether an event loop may sleep then: 1 or 0, or -1 where there may be
/// something to take before the connection is over.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_receiver_arm(receiver: &Receiver) -> c_int {
    number(receiver.arm().map(c_int::from))
}

/// The descriptor of an event loop.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_receiver_descriptor(receiver: &Receiver) -> c_int {
    receiver.descriptor()
}

/// Ends a connection at once.
#[unsafe(no_mangle)]
pub extern "C" fn olnetio3_receiver_free(_: Box<Receiver>) {}

#[cfg(test)]
mod tests {
    use super::*;
    use openlapi_session::connect_unix;

    /// The first message goes with the calls after that.
    #[test]
    fn accept_does_not_wait_longer_than_it_may_for_a_side_that_makes_no_call() {
        let path = std::env::temp_dir().join(format!("netio3-accept-{}", std::process::id()));
        let address = CString::new(format!("unix:{}", path.display())).expect("a path");
        // SAFETY: C strings.
        let passive = unsafe { olnetio3_listen(address.as_ptr(), null(), 0, 60_000, 100) };
        let mut passive = passive.expect("a listener");
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| connect_unix(&path, &settings(0, 300_000)));
            let mut receiver = MaybeUninit::uninit();
            let found = loop {
                match olnetio3_accept(&mut passive, 100, &mut receiver) {
                    0 => {}
                    found => break found,
                }
            };
            assert_eq!(found, 1, "it has waited for the other side");
            // SAFETY: the result says that it was written.
            let mut receiver = unsafe { receiver.assume_init() };
            let caller = caller.join().expect("a caller").expect("a session");
            let hello = scope.spawn(move || caller.receive(deadline(300_000)));
            while !hello.is_finished() {
                let _ = receiver.receive(deadline(10));
            }
            let hello = hello.join().expect("a caller").expect("a session").expect("in time");
            assert_eq!(crate::frame::read_hello(&hello.data), Ok(100));
        });
    }
}
