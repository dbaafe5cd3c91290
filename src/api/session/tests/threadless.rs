//! Sessions without a thread of their own: handlers run in the program's calls.

use super::*;
use crate::abi::{L1_LIB, compl_hndlr_p, lapi_handle_t, lapi_return_info_t};
use crate::api::request::{Get, Message};
use crate::api::{Content, Piece, active_message};
use libc::{c_uint, c_ulong, c_void};
use std::sync::atomic::AtomicU64;
use std::thread::{ThreadId, current};

/// What the handlers of these tests know of each other, by the number of the session's handle.
struct Known {
    data: [AtomicU64; 2],
    ran: Mutex<Vec<ThreadId>>,
}

static KNOWN: Known = Known { data: [const { AtomicU64::new(0) }; 2], ran: Mutex::new(Vec::new()) };

unsafe extern "C" fn header(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    info: *mut c_ulong,
    completion: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: the core's pointers, valid during the call.
    unsafe {
        assert_eq!((*info.cast::<lapi_return_info_t>()).msg_len, 16);
        completion.write(Some(complete));
    }
    KNOWN.data.as_ptr().cast_mut().cast()
}

unsafe extern "C" fn complete(_: *mut lapi_handle_t, _: *mut c_void) {
    KNOWN.ran.lock().push(current().id());
}

fn open(me: u32) -> Session {
    let settings = Settings {
        level: L1_LIB,
        interrupts: Interrupts::Never,
        completion_threads: 0,
        ..Settings::default()
    };
    Session::open(&identity("without threads", me, 2), settings, &Link::none(), Arc::new(NoEvents))
        .expect("a task of a job of this machine")
}

#[test]
fn the_calls_of_the_program_run_the_handlers() {
    let [origin, target] = [open(0), open(1)];
    let mut held = target.enter().expect("an open session");
    held.register_function(1, header as *const () as usize).expect("an index");
    drop(held);
    let (sent, data) = (AtomicI32::new(0), [3_u64, 4]);
    let message = Message {
        tgt: 1,
        handler: 1,
        header: Piece { ptr: std::ptr::null(), len: 0 },
        data: Content::Piece(Piece { ptr: data.as_ptr().cast(), len: 16 }),
        shape: None,
        atom: 0,
        tgt_cntr: 0,
        cmpl_cntr: sent.as_ptr().addr(),
        done: SendDone { bytes: 16, user: true, ..SendDone::nothing(1) },
        hint: Hint::None,
        copied: false,
    };
    // SAFETY: the data lives until the message is complete.
    unsafe { active_message::amsend(&mut origin.enter().expect("an open session"), &message) }
        .expect("a message");
    while sent.load(Ordering::Acquire) == 0 {
        for session in [&origin, &target] {
            session.poll().expect("an open session");
        }
    }
    assert_eq!(KNOWN.data.each_ref().map(|word| word.load(Ordering::Acquire)), data);
    let (got, mut into) = (AtomicI32::new(0), [0_u64; 2]);
    let places = Places::Contiguous {
        local: into.as_mut_ptr().addr(),
        remote: KNOWN.data.as_ptr().addr() as u64,
        len: 16,
    };
    let get = Get {
        tgt: 1,
        places,
        tgt_cntr: 0,
        org_cntr: got.as_ptr().addr(),
        handler: Some(complete),
        parameter: 0,
        hint: Hint::None,
    };
    // SAFETY: both memories live until the get is complete.
    unsafe { put_get::get(&mut origin.enter().expect("an open session"), &get) }.expect("a get");
    while got.load(Ordering::Acquire) == 0 || KNOWN.ran.lock().len() < 2 {
        for session in [&origin, &target] {
            session.poll().expect("an open session");
        }
    }
    // SAFETY: written by the core, which does not use the memory any more.
    assert_eq!(unsafe { (&raw const into).read_volatile() }, data);
    assert_eq!(*KNOWN.ran.lock(), [current().id(); 2], "no other thread has run a handler");
    let [one, other] = [origin, target];
    std::thread::scope(|scope| {
        scope.spawn(move || one.close().expect("an open session"));
        other.close().expect("an open session");
    });
}
