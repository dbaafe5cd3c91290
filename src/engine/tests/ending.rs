//! LAPI_Term while completion handlers run.

use super::calls::{Extras, enter, gfence, send};
use super::failure::code;
use super::job::{self, Habits, in_threads};
use crate::abi::*;
use crate::engine::context::Held;
use crate::engine::context::snapshot::snapshot;
use libc::{c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

unsafe extern "C" fn lingers(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    _: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    unsafe extern "C" fn completed(_: *mut lapi_handle_t, _: *mut c_void) {
        LINGERS.store(1, Ordering::Release);
        while LINGERS.load(Ordering::Acquire) == 1 {
            std::thread::yield_now();
        }
        LINGERS.store(3, Ordering::Release);
    }
    // SAFETY: the library gives this for the time of the call.
    unsafe { *comp_h = Some(completed) };
    ptr::null_mut()
}

/// 1: the completion handler of the next test runs; 2: it is to return; 3: it does.
static LINGERS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn lapi_ends_although_a_completion_handler_does_not_return() {
    let tasks = job::open(job::mem(1, 8, false), &Habits::THREADED);
    let options = enter(&tasks[0]).core().options.clone();
    in_threads(&tasks, 2, move |task, thread| {
        if thread == 1 {
            // A report says why the call takes so long.
            let said = "waits in LAPI_Term for completion handlers to return";
            let says = |mut held: Held<'_>| snapshot(&mut held).clauses().iter().any(|clause| clause == said);
            while !task.context.enter_closing().is_some_and(says) {
                assert!(LINGERS.load(Ordering::Acquire) < 2, "LAPI_Term has returned");
                std::thread::yield_now();
            }
            return;
        }
        send(task, 0, lingers, &[], &[], Extras::default()).expect("a message");
        while LINGERS.load(Ordering::Acquire) != 1 {
            task.step();
        }
        task.term();
        assert_eq!(LINGERS.load(Ordering::Acquire), 1, "the handler has not returned");
        assert_eq!(code(task.context.enter().map(drop)), LAPI_ERR_HNDL_INVALID);
        // The thread finds the context closed, or opened again by another task.
        let transport = job::mem(1, 8, false).pop().expect("one end");
        task.context.open(u32::MAX - 8, options.clone(), transport).expect("a context that has ended");
        LINGERS.store(2, Ordering::Release);
        gfence(task).expect("a fence of one task");
        while LINGERS.load(Ordering::Acquire) != 3 {
            std::thread::yield_now();
        }
    });
    job::close(tasks);
}
