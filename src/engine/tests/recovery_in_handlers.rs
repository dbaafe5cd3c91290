//! Handlers that give up the sender of their message, and handlers that are running when
//! it is given up.

use super::calls::{Extras, counter, forever, send};
use super::failure::LONG;
use super::job::{self, Habits, MAX_BODY, Task};
use super::recovery::{all_is_well, look, purge, resume, settle};
use crate::abi::*;
use crate::engine::context::request::Preference;
use libc::{c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What a header handler does to the sender of its message.
unsafe extern "C" fn gives_up_its_sender(
    hndl: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    info: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    let task = job::task(hndl);
    // SAFETY: the library gives these for the time of the call.
    unsafe {
        *comp_h = Some(must_not_run);
        (*info.cast::<lapi_return_info_t>()).ret_flags = LAPI_LOCAL_STATE;
    }
    if task.reported.lock().is_empty() {
        task.reported.lock().push((usize::MAX, 0));
        purge(&task, 0);
        resume(&task, 0);
    }
    ptr::null_mut()
}

unsafe extern "C" fn must_not_run(hndl: *mut lapi_handle_t, _: *mut c_void) {
    job::task(hndl).reported.lock().push((usize::MAX - 1, 0));
}

/// In a header handler, and in the error handler that is called because a message's handler is not
/// set, the task whose packet is being handled is given up and resumed.
#[test]
fn a_handler_gives_up_the_sender_of_its_message() {
    for (len, by_error) in [0, 100, MAX_BODY, LONG].into_iter().flat_map(|len| [(len, false), (len, true)]) {
        for preference in [Preference::Packets, Preference::Attach] {
            let ends = job::mem(2, 64, true);
            let tasks = job::open(ends, &Habits { preference, ..Habits::STEPPED });
            let (done, came) = (counter(), counter());
            if by_error {
                let again = |task: &Task| {
                    purge(task, 0);
                    resume(task, 0);
                };
                assert!(tasks[1].on_report.set(again).is_ok());
            }
            let extras =
                Extras { cmpl_cntr: Some(done), tgt_cntr: Some(came), reported: 1, ..Extras::default() };
            // SAFETY: a number below the size of the table is an index, and nothing is called for
            // one that is not set.
            let unset = unsafe { std::mem::transmute::<usize, hdr_hndlr_t>(9) };
            let handler = if by_error { unset } else { gives_up_its_sender };
            send(&tasks[0], 1, handler, &[1; 8], &forever(LONG)[..len], extras).expect("a message");
            (0..20).for_each(|_| _ = tasks[1].step());
            // The message has waited for LAPI_Addr_set before the error handler is called.
            while by_error && tasks[1].reports().is_empty() {
                std::thread::sleep(Duration::from_millis(1));
                tasks[1].step();
            }
            purge(&tasks[0], 1);
            resume(&tasks[0], 1);
            look(&tasks);
            look(&tasks);
            settle(&tasks);
            assert_eq!(
                (done.load(Ordering::Relaxed), came.load(Ordering::Relaxed)),
                (0, 0),
                "{len} {by_error}"
            );
            assert!(
                !tasks[1].reported.lock().contains(&(usize::MAX - 1, 0)),
                "its completion handler has run"
            );
            assert_eq!(tasks[0].reports(), [], "a reply to an earlier message");
            all_is_well(&tasks, 0, 1);
            all_is_well(&tasks, 1, 0);
            job::close(tasks);
        }
    }
}

static INSIDE: AtomicUsize = AtomicUsize::new(0);
static GO_ON: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn completes_slowly(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    _: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    unsafe extern "C" fn slowly(_: *mut lapi_handle_t, _: *mut c_void) {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        while GO_ON.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
    }
    // SAFETY: the library gives this for the time of the call.
    unsafe { *comp_h = Some(slowly) };
    ptr::null_mut()
}

/// A completion handler runs while its message's sender is given up: the task that has the sender's
/// place then gets no notice.
#[test]
fn a_completion_handler_outlives_its_sender() {
    let tasks = job::open(job::mem(2, 8, false), &Habits { completion_threads: 1, ..Habits::STEPPED });
    let (done, came) = (counter(), counter());
    let extras = Extras { cmpl_cntr: Some(done), tgt_cntr: Some(came), ..Extras::default() };
    send(&tasks[0], 1, completes_slowly, &[], &[], extras).expect("a message");
    while INSIDE.load(Ordering::SeqCst) == 0 {
        tasks[1].step();
    }
    for task in &tasks {
        purge(task, 1 - task.me);
        resume(task, 1 - task.me);
    }
    look(&tasks);
    look(&tasks);
    GO_ON.store(1, Ordering::SeqCst);
    while came.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    settle(&tasks);
    assert_eq!((done.load(Ordering::SeqCst), tasks[0].reports()), (0, vec![]));
    all_is_well(&tasks, 0, 1);
    job::close(tasks);
}

unsafe extern "C" fn completes_at_once(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    info: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    unsafe extern "C" fn gives_up_the_sender(hndl: *mut lapi_handle_t, _: *mut c_void) {
        let task = job::task(hndl);
        purge(&task, 0);
        resume(&task, 0);
    }
    // SAFETY: the library gives these for the time of the call.
    unsafe {
        *comp_h = Some(gives_up_the_sender);
        (*info.cast::<lapi_return_info_t>()).ret_flags = LAPI_LOCAL_STATE;
    }
    ptr::null_mut()
}

/// A purge in a completion handler that the dispatcher runs: the message has come, and no task
/// gets a notice.
#[test]
fn a_completion_handler_gives_up_the_sender_of_its_message() {
    let tasks = job::open(job::mem(2, 8, false), &Habits::STEPPED);
    let (done, came) = (counter(), counter());
    let extras = Extras { cmpl_cntr: Some(done), tgt_cntr: Some(came), ..Extras::default() };
    send(&tasks[0], 1, completes_at_once, &[], &[], extras).expect("a message");
    tasks[1].step();
    purge(&tasks[0], 1);
    resume(&tasks[0], 1);
    look(&tasks);
    look(&tasks);
    settle(&tasks);
    assert_eq!((done.load(Ordering::SeqCst), came.load(Ordering::SeqCst)), (0, 1));
    assert_eq!(tasks[0].reports(), [], "a reply to an earlier message");
    all_is_well(&tasks, 0, 1);
    job::close(tasks);
}
