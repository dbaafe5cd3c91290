//! Messages of a task to itself that its header handler refuses: which of them a fence waits for.

use super::calls::{Extras, fence, gfence, send};
use super::job::{self, Habits, in_threads};
use crate::abi::{LAPI_DROP_PKT, compl_hndlr_p, hdr_hndlr_t, lapi_handle_t, lapi_return_info_t};
use libc::{c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Refuses the message for now.
///
/// # Safety
/// `msg_len` must be what a header handler was called with.
unsafe fn refuse(msg_len: *mut c_ulong) {
    // SAFETY: the library gives the structure for the time of the call.
    unsafe { (*msg_len.cast::<lapi_return_info_t>()).ctl_flags = LAPI_DROP_PKT };
}

/// The number in a user header.
///
/// # Safety
/// It must have one.
unsafe fn number(uhdr: *mut c_void) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { uhdr.cast::<u32>().read_unaligned() }
}

/// The last message that was offered, the last one that was sent, and whether that is enough.
static OFFERED: AtomicU32 = AtomicU32::new(0);
static SENT: AtomicU32 = AtomicU32::new(0);
static ENOUGH: AtomicBool = AtomicBool::new(false);

/// Each message is refused when it comes, and again when it has sent the next one, which is refused
/// before this one is taken: one of them is kept at any time.
#[test]
fn a_fence_does_not_wait_for_what_is_refused_after_it() {
    unsafe extern "C" fn sends_on(
        hndl: *mut lapi_handle_t,
        uhdr: *mut c_void,
        _: *mut c_uint,
        msg_len: *mut c_ulong,
        _: *mut compl_hndlr_p,
        _: *mut *mut c_void,
    ) -> *mut c_void {
        // SAFETY: each message has a number.
        let number = unsafe { number(uhdr) };
        let is_new = OFFERED.fetch_max(number, Ordering::Relaxed) < number;
        let is_last = SENT.load(Ordering::Relaxed) == number;
        if !ENOUGH.load(Ordering::Acquire) && (is_new || is_last) {
            if !is_new {
                SENT.store(number + 1, Ordering::Relaxed);
                let header = (number + 1).to_ne_bytes();
                send(&job::task(hndl), 0, sends_on, &header, &[], Extras::default()).expect("a message");
            }
            // SAFETY: as the library has called this.
            unsafe { refuse(msg_len) };
        }
        ptr::null_mut()
    }
    let tasks = job::open(job::mem(1, 8, false), &Habits::THREADED);
    in_threads(&tasks, 1, |task, _| {
        SENT.store(1, Ordering::Relaxed);
        send(task, 0, sends_on, &1u32.to_ne_bytes(), &[], Extras::default()).expect("a message");
        fence(task).expect("a fence");
        assert_ne!(SENT.load(Ordering::Relaxed), 1, "the first message was not taken");
        gfence(task).expect("a fence");
        ENOUGH.store(true, Ordering::Release);
        fence(task).expect("a fence");
    });
    job::close(tasks);
}

/// How often [`three_times`] has run.
static OFFERS: AtomicU32 = AtomicU32::new(0);

/// Refuses the message twice.
unsafe extern "C" fn three_times(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    msg_len: *mut c_ulong,
    _: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    if OFFERS.fetch_add(1, Ordering::Relaxed) % 3 != 2 {
        // SAFETY: as the library has called this.
        unsafe { refuse(msg_len) };
    }
    ptr::null_mut()
}

#[test]
fn a_fence_waits_for_what_was_sent_before_it_and_is_refused() {
    unsafe extern "C" fn forwards(
        hndl: *mut lapi_handle_t,
        _: *mut c_void,
        _: *mut c_uint,
        _: *mut c_ulong,
        _: *mut compl_hndlr_p,
        _: *mut *mut c_void,
    ) -> *mut c_void {
        send(&job::task(hndl), 0, three_times, &[], &[], Extras::default()).expect("a message");
        ptr::null_mut()
    }
    let tasks = job::open(job::mem(1, 8, false), &Habits::STEPPED);
    in_threads(&tasks, 1, |task, _| {
        // One is refused when the fence begins, the other one when its sender has returned.
        for (count, handler) in [(3, three_times as hdr_hndlr_t), (6, forwards)] {
            send(task, 0, handler, &[], &[], Extras::default()).expect("a message");
            fence(task).expect("a fence");
            assert_eq!(OFFERS.load(Ordering::Relaxed), count);
        }
    });
    job::close(tasks);
}
