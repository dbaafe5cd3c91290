//! Threads that sleep: everything that they wait for wakes them. A sleeper would make up for a
//! lost wake-up when it looks around, a quarter of a second later; the deadline has no room for
//! many of those.

use super::calls::{Extras, counter, enter, fence, forever, get, gfence, increment, put, send, wait};
use super::job::{self, Habits, SLEEPY, Setup, Task, in_threads};
use super::recovery::settle;
use crate::abi::{
    ACK_THRESHOLD, INTERRUPT_SET, LAPI_SEND_REPLY, compl_hndlr_p, lapi_handle_t, lapi_return_info_t,
    lapi_sh_info_t,
};
use crate::api::{env, progress, put_get};
use crate::base::clock::ticks;
use crate::base::rng::Rng;
use crate::engine::context::Held;
use crate::engine::context::event_loop::ArmedBy;
use crate::engine::context::request::{Places, Preference, Put};
use crate::engine::context::wait_policy::WaitPolicy;
use crate::engine::progress::wait::wait_until;
use crate::proto::outbox::SendDone;
use crate::transport::coalescing::Coalescing;
use crate::transport::testing::mem::{MemOptions, network};
use libc::{c_uint, c_ulong, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

/// This number of quarters of a second is more than the deadline.
const ROUNDS: usize = 300;

/// Threads sleep at once.
const ASLEEP: WaitPolicy = WaitPolicy { pollers: u32::MAX, ..WaitPolicy::NONE };

const SETUPS: [Setup; 3] = [
    Setup { join: |tasks, _| job::mem(tasks, 2, false), preference: Preference::Packets },
    Setup { join: |tasks, _| job::boxed(job::shm(tasks)), preference: Preference::Packets },
    Setup { join: |tasks, _| job::boxed(job::shm(tasks)), preference: Preference::Attach },
];

fn open(setup: &Setup, tasks: u32, notifier: bool) -> Vec<Arc<Task>> {
    let habits = Habits { preference: setup.preference, wait_policy: ASLEEP, notifier, ..Habits::THREADED };
    job::open((setup.join)(tasks, 0), &habits)
}

fn extras(tgt_cntr: &AtomicI32) -> Extras<'_> {
    Extras { tgt_cntr: Some(tgt_cntr), ..Extras::default() }
}

#[test]
fn two_tasks_wake_each_other() {
    for (setup, notifier) in SETUPS.iter().flat_map(|setup| [(setup, true), (setup, false)]) {
        let tasks = open(setup, 2, notifier);
        let counters = [counter(), counter()];
        in_threads(&tasks, 1, move |task, _| {
            let [own, other] = [task.me as usize, 1 - task.me as usize].map(|at| counters[at]);
            let (there, data) = (forever(30_000).as_mut_ptr(), &*forever(30_000));
            for round in 0..ROUNDS {
                task.stage(format!("round {round}"));
                let len = if round % 10 == 0 { data.len() } else { 8 };
                if task.me == 0 {
                    put(task, 1, there, &data[..len], extras(other)).expect("a put");
                    wait(task, own, 1).expect("the reply");
                } else {
                    wait(task, own, 1).expect("the question");
                    put(task, 0, there, &data[..len], extras(other)).expect("a put");
                }
            }
            gfence(task).expect("a fence");
        });
        job::close(tasks);
    }
}

#[test]
fn every_thread_of_a_task_is_woken_by_its_own_event() {
    const THREADS: usize = 3;
    for setup in &SETUPS[..2] {
        let tasks = open(setup, 2, false);
        let counters: &'static [[AtomicI32; THREADS]; 2] = Box::leak(Box::default());
        in_threads(&tasks, THREADS, move |task, thread| {
            let [own, other] = [task.me as usize, 1 - task.me as usize].map(|at| &counters[at][thread]);
            let (there, data) = (forever(8).as_mut_ptr(), &*forever(8));
            for round in 0..ROUNDS {
                task.stage(format!("thread {thread}, round {round}"));
                put(task, 1 - task.me, there, data, extras(other)).expect("a put");
                wait(task, own, 1).expect("the peer's");
            }
        });
        job::close(tasks);
    }
}

#[test]
fn a_counter_that_another_thread_changes_wakes_the_thread_that_waits_for_it() {
    let habits = Habits { wait_policy: ASLEEP, notifier: false, ..Habits::THREADED };
    let tasks = job::open(job::mem(1, 8, false), &habits);
    let counter = counter();
    let woken: &'static AtomicUsize = Box::leak(Box::default());
    in_threads(&tasks, 2, move |task, thread| {
        // This number of times for each of the three ways.
        for round in 0..3 * ROUNDS {
            task.stage(format!("thread {thread}, round {round}"));
            if thread == 1 {
                wait(task, counter, 1).expect("what the other does");
                woken.store(round + 1, Ordering::Release);
                continue;
            }
            while !enter(task).core().waiters.on_descriptor {
                std::thread::yield_now();
            }
            // Without the lock, and by operations of this task on itself.
            match round % 3 {
                // SAFETY: a counter that lives for ever.
                0 => unsafe { progress::setcntr(&task.context, counter.as_ptr().addr(), 1) },
                1 => put(task, 0, forever(8).as_mut_ptr(), &*forever(8), extras(counter)).expect("a put"),
                _ => {
                    let done = Extras { org_cntr: Some(counter), ..Extras::default() };
                    increment(task, 0, forever(8).as_ptr().cast(), done).expect("an addition");
                }
            }
            while woken.load(Ordering::Acquire) <= round {
                std::thread::yield_now();
            }
        }
    });
    job::close(tasks);
}

/// Neither the sleeper nor the thread that sets the counter waits for the other to be ready: each
/// moment has its turn.
#[test]
fn a_counter_set_at_any_moment_is_seen_once() {
    let habits = Habits { wait_policy: ASLEEP, notifier: false, ..Habits::THREADED };
    let tasks = job::open(job::mem(1, 8, false), &habits);
    let counter = counter();
    let woken: &'static AtomicUsize = Box::leak(Box::default());
    in_threads(&tasks, 2, move |task, thread| {
        let mut rng = Rng::new(1);
        for round in 0..500 {
            if thread == 1 {
                task.stage(format!("waits, round {round}"));
                assert_eq!(wait(task, counter, 1), Ok(0));
                woken.store(round + 1, Ordering::Release);
                continue;
            }
            (0..rng.below(100)).for_each(|_| std::hint::spin_loop());
            // SAFETY: a counter that lives for ever.
            unsafe { progress::setcntr(&task.context, counter.as_ptr().addr(), 1) };
            while woken.load(Ordering::Acquire) <= round {
                std::hint::spin_loop();
            }
        }
    });
    job::close(tasks);
}

#[test]
fn a_task_that_computes_is_served_by_its_notifier() {
    for setup in &SETUPS {
        let tasks = open(setup, 2, true);
        in_threads(&tasks[..1], 1, |task, _| {
            let (there, data) = (forever(30_000), &*forever(30_000));
            let (there, variable) = (there.as_mut_ptr(), forever(8).as_ptr());
            let [org, cmpl] = [counter(), counter()];
            for round in 0..ROUNDS {
                task.stage(format!("round {round}"));
                let both = Extras { org_cntr: Some(org), cmpl_cntr: Some(cmpl), ..Extras::default() };
                let len = if round % 10 == 0 { data.len() } else { 8 };
                put(task, 1, there, &data[..len], both).expect("a put");
                wait(task, cmpl, 1).expect("its completion");
                get(task, 1, &data[..len], there, both).expect("a get");
                increment(task, 1, variable.cast(), both).expect("an addition");
                wait(task, org, 3).expect("all three");
                fence(task).expect("a fence");
            }
        });
        job::close(tasks);
    }
}

#[test]
fn interrupts_switched_on_serve_what_has_come_before() {
    let tasks = open(&SETUPS[1], 2, true);
    let set = |task: &Task, value| env::set(&task.context, INTERRUPT_SET, value).expect("INTERRUPT_SET");
    set(&tasks[1], 0);
    let computes = tasks[1].clone();
    in_threads(&tasks[..1], 1, move |task, _| {
        for round in 0..50 {
            task.stage(format!("round {round}"));
            let cmpl = counter();
            let done = Extras { cmpl_cntr: Some(cmpl), ..Extras::default() };
            put(task, 1, forever(8).as_mut_ptr(), &*forever(8), done).expect("a put");
            set(&computes, 1);
            wait(task, cmpl, 1).expect("its completion");
            set(&computes, 0);
        }
    });
    job::close(tasks);
}

#[test]
fn a_sleeper_that_nothing_wakes_polls_once_for_each_check_and_lets_the_notifier_rest() {
    const YIELDS: u32 = 60;
    let wait_policy = WaitPolicy { yields: YIELDS, pollers: u32::MAX, ..WaitPolicy::NONE };
    let tasks = job::open(job::boxed(job::shm(2)), &Habits { wait_policy, ..Habits::THREADED });
    in_threads(&tasks[..1], 1, |task, _| {
        let notifier = &task.context.notifier;
        let (mut last, mut polls, mut rested) = (0, Vec::new(), false);
        let mut first = None;
        wait_until(&mut enter(task), "a test", |held| {
            let core = held.core();
            assert!(!rested || notifier.rests(), "the notifier has been set though the call still waits");
            rested |= notifier.rests();
            // On a busy machine checks also come between the yields, before the first sleep.
            let yielded =
                core.waiters.activity > *first.get_or_insert(core.waiters.activity) + u64::from(YIELDS) + 4;
            if core.membership.looks() != last {
                last = core.membership.looks();
                if yielded {
                    polls.push(core.waiters.activity);
                }
            }
            (rested && polls.len() >= 5).then_some(())
        })
        .expect("the end of the test");
        let each: Vec<u64> = polls.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(each.iter().all(|&polls| polls <= 3), "polls between two checks: {each:?}");
    });
    job::close(tasks);
}

/// A wake-up costs what has come in: a look at all peers, which costs a system call for each,
/// follows only when the last one was some time ago. Task 1 is woken in a call, or its notifier is
/// while it computes.
#[test]
fn those_that_packets_wake_look_after_their_peers_only_now_and_then() {
    for computes in [false, true] {
        let tasks = open(&SETUPS[1], 2, computes);
        let looks: &'static AtomicUsize = Box::leak(Box::default());
        let (came, answered) = (counter(), counter());
        let begun = ticks();
        in_threads(&tasks, 1, move |task, _| {
            let (there, data) = (forever(8).as_mut_ptr(), &*forever(8));
            if task.me == 0 {
                for round in 0..ROUNDS {
                    task.stage(format!("round {round}"));
                    let extras =
                        Extras { cmpl_cntr: Some(answered), tgt_cntr: Some(came), ..Extras::default() };
                    put(task, 1, there, data, extras).expect("a put");
                    wait(task, answered, 1).expect("its completion");
                }
                return;
            }
            let mut last = 0;
            let mut count = |held: &mut Held<'_>| {
                let core = held.core();
                looks.fetch_add(
                    usize::from(
                        std::mem::replace(&mut last, core.membership.looks()) != core.membership.looks(),
                    ),
                    Ordering::Relaxed,
                );
                (came.load(Ordering::Acquire) as usize == ROUNDS).then_some(())
            };
            if !computes {
                return wait_until(&mut enter(task), "a test", count).expect("the end of the test");
            }
            // Often enough to see nearly every look.
            while count(&mut enter(task)).is_none() {
                std::thread::sleep(std::time::Duration::from_micros(20));
            }
        });
        // Some tenths of a second lie between two looks; a thread that nothing wakes looks
        // as often again.
        let allowed = 3 * (ticks() - begun) / 100_000_000 + ROUNDS as u64 / 10;
        let looks = looks.load(Ordering::Relaxed) as u64;
        assert!(looks <= allowed, "{looks} looks at {ROUNDS} packets, in a time for {allowed}");
        job::close(tasks);
    }
}

/// A program sends a burst of which the end waits for more packets, and computes on; its notifier
/// had gone to sleep before, or it has none.
#[test]
fn what_waits_for_more_packets_leaves_though_the_program_computes() {
    for notifier in [true, false] {
        let options = MemOptions { remote: false, ..job::SHORT };
        let ends = network(2, options).into_iter().map(Coalescing::always).collect();
        let habits = Habits { wait_policy: ASLEEP, notifier, ..Habits::THREADED };
        let tasks = job::open(job::boxed(ends), &habits);
        let [came, through] = [counter(), counter()];
        in_threads(&tasks, 1, move |task, _| {
            for round in 1..=ROUNDS as i32 {
                task.stage(format!("round {round}"));
                if task.me == 1 {
                    wait(task, came, 3).expect("a burst");
                    through.store(round, Ordering::Release);
                    continue;
                }
                while notifier && enter(task).core().waiters.armed != ArmedBy::Notifier {
                    std::thread::sleep(std::time::Duration::from_micros(50));
                }
                for _ in 0..3 {
                    put(task, 1, forever(8).as_mut_ptr(), &*forever(8), extras(came)).expect("a put");
                }
                while through.load(Ordering::Acquire) != round {
                    std::thread::sleep(std::time::Duration::from_micros(50));
                }
            }
        });
        job::close(tasks);
    }
}

/// Also where a thread could send it a moment later.
#[test]
fn nothing_waits_for_more_packets_after_a_call_that_does_not_send() {
    let ends = network(2, MemOptions { remote: false, ..job::SHORT });
    let tasks = job::open(job::boxed(ends.into_iter().map(Coalescing::always).collect()), &Habits::THREADED);
    let came = counter();
    in_threads(&tasks, 1, move |task, _| {
        for _ in 0..ROUNDS {
            if task.me == 1 {
                wait(task, came, 3).expect("a burst");
                continue;
            }
            for _ in 0..3 {
                put(task, 1, forever(8).as_mut_ptr(), &*forever(8), extras(came)).expect("a put");
            }
            progress::probe(&mut enter(task));
            assert!(!enter(task).core().is_holding_back());
        }
    });
    job::close(tasks);
}

static ARRIVED: AtomicBool = AtomicBool::new(false);
static NOTICED: AtomicBool = AtomicBool::new(false);

extern "C" fn until_it_has_arrived(_: *const lapi_handle_t, _: *mut c_void, _: *mut lapi_sh_info_t) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !ARRIVED.load(Ordering::Acquire) && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    NOTICED.store(ARRIVED.load(Ordering::Acquire), Ordering::Release);
}

/// The handler has the lock, so that no other thread can send what waits.
#[test]
fn what_waits_is_sent_before_a_send_completion_handler_runs() {
    let ends = network(2, MemOptions { remote: false, ..job::SHORT });
    let ends: Vec<_> = ends.into_iter().map(Coalescing::always).collect();
    let tasks = job::open(job::boxed(ends), &Habits { wait_policy: SLEEPY, ..Habits::THREADED });
    let came = counter();
    in_threads(&tasks, 1, move |task, _| {
        if task.me == 1 {
            wait(task, came, 2).expect("both puts");
            return ARRIVED.store(true, Ordering::Release);
        }
        // The first one to a peer is sent alone.
        put(task, 1, forever(8).as_mut_ptr(), &*forever(8), extras(came)).expect("a put");
        let places = Places::Contiguous {
            local: forever(8).as_ptr().addr(),
            remote: forever(8).as_mut_ptr().addr() as u64,
            len: 8,
        };
        let done = SendDone {
            handler: until_it_has_arrived as *const () as usize,
            bytes: 8,
            ..SendDone::nothing(1)
        };
        let (tgt_cntr, hint) = (came.as_ptr().addr() as u64, Extras::default().hint);
        let second = Put { tgt: 1, places, tgt_cntr, cmpl_cntr: 0, done, hint };
        // SAFETY: the memory lives for ever.
        unsafe { put_get::put(&mut enter(task), &second) }.expect("a put");
        task.stage("waits for the handler".to_owned());
        while !NOTICED.load(Ordering::Acquire) {
            progress::msgpoll(&mut enter(task), 10).expect("an open context");
            std::thread::yield_now();
        }
    });
    job::close(tasks);
}

#[test]
fn a_program_that_only_polls_makes_progress() {
    let tasks = job::open(
        job::mem(2, 1, false),
        &Habits { wait_policy: SLEEPY, notifier: false, ..Habits::THREADED },
    );
    let through: &'static [AtomicBool; 2] = Box::leak(Box::default());
    let counters = [counter(), counter()];
    in_threads(&tasks, 1, move |task, _| {
        let [own, other] = [task.me as usize, 1 - task.me as usize];
        for round in 0..ROUNDS {
            task.stage(format!("round {round}"));
            put(task, other as u32, forever(8).as_mut_ptr(), &*forever(8), extras(counters[other]))
                .expect("a put");
            // SAFETY: counters that live for ever.
            while unsafe { progress::getcntr(&mut enter(task), counters[own].as_ptr().addr()) }
                <= round as i32
            {
                std::thread::yield_now();
            }
        }
        through[own].store(true, Ordering::Release);
        while !through[other].load(Ordering::Acquire) {
            progress::msgpoll(&mut enter(task), 10).expect("an open context");
        }
    });
    job::close(tasks);
}

#[test]
fn a_task_that_packets_keep_busy_hears_of_its_own_messages() {
    let tasks = job::open(job::boxed(job::shm(2)), &Habits { wait_policy: job::AWAKE, ..Habits::STEPPED });
    let sends = |from: usize, extras| {
        put(&tasks[from], 1 - from as u32, forever(8).as_mut_ptr(), forever(8), extras).expect("a put");
    };
    // From now on a fence knows of the peers.
    sends(0, Extras::default());
    sends(1, Extras::default());
    settle(&tasks);
    let (done, mut looks) = (counter(), 0);
    sends(0, Extras { cmpl_cntr: Some(done), ..Extras::default() });
    assert!(enter(&tasks[0]).core().awaits_reports());
    tasks[1].step();
    // The next look always finds a packet.
    let taken = wait_until(&mut enter(&tasks[0]), "a wait of the test", |_| {
        sends(1, Extras::default());
        looks += 1;
        assert!(looks < 10_000, "it does not know while packets arrive");
        (done.load(Ordering::SeqCst) != 0).then_some(())
    });
    taken.expect("the report");
    settle(&tasks);
    job::close(tasks);
}

/// LAPI_Senv is in a call already when it tells the transport, and other callers are not.
#[test]
fn the_transport_learns_of_a_setting_within_a_call_and_outside_of_one() {
    let (ends, network) = job::mortal_mem(2, 8, false);
    let tasks = job::open(ends, &Habits::STEPPED);
    let held = enter(&tasks[0]);
    env::set(held.context(), ACK_THRESHOLD, 3).expect("a value that is allowed");
    drop(held);
    assert_eq!(network.acknowledges_every(0), 3);
    env::set(&tasks[0].context, ACK_THRESHOLD, 4).expect("a value that is allowed");
    assert_eq!([0, 1].map(|task| network.acknowledges_every(task)), [4, 0]);
    job::close(tasks);
}

/// Whether the handlers of the next test stop sending.
static ENOUGH: AtomicBool = AtomicBool::new(false);

#[test]
fn a_fence_does_not_wait_for_what_handlers_send_to_their_own_task_after_it() {
    unsafe extern "C" fn sends_on(
        _: *mut lapi_handle_t,
        _: *mut c_void,
        _: *mut c_uint,
        msg_len: *mut c_ulong,
        comp_h: *mut compl_hndlr_p,
        _: *mut *mut c_void,
    ) -> *mut c_void {
        unsafe extern "C" fn completed(hndl: *mut lapi_handle_t, _: *mut c_void) {
            if !ENOUGH.load(Ordering::Acquire) {
                send(&job::task(hndl), 0, sends_on, &[], &[], Extras::default()).expect("a message");
            }
        }
        // SAFETY: the library gives these for the time of the call.
        unsafe {
            *comp_h = Some(completed);
            (*msg_len.cast::<lapi_return_info_t>()).ret_flags = LAPI_SEND_REPLY;
        }
        std::ptr::null_mut()
    }
    let tasks = job::open(job::mem(1, 8, false), &Habits::THREADED);
    in_threads(&tasks, 1, |task, _| {
        send(task, 0, sends_on, &[], &[], Extras::default()).expect("a message");
        fence(task).expect("a fence");
        gfence(task).expect("a fence");
        assert_ne!(enter(task).core().to_self(), 0, "the handlers have stopped");
        ENOUGH.store(true, Ordering::Release);
    });
    job::close(tasks);
}
