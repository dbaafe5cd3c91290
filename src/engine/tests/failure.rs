//! Tasks that die, and tasks that leave: what waits for them ends, all other tasks continue.

use super::calls::{Extras, counter, enter, fence, forever, get, gfence, increment, put, send, wait};
use super::job::{self, AWAKE, Habits, MAX_BODY, Report, SLEEPY, Task, in_threads};
use super::recovery::later;
use crate::abi::*;
use crate::base::rng::Rng;
use crate::engine::context::membership::Standing;
use crate::engine::context::request::Preference;
use crate::engine::context::settings::Options;
use crate::engine::progress::{closing, lost_peers};
use crate::proto::tests::seeds;
use crate::transport::testing::faults::FaultPlan;
use libc::{c_int, c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(in crate::engine) const LONG: usize = 20 * MAX_BODY;

pub(in crate::engine) fn lost(task: u32, peer: u32) -> Report {
    Report { code: LAPI_ERR_NO_CONNECTIVITY, kind: INT_ERR, task: task as c_int, src: peer as c_int }
}

pub(in crate::engine) fn code<T: std::fmt::Debug>(outcome: crate::error::Result<T>) -> c_int {
    outcome.expect_err("an error").code
}

pub(in crate::engine) unsafe extern "C" fn never(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    _: *mut c_ulong,
    _: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    ptr::null_mut()
}

/// One operation of each kind to a task that does not look, so that all of them are under way.
pub(in crate::engine) fn start_everything(
    task: &Task,
    tgt: u32,
    hint: crate::engine::context::request::Hint,
) -> usize {
    let (there, data) = (forever(LONG).as_mut_ptr(), &*forever(LONG));
    let extras = |reported| Extras {
        reported,
        cmpl_cntr: Some(counter()),
        org_cntr: Some(counter()),
        hint,
        ..Extras::default()
    };
    put(task, tgt, there, data, extras(1)).expect("a long put");
    put(task, tgt, there, &data[..MAX_BODY], extras(2)).expect("a put of one packet");
    get(task, tgt, data, forever(LONG).as_mut_ptr(), extras(0)).expect("a long get");
    get(task, tgt, &data[..8], forever(8).as_mut_ptr(), extras(0)).expect("a short get");
    increment(task, tgt, there.cast(), extras(3)).expect("an addition");
    send(task, tgt, never, &data[..64], &data[..0], extras(4)).expect("a message of nothing but a header");
    send(task, tgt, never, &data[..64], data, extras(5)).expect("a long message");
    5
}

/// Each handler has run once, and the operations without a reply have reported a failure to theirs.
pub(in crate::engine) fn reported_once(task: &Task, handlers: usize, code: c_int) {
    task.stage("waits for its handlers to run");
    while task.reported.lock().len() < handlers {
        task.step();
    }
    let mut reported = task.reported.lock().clone();
    reported.sort_unstable();
    let parameters: Vec<_> = reported.iter().map(|(parameter, _)| *parameter).collect();
    assert_eq!(parameters, (1..=handlers).collect::<Vec<_>>(), "{reported:?}");
    let reason = |parameter: usize| reported[parameter - 1].1 as c_int;
    assert_eq!(reason(3), code, "an addition without a reply: {reported:?}");
    assert!(reported.iter().all(|&(_, reason)| reason == 0 || reason as c_int == code), "{reported:?}");
}

/// Task 2 never looks, and then leaves; task 0 has everything under way to it, and
/// continues with task 1.
fn the_others_go_on(
    preference: Preference,
    leave: fn(&Task, &crate::transport::testing::mem::NetworkHandle),
) {
    for (capacity, wait_policy) in [(1, SLEEPY), (8, AWAKE)] {
        let (ends, fabric) = job::mortal_mem(3, capacity, true);
        let tasks = job::open(ends, &Habits { preference, wait_policy, ..Habits::THREADED });
        let counters = [counter(), counter()];
        let victim = tasks[2].clone();
        victim.context.notifier.stop();
        in_threads(&tasks[..2], 1, move |task, _| {
            let there = forever(LONG).as_mut_ptr();
            let data = &*forever(LONG);
            let peer = 1 - task.me;
            let own = Extras { tgt_cntr: Some(counters[peer as usize]), ..Extras::default() };
            if task.me == 0 {
                let handlers = start_everything(task, 2, Default::default());
                task.stage("after starting everything");
                leave(&victim, &fabric);
                fence(task).expect("the fence of a task whose peer has left");
                reported_once(task, handlers, LAPI_ERR_NO_CONNECTIVITY);
            }
            for _ in 0..10 {
                put(task, peer, there, data, own).expect("a put to a task that lives");
                wait(task, counters[task.me as usize], 1).expect("its counterpart");
                fence(task).expect("a fence");
            }
        });
        assert_eq!(tasks[0].reports(), [lost(0, 2)]);
        assert_eq!(tasks[1].reports(), []);
        job::close(tasks);
    }
}

#[test]
fn a_task_that_dies_ends_what_waits_for_it() {
    for preference in [Preference::Packets, Preference::Attach] {
        the_others_go_on(preference, |victim, fabric| fabric.kill(victim.me));
    }
}

#[test]
fn a_task_that_ends_lapi_ends_what_waits_for_it() {
    for preference in [Preference::Packets, Preference::Attach] {
        the_others_go_on(preference, |victim, _| enter(victim).core().transport.close());
    }
}

#[test]
fn a_fence_that_only_lacks_the_confirmation_of_a_dead_task_ends() {
    let (ends, fabric) = job::mortal_mem(2, 8, false);
    let tasks = job::open(ends, &Habits::THREADED);
    tasks[1].context.notifier.stop();
    in_threads(&tasks[..1], 1, move |task, _| {
        put(task, 1, forever(8).as_mut_ptr(), &*forever(8), Extras::default()).expect("a put");
        fabric.kill(1);
        fence(task).expect("a fence");
        assert_eq!(task.reports(), [lost(0, 1)]);
        fence(task).expect("a second one");
    });
    assert_eq!(tasks[0].reports(), [lost(0, 1)]);
    job::close(tasks);
}

#[test]
fn operations_for_a_task_that_is_gone_are_refused_and_hold_up_nothing() {
    for (preference, dies) in
        [Preference::Packets, Preference::Attach].into_iter().flat_map(|way| [(way, true), (way, false)])
    {
        let (ends, fabric) = job::mortal_mem(3, 8, false);
        let tasks = job::open(ends, &Habits { preference, ..Habits::THREADED });
        if dies {
            fabric.kill(2);
        } else {
            tasks[2].term();
        }
        in_threads(&tasks[..2], 1, move |task, _| {
            let (there, data) = (forever(LONG).as_mut_ptr(), &*forever(LONG));
            let extras =
                Extras { cmpl_cntr: Some(counter()), org_cntr: Some(counter()), ..Extras::default() };
            for len in [0, 8, LONG] {
                assert_eq!(code(put(task, 2, there, &data[..len], extras)), LAPI_ERR_NO_CONNECTIVITY);
                assert_eq!(code(get(task, 2, &data[..len], there, extras)), LAPI_ERR_NO_CONNECTIVITY);
                assert_eq!(code(send(task, 2, never, &[], &data[..len], extras)), LAPI_ERR_NO_CONNECTIVITY);
            }
            assert_eq!(code(increment(task, 2, there.cast(), extras)), LAPI_ERR_NO_CONNECTIVITY);
            fence(task).expect("a fence");
            assert!(enter(task).core().ops.is_empty(), "{}", task.standing());
            // The error handler is called once for a task that has died, also when the calls that
            // needed it were refused.
            while dies && task.reports().is_empty() {
                task.step();
            }
            fence(task).expect("another fence");
            let expected = if dies { vec![lost(task.me, 2)] } else { vec![] };
            assert_eq!(task.reports(), expected);
        });
        job::close(tasks);
    }
}

#[test]
fn the_end_of_a_task_that_owes_nothing_is_not_reported() {
    let tasks = job::open(job::mem(3, 8, false), &Habits::THREADED);
    in_threads(&tasks, 1, |task, _| {
        let (there, data) = (forever(LONG).as_mut_ptr(), &*forever(LONG));
        let own = counter();
        for peer in 0..3 {
            let extras = Extras { cmpl_cntr: Some(own), ..Extras::default() };
            // Each peer has memory of its own: their threads write at the same time.
            put(task, peer, forever(LONG).as_mut_ptr(), data, extras).expect("a put");
            send(task, peer, never, &[], data, extras).expect("a message");
        }
        wait(task, own, 6).expect("their completion");
        gfence(task).expect("the last fence");
        if task.me == 2 {
            task.term();
            return;
        }
        // Long enough to sleep, and to look around, several times.
        let until = std::time::Instant::now() + std::time::Duration::from_millis(600);
        while std::time::Instant::now() < until {
            let extras = Extras { org_cntr: Some(own), ..Extras::default() };
            get(task, 1 - task.me, &data[..8], there, extras).expect("a get");
            wait(task, own, 1).expect("its reply");
        }
    });
    tasks.iter().for_each(|task| assert_eq!(task.reports(), []));
    job::close(tasks);
}

/// Each task works with each; one dies after a number of packets, in the middle of
/// what it does then.
#[test]
fn a_death_at_any_moment_is_survived() {
    seeds(12, |seed| {
        let mut rng = Rng::new(seed);
        let tasks = 3 + rng.below(2) as u32;
        let victim = rng.below(tasks.into()) as u32;
        let plan =
            FaultPlan { death: Some((victim, rng.below(200))), reorder: 0.0, ..FaultPlan::rough(seed) };
        println!("{plan}");
        let preference = [Preference::Packets, Preference::Attach][rng.below(2) as usize];
        let habits = Habits { preference, hosts: 1 + rng.below(3) as u32, ..Habits::THREADED };
        let all = job::open(job::faulty_mem(tasks, true, &plan), &habits);
        let finished = Arc::new(AtomicUsize::new(0));
        let through = finished.clone();
        in_threads(&all, 1, move |task, _| {
            work_with_all_tasks(task, tasks, victim);
            if task.me != victim {
                through.fetch_add(1, Ordering::AcqRel);
            }
            // A task that is done serves the others until all are done.
            while through.load(Ordering::Acquire) + 1 < tasks as usize {
                task.step();
                std::thread::yield_now();
            }
        });
        for task in all.iter().filter(|task| task.me != victim) {
            assert!(
                task.reports().iter().all(|report| *report == lost(task.me, victim)),
                "{:?}",
                task.reports()
            );
            assert!(task.reports().len() <= 1, "reported twice: {:?}", task.reports());
        }
        job::close(all);
    });
}

fn work_with_all_tasks(task: &Task, tasks: u32, victim: u32) {
    let data: &'static [u8] = {
        let data = forever(LONG);
        data.fill(task.me as u8 + 1);
        data
    };
    let alive = counter();
    for round in 0..12 {
        let mut wanted = 0;
        let mut buffers = Vec::new();
        for peer in (0..tasks).filter(|&peer| peer != task.me) {
            let there = forever(LONG);
            let extras = Extras { cmpl_cntr: (peer != victim).then_some(alive), ..Extras::default() };
            let len = if round % 3 == 0 { LONG } else { 100 };
            let done = put(task, peer, there.as_mut_ptr(), &data[..len], extras);
            let sent = increment(task, peer, forever(8).as_ptr().cast(), Extras::default());
            if task.me == victim {
                // A dead task gets no report.
                continue;
            }
            if peer != victim {
                done.and(sent).expect("operations for a task that lives");
                buffers.push((there.as_ptr(), len));
                wanted += 1;
            }
        }
        task.stage(format!("round {round}: waits for {wanted}"));
        if task.me == victim {
            (0..20).for_each(|_| _ = task.step());
            continue;
        }
        wait(task, alive, wanted).expect("the puts of the living tasks");
        task.stage(format!("round {round}: fences"));
        fence(task).expect("a fence");
        for (there, len) in buffers {
            // SAFETY: memory that is never freed, in which the put is complete.
            let arrived = unsafe { std::slice::from_raw_parts(there, len) };
            assert!(arrived == &data[..len], "round {round}: not what was put");
        }
    }
}

#[test]
fn an_error_handler_may_end_lapi() {
    let (ends, fabric) = job::mortal_mem(2, 1, false);
    let tasks = job::open(ends, &Habits::THREADED);
    tasks[1].context.notifier.stop();
    assert!(
        tasks[0]
            .on_report
            .set(|task| closing::close(&task.context, task.context.handle()).expect("an open context"))
            .is_ok()
    );
    in_threads(&tasks[..1], 1, move |task, _| {
        start_everything(task, 1, Default::default());
        fabric.kill(1);
        task.stage("waits for the end of LAPI");
        // The notifier may have detected it: then fences have nothing to wait for while it is on
        // its way to the handler.
        let error = loop {
            match fence(task) {
                Ok(()) => std::thread::yield_now(),
                Err(error) => break error,
            }
        };
        assert_eq!(error.code, LAPI_ERR_HNDL_INVALID);
        assert_eq!(code(task.context.enter().map(drop)), LAPI_ERR_HNDL_INVALID);
    });
    assert_eq!(tasks[0].reports(), [lost(0, 1)]);
    job::close(tasks);
}

#[test]
fn of_many_that_end_lapi_one_succeeds() {
    for _ in 0..20 {
        let tasks = job::open(job::mem(1, 8, false), &Habits::THREADED);
        let ended = Arc::new(AtomicUsize::new(0));
        let count = ended.clone();
        in_threads(&tasks, 4, move |task, _| match closing::close(&task.context, task.context.handle()) {
            Ok(()) => _ = count.fetch_add(1, Ordering::AcqRel),
            Err(error) => assert_eq!(error.code, LAPI_ERR_HNDL_INVALID),
        });
        assert_eq!(ended.load(Ordering::Acquire), 1);
        job::close(tasks);
    }
}

#[test]
fn ending_lapi_ends_the_calls_of_other_threads() {
    for (wait_policy, notifier) in [(SLEEPY, true), (SLEEPY, false), (AWAKE, true), (AWAKE, false)] {
        let tasks = job::open(job::mem(2, 8, false), &Habits { wait_policy, notifier, ..Habits::THREADED });
        let waiting = Arc::new(AtomicUsize::new(0));
        in_threads(&tasks[..1], 4, move |task, thread| {
            if thread == 0 {
                // The others are in their calls; how deep is different each time.
                while waiting.load(Ordering::Acquire) < 3 {
                    std::thread::yield_now();
                }
                (0..50).for_each(|_| std::thread::yield_now());
                return task.term();
            }
            waiting.fetch_add(1, Ordering::AcqRel);
            let outcome = match thread {
                1 => gfence(task),
                _ => wait(task, counter(), 1).map(drop),
            };
            assert_eq!(code(outcome), LAPI_ERR_HNDL_INVALID);
        });
        job::close(tasks);
    }
}

unsafe extern "C" fn ends_lapi(
    hndl: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    msg_len: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    unsafe extern "C" fn completed(hndl: *mut lapi_handle_t, _: *mut c_void) {
        job::task(hndl).reported.lock().push((1, 0));
        closing::close(&job::task(hndl).context, job::task(hndl).context.handle()).expect("an open context");
    }
    // SAFETY: the library gives these for the time of the call.
    unsafe {
        *comp_h = Some(completed);
        (*msg_len.cast::<lapi_return_info_t>()).ret_flags = LAPI_LOCAL_STATE;
    }
    job::task(hndl).reported.lock().push((0, 0));
    ptr::null_mut()
}

#[test]
fn a_completion_handler_may_end_lapi_and_a_new_one_may_begin() {
    let tasks = job::open(job::mem(2, 8, false), &Habits::THREADED);
    in_threads(&tasks, 1, |task, _| {
        if task.me == 0 {
            send(task, 1, ends_lapi, &[], &[], Extras::default()).expect("a message");
            return;
        }
        task.stage("waits for what never comes");
        let outcome = wait(task, counter(), 1);
        // It has ended already when the notifier was the one to serve the message.
        assert_eq!(code(outcome), LAPI_ERR_HNDL_INVALID);
    });
    assert_eq!(tasks[1].reported.lock()[..], [(0, 0), (1, 0)]);
    let options = Options { me: 0, tasks: 1, ..enter(&tasks[0]).core().options.clone() };
    let transport = job::mem(1, 8, false).pop().expect("one end");
    let again = &tasks[1].context;
    again.open(u32::MAX - 7, options, transport.into()).expect("a context that has ended");
    gfence(&tasks[1]).expect("a fence of one task");
    job::close(tasks);
}

/// What task 1 has sent last is the reply for which task 0 waits; more messages than task 0 keeps
/// lie before it.
#[test]
fn what_a_task_sent_before_it_left_arrives_although_its_packets_were_held() {
    const MESSAGES: usize = 3000;
    let tasks = job::open(job::mem(2, MESSAGES + 100, false), &Habits::STEPPED);
    for _ in 0..MESSAGES {
        send(&tasks[1], 0, later, &[0; 8], &[], Extras::default()).expect("a message that is refused");
    }
    in_threads(&tasks[..1], 1, {
        let sender = tasks[1].clone();
        move |task, _| {
            let (source, buffer) = (&*Box::leak(vec![7_u8; 64].into_boxed_slice()), forever(64));
            let came = counter();
            let extras = Extras { org_cntr: Some(came), ..Extras::default() };
            get(task, 1, source, buffer.as_mut_ptr(), extras).expect("a get");
            sender.step();
            enter(&sender).core().transport.close();
            wait(task, came, 1).expect("the reply, which had been sent");
        }
    });
    assert_eq!(tasks[0].reports(), []);
    job::close(tasks);
}

/// Two tasks that end LAPI one after the other, while messages between them are under way that
/// neither waits for.
#[test]
fn what_a_task_that_has_ended_lapi_did_not_take_is_no_error_of_a_task_that_ends_it_too() {
    for (preference, capacity) in [(Preference::Packets, 1), (Preference::Attach, 8)] {
        let tasks = job::open(job::mem(2, capacity, true), &Habits { preference, ..Habits::THREADED });
        tasks[1].context.notifier.stop();
        let victim = tasks[1].clone();
        in_threads(&tasks[..1], 1, move |task, _| {
            start_everything(task, 1, Default::default());
            enter(&victim).core().transport.close();
            for _ in 0..100 {
                task.step();
                lost_peers::look_after_peers(&mut enter(task));
            }
            // As LAPI_Term does first, which may still wait for long, and then looks
            // after its peers.
            enter(task).core().begin_ending();
            lost_peers::look_after_peers(&mut enter(task));
            assert_eq!(enter(task).core().membership.standing(1), Standing::Lost);
            task.term();
        });
        assert_eq!(tasks[0].reports(), []);
        job::close(tasks);
    }
}
