//! Tasks that live and do not reply, and collective calls in which a task is missing.

use super::calls::{Extras, counter, enter, fence, forever, gfence, increment, put, send, wait};
use super::failure::{LONG, code, lost, reported_once, start_everything};
use super::job::{self, AWAKE, Habits, Report, SLEEPY, Task, in_threads};
use crate::abi::*;
use crate::base::rng::Rng;
use crate::engine::context::request::Preference;
use crate::proto::tests::seeds;
use crate::transport::testing::faults::FaultPlan;
use libc::{c_int, c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

/// Less than LAPI_Senv would accept.
const SECONDS: i32 = 2;

/// For tasks that give up nothing: a quarter of it is the time in which a task replies, and the
/// machine is busy.
const PATIENT: i32 = 6;

fn hurry(tasks: &[Arc<Task>]) {
    wait_for_at_most(SECONDS, tasks);
}

fn wait_for_at_most(seconds: i32, tasks: &[Arc<Task>]) {
    tasks.iter().for_each(|task| task.context.settings.timeout.store(seconds, Ordering::Relaxed));
}

fn given_up(task: u32, peer: u32) -> Report {
    Report { code: LAPI_ERR_TIMEOUT, kind: TMR_ERR, task: task as c_int, src: peer as c_int }
}

#[test]
fn a_silent_task_is_given_up_and_its_packets_are_dropped() {
    for (preference, wait_policy) in [(Preference::Packets, SLEEPY), (Preference::Attach, AWAKE)] {
        let tasks = job::open(job::mem(3, 4, true), &Habits { preference, wait_policy, ..Habits::THREADED });
        hurry(&tasks);
        wait_for_at_most(PATIENT, &tasks[1..2]);
        tasks[2].context.notifier.stop();
        let came = counter();
        let silent = tasks[2].clone();
        in_threads(&tasks[..2], 1, move |task, _| {
            let (there, data) = (forever(8).as_mut_ptr(), &*forever(8));
            if task.me == 1 {
                // No task that replies is given up.
                for _ in 0..5 {
                    let done = counter();
                    put(task, 0, there, data, Extras { cmpl_cntr: Some(done), ..Extras::default() })
                        .expect("a put");
                    wait(task, done, 1).expect("its completion");
                    std::thread::sleep(Duration::from_millis(500));
                }
                return;
            }
            let handlers = start_everything(task, 2, Default::default());
            fence(task).expect("the fence of a task whose peer is silent");
            reported_once(task, handlers, LAPI_ERR_TIMEOUT);
            let extras = Extras::default();
            assert_eq!(code(put(task, 2, there, data, extras)), LAPI_ERR_NO_CONNECTIVITY);
            assert_eq!(code(increment(task, 2, there.cast(), extras)), LAPI_ERR_NO_CONNECTIVITY);
            assert!(enter(task).core().ops.is_empty(), "{}", task.standing());
            // It wakes up, serves all that it was sent, and has something to send.
            for _ in 0..100 {
                silent.step();
            }
            put(&silent, 0, there, data, Extras { tgt_cntr: Some(came), ..extras }).expect("a late put");
            for _ in 0..100 {
                silent.step();
                task.step();
            }
            assert_eq!(came.load(Ordering::Relaxed), 0, "a packet of a task that was given up counts");
        });
        assert_eq!(tasks[0].reports(), [given_up(0, 2)]);
        assert_eq!(tasks[1].reports(), []);
        job::close(tasks);
    }
}

static SLOW: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" fn slow(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    _: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    unsafe extern "C" fn takes_long(_: *mut lapi_handle_t, _: *mut c_void) {
        std::thread::sleep(Duration::from_secs(3 * PATIENT as u64 / 2));
        SLOW.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the library gives this for the time of the call.
    unsafe { *comp_h = Some(takes_long) };
    ptr::null_mut()
}

#[test]
fn a_task_that_is_slow_and_serves_its_dispatcher_is_not_given_up() {
    let tasks = job::open(job::mem(2, 4, false), &Habits::THREADED);
    wait_for_at_most(PATIENT, &tasks);
    in_threads(&tasks[..1], 1, |task, _| {
        let done = counter();
        send(task, 1, slow, &[], &[], Extras { cmpl_cntr: Some(done), ..Extras::default() })
            .expect("a message");
        wait(task, done, 1).expect("its completion");
    });
    assert_eq!(SLOW.load(Ordering::Relaxed), 1);
    assert_eq!(tasks[0].reports(), []);
    job::close(tasks);
}

#[test]
fn a_task_that_never_comes_to_a_barrier_fails_it_for_all() {
    let tasks = job::open(job::mem(5, 4, false), &Habits::THREADED);
    hurry(&tasks);
    tasks[3].context.notifier.stop();
    let present: Vec<_> = tasks.iter().filter(|task| task.me != 3).cloned().collect();
    in_threads(&present, 1, |task, _| {
        for _ in 0..3 {
            assert_eq!(code(gfence(task)), LAPI_ERR_TIMEOUT);
        }
    });
    for task in &present {
        // Only a task that itself waits for packets of the silent one gets a call of its
        // error handler.
        assert!(task.reports().iter().all(|report| *report == given_up(task.me, 3)), "{:?}", task.reports());
        assert!(task.reports().len() <= 1);
    }
    assert!(present.iter().any(|task| !task.reports().is_empty()));
    job::close(tasks);
}

/// All tasks go from barrier to barrier, and one dies after a number of packets.
#[test]
fn a_death_at_any_moment_fails_the_barriers_of_all_that_are_left() {
    const CALLS: usize = 8;
    seeds(12, |seed| {
        let mut rng = Rng::new(seed);
        let tasks = 2 + rng.below(4) as u32;
        let victim = rng.below(tasks.into()) as u32;
        let plan = FaultPlan { death: Some((victim, rng.below(80))), ..FaultPlan::rough(seed) };
        println!("{plan}");
        let habits = Habits { hosts: 1 + rng.below(3) as u32, ..Habits::THREADED };
        let all = job::open(job::faulty_mem(tasks, true, &plan), &habits);
        let ends = Arc::new(AtomicUsize::new(0));
        let through = ends.clone();
        in_threads(&all, 1, move |task, _| {
            let data = &*forever(LONG);
            let mut failed = false;
            for call in 0..CALLS {
                let peer = (task.me + 1 + call as u32 % (tasks - 1)) % tasks;
                let _ = put(task, peer, forever(LONG).as_mut_ptr(), data, Extras::default());
                task.stage(format!("call {call}"));
                match gfence(task) {
                    Ok(()) => assert!(!failed, "call {call} ends well after one that did not"),
                    Err(_) if task.me == victim => break,
                    Err(error) => {
                        assert_eq!(error.code, LAPI_ERR_NO_CONNECTIVITY);
                        failed = true;
                    }
                }
            }
            task.stage("is through");
            through.fetch_add(1, Ordering::AcqRel);
            while through.load(Ordering::Acquire) < tasks as usize {
                task.step();
                std::thread::yield_now();
            }
        });
        for task in all.iter().filter(|task| task.me != victim) {
            let right = |report: &Report| *report == lost(task.me, victim);
            assert!(task.reports().iter().all(right) && task.reports().len() <= 1, "{:?}", task.reports());
        }
        job::close(all);
    });
}
