//! LAPI_Term while completion handlers run, and sessions that a failure ends.

use super::calls::{Extras, counter, enter, forever, gfence, put, send, wait};
use super::failure::{code, start_everything};
use super::job::{self, Habits, in_threads};
use crate::abi::*;
use crate::engine::context::events::{Events, Failure};
use crate::engine::context::snapshot::snapshot;
use crate::engine::context::{Context, Held};
use crate::engine::progress::closing;
use libc::{c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

unsafe extern "C" fn lingers(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    _: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    unsafe extern "C" fn completed(hndl: *mut lapi_handle_t, _: *mut c_void) {
        LINGERS.store(1, Ordering::Release);
        while LINGERS.load(Ordering::Acquire) == 1 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // SAFETY: the library gives this for the time of the call.
        FOUND.store(unsafe { hndl.read_volatile() }, Ordering::Relaxed);
        LINGERS.store(3, Ordering::Release);
    }
    // SAFETY: the library gives this for the time of the call.
    unsafe { *comp_h = Some(completed) };
    ptr::null_mut()
}

/// 1: the completion handler of the next test runs; 2: it is to return; 3: it does.
static LINGERS: AtomicUsize = AtomicUsize::new(0);

/// The handle that it has found at last.
static FOUND: AtomicU32 = AtomicU32::new(0);

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
                std::thread::sleep(Duration::from_millis(1));
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
        task.context.open(u32::MAX - 8, options.clone(), transport.into()).expect("a context that has ended");
        LINGERS.store(2, Ordering::Release);
        gfence(task).expect("a fence of one task");
        while LINGERS.load(Ordering::Acquire) != 3 {
            std::thread::yield_now();
        }
        assert_eq!(FOUND.load(Ordering::Relaxed), LAPI_VOID_HANDLE, "not that of the context as it is now");
    });
    job::close(tasks);
}

/// Lets every failure end its session, and counts.
#[derive(Default)]
struct Ends {
    fatal: AtomicUsize,
    closing: AtomicUsize,
}

impl Events for Ends {
    fn ends_by(&self, _: &Failure<'_>) -> bool {
        true
    }

    fn failed(&self, _: &Context, failure: &Failure<'_>) {
        panic!("the session has ended by {failure:?}");
    }

    fn fatal(&self) {
        self.fatal.fetch_add(1, Ordering::AcqRel);
    }

    fn stalled(&self) {}

    fn closing(&self, _: &Context, _: bool) {
        self.closing.fetch_add(1, Ordering::AcqRel);
    }
}

#[test]
fn a_session_that_a_failure_ends_refuses_calls_and_can_be_closed() {
    let (ends, network) = job::mortal_mem(2, 1, false);
    let tasks = job::open(ends, &Habits::THREADED);
    let events = Arc::new(Ends::default());
    enter(&tasks[0]).core().options.events = events.clone();
    tasks[1].context.notifier.stop();
    let done = Arc::new(AtomicUsize::new(0));
    let others = done.clone();
    in_threads(&tasks[..1], 3, move |task, thread| {
        if thread == 0 {
            start_everything(task, 1, Default::default());
            network.kill(1);
        }
        // Nothing increments this counter: the wait ends with the session.
        assert_eq!(code(wait(task, counter(), 1)), LAPI_ERR_HNDL_INVALID);
        others.fetch_add(1, Ordering::AcqRel);
    });
    assert_eq!((done.load(Ordering::Acquire), events.fatal.load(Ordering::Acquire)), (3, 1));
    let context = &tasks[0].context;
    assert_eq!(code(context.enter().map(drop)), LAPI_ERR_HNDL_INVALID);
    assert_eq!(events.closing.load(Ordering::Acquire), 0);
    closing::close(context, context.handle()).expect("a session that was not closed yet");
    assert_eq!(events.closing.load(Ordering::Acquire), 1);
    assert_eq!(code(closing::close(context, context.handle())), LAPI_ERR_HNDL_INVALID);
    job::close(tasks);
}

/// Calls the completion handler whose address is the header, outside of the dispatcher.
unsafe extern "C" fn completes_by_the_header(
    _: *mut lapi_handle_t,
    uhdr: *mut c_void,
    _: *mut c_uint,
    _: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: the header is a function's address; the library gives the place for the time of the
    // call.
    unsafe { *comp_h = uhdr.cast::<compl_hndlr_p>().read_unaligned() };
    ptr::null_mut()
}

/// A message whose completion handler is this one.
fn send_for(
    task: &job::Task,
    handler: unsafe extern "C" fn(*mut lapi_handle_t, *mut c_void),
    extras: Extras<'_>,
) {
    let header = Box::leak(Box::new((handler as usize).to_ne_bytes()));
    send(task, task.me, completes_by_the_header, header, &[], extras).expect("a message");
}

/// What a test's completion handler uses.
static OTHER: std::sync::Mutex<Option<Arc<job::Task>>> = std::sync::Mutex::new(None);

fn with_other(job: impl FnOnce(&Arc<job::Task>)) {
    job(OTHER.lock().unwrap_or_else(std::sync::PoisonError::into_inner).as_ref().expect("a task"));
}

#[test]
fn a_completion_handler_that_ends_another_context_waits_for_the_handlers_of_that_one() {
    unsafe extern "C" fn takes_time(_: *mut lapi_handle_t, _: *mut c_void) {
        std::thread::sleep(std::time::Duration::from_millis(1_300));
    }
    unsafe extern "C" fn ends_the_other(_: *mut lapi_handle_t, _: *mut c_void) {
        with_other(|other| other.term());
    }
    let (first, second) = (
        job::open(job::mem(1, 8, false), &Habits::THREADED),
        job::open(job::mem(1, 8, false), &Habits::THREADED),
    );
    *OTHER.lock().expect("a lock that no test holds") = Some(second[0].clone());
    let (slow, ended) = (counter(), counter());
    send_for(&second[0], takes_time, Extras { tgt_cntr: Some(slow), ..Extras::default() });
    send_for(&first[0], ends_the_other, Extras { tgt_cntr: Some(ended), ..Extras::default() });
    wait(&first[0], ended, 1).expect("the end of the other");
    assert_eq!(slow.load(Ordering::Acquire), 1, "a completion handler was not waited for");
    OTHER.lock().expect("a lock that no test holds").take();
    job::close(first);
    job::close(second);
}

/// Where the next test puts data, and the counter for it.
static TARGET: std::sync::OnceLock<(usize, &'static std::sync::atomic::AtomicI32)> =
    std::sync::OnceLock::new();

#[test]
fn what_a_completion_handler_sends_while_lapi_ends_arrives() {
    const BYTES: usize = 100_000;
    unsafe extern "C" fn puts(hndl: *mut lapi_handle_t, _: *mut c_void) {
        // LAPI_Term is called meanwhile.
        std::thread::sleep(std::time::Duration::from_millis(50));
        let (there, arrived) = *TARGET.get().expect("a target");
        let extras = Extras { tgt_cntr: Some(arrived), ..Extras::default() };
        put(&job::task(hndl), 1, ptr::with_exposed_provenance_mut(there), forever(BYTES), extras)
            .expect("a put");
    }
    let tasks = job::open(job::mem(2, 2, false), &Habits::THREADED);
    let arrived = counter();
    TARGET.set((forever(BYTES).as_mut_ptr().expose_provenance(), arrived)).expect("one test has it");
    in_threads(&tasks, 1, move |task, _| {
        if task.me == 0 {
            send_for(task, puts, Extras::default());
            return task.term();
        }
        // The other task finds no room for long.
        std::thread::sleep(std::time::Duration::from_millis(500));
        wait(task, arrived, 1).expect("the data");
    });
    job::close(tasks);
}

#[test]
fn an_old_handle_does_not_end_a_context_that_was_opened_again() {
    let tasks = job::open(job::mem(1, 8, false), &Habits::THREADED);
    let context = &tasks[0].context;
    let (old, options) = (context.handle(), enter(&tasks[0]).core().options.clone());
    tasks[0].term();
    let transport = job::mem(1, 8, false).pop().expect("one end");
    context.open(old + (1 << 20), options, transport.into()).expect("a context that has ended");
    assert_eq!(code(closing::close(context, old)), LAPI_ERR_HNDL_INVALID);
    gfence(&tasks[0]).expect("it is open");
    job::close(tasks);
}
