//! Random operations of all kinds, over every transport.

use super::job::{self, AWAKE, Ends, Habits, SLEEPY, Setup, Task};
use super::plan::{Plan, Shape};
use super::program::{plan, prepare, start};
use crate::api::{address, fence, progress};
use crate::base::rng::Rng;
use crate::engine::context::Core;
use crate::engine::context::request::Preference;
use crate::proto::tests::seeds;
use crate::transport::testing::faults::{FaultPlan, Faulty};
use crate::transport::testing::mem::MemOptions;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One transport, and the tests that each must pass.
macro_rules! over {
    ($($name:ident: $preference:ident, $join:expr;)*) => {$(
        mod $name {
            use super::*;

            const SETUP: Setup = Setup { join: $join, preference: Preference::$preference };

            #[test]
            fn stepped_by_one_thread() {
                seeds(3, |seed| stepped(&SETUP, seed));
            }

            #[test]
            fn a_thread_for_each_task() {
                seeds(1, |seed| threaded(&SETUP, seed, 3, 1, true));
            }

            #[test]
            fn two_threads_for_each_task_without_notifier() {
                seeds(1, |seed| threaded(&SETUP, seed, 2, 2, false));
            }
        }
    )*};
}

over! {
    mem: Packets, |tasks, _| job::mem(tasks, 8, false);
    mem_room_for_one: Packets, |tasks, _| job::mem(tasks, 1, false);
    mem_attach: Attach, |tasks, _| job::mem(tasks, 8, true);
    mem_auto: Auto, |tasks, _| job::mem(tasks, 8, true);
    mem_taking: Packets, |tasks, _| job::asynchronous(tasks, MemOptions { take: true, ..job::SHORT });
    mem_pending: Attach, |tasks, _| job::asynchronous(tasks, MemOptions { take: true, pending: true, ..job::SHORT });
    mem_losing: Auto, |tasks, _| job::asynchronous(tasks, MemOptions { take: true, pending: true, lose: 5, ..job::SHORT });
    mem_keyed: Auto, |tasks, _| job::asynchronous(tasks, job::KEYED);
    mem_keyed_at_once: Auto, |tasks, _| job::asynchronous(tasks, MemOptions { pending: false, ..job::KEYED });
    mem_keyed_refused: Auto, |tasks, seed| job::asynchronous(tasks, MemOptions { registrations: seed % 7, ..job::KEYED });
    mem_keyed_failing: Auto, |tasks, seed| job::asynchronous(tasks, MemOptions { accesses: seed % 7, ..job::KEYED });
    mem_standing: Auto, |tasks, _| job::asynchronous(tasks, job::STANDING);
    mem_standing_at_once: Auto, |tasks, _| job::asynchronous(tasks, MemOptions { pending: false, ..job::STANDING });
    mem_standing_failing: Auto, |tasks, seed| job::asynchronous(tasks, MemOptions { accesses: seed % 7, ..job::STANDING });
    faults_standing: Auto, |tasks, seed| job::faulty(tasks, job::STANDING, &FaultPlan::rough(seed));
    faults_keyed: Auto, |tasks, seed| job::faulty(tasks, job::KEYED, &FaultPlan::rough(seed));
    faults: Packets, |tasks, seed| job::faulty_mem(tasks, false, &FaultPlan::rough(seed));
    faults_in_order: Auto, |tasks, seed| job::faulty_mem(tasks, true, &FaultPlan { reorder: 0.0, ..FaultPlan::rough(seed) });
    faults_attach: Attach, |tasks, seed| job::faulty_mem(tasks, true, &FaultPlan::rough(seed));
    shm: Packets, |tasks, _| job::boxed(job::shm(tasks));
    shm_attach: Attach, |tasks, _| job::boxed(job::shm(tasks));
    shm_faults: Auto, |tasks, seed| job::boxed(Faulty::join(job::shm(tasks), &FaultPlan::rough(seed)));
}

fn shape(ends: &Ends, threads: usize, operations: usize, habits: &Habits) -> Shape {
    Shape {
        tasks: ends.len() as u32,
        threads,
        operations,
        // The header is padded to 8 bytes.
        packet: ends[0].limits(1).max_body - 8,
        completion_threads: habits.completion_threads > 0,
        copy_limit: habits.copy_limit,
    }
}

fn begin(
    setup: &Setup,
    seed: u64,
    tasks: u32,
    threads: usize,
    operations: usize,
    habits: &Habits,
) -> Vec<Arc<Task>> {
    let ends = (setup.join)(tasks, seed);
    let plan = Plan::new(seed, shape(&ends, threads, operations, habits));
    let tasks = job::open(ends, habits);
    tasks.iter().for_each(|task| prepare(task, &plan));
    tasks
}

/// Everything in one thread, in an order that the seed decides.
fn stepped(setup: &Setup, seed: u64) {
    let mut rng = Rng::stream(seed, 1);
    let habits = Habits {
        preference: setup.preference,
        copy_limit: [0, 128, 4096][rng.below(3) as usize],
        ..Habits::STEPPED
    };
    let tasks = begin(setup, seed, 1 + rng.below(5) as u32, 1, 40, &habits);
    let plan = plan(&tasks[0]);
    let mut next = vec![0; tasks.len()];
    let mut steps = 0;
    while !plan.over() || tasks.iter().any(|task| !idle(task)) {
        let at = rng.below(tasks.len() as u64) as usize;
        match plan.own[at][0].get(next[at]) {
            Some(&number) if rng.chance(0.1) => {
                next[at] += 1;
                start(&plan, number, &mut tasks[at].context.enter().expect("an open context"));
            }
            _ => (0..8).for_each(|_| _ = tasks[at].step()),
        }
        steps += 1;
        assert!(steps < 200_000 && plan.faults.lock().is_empty(), "{}", stuck(&tasks));
    }
    settle(&tasks, &mut rng);
    for (task, thread) in tasks.iter().map(|task| (task, 0)) {
        let counters = &plan.counters[task.me as usize][thread];
        let reached =
            [&counters.tgt, &counters.org, &counters.cmpl].map(|counter| counter.load(Ordering::SeqCst));
        assert_eq!(reached, plan.expected(task.me, thread), "the counters of task {}", task.me);
    }
    end(tasks, &plan);
}

/// A fence of all tasks, in steps.
fn settle(tasks: &[Arc<Task>], rng: &mut Rng) {
    let ask = |task: &Arc<Task>| {
        let mut held = task.context.enter().expect("an open context");
        let core = held.core();
        let epoch = core.ops.epochs().close();
        let mut asked = Vec::new();
        let (outbox, mut wire) = core.out();
        outbox.ask(&mut wire, |peer, count| asked.push((peer, count)));
        (epoch, asked)
    };
    let fences: Vec<_> = tasks.iter().map(ask).collect();
    let confirmed = |task: &Arc<Task>| {
        let mut held = task.context.enter().expect("an open context");
        let core = held.core();
        let (epoch, asked) = &fences[core.options.me as usize];
        core.ops.epochs().over(*epoch)
            && asked.iter().all(|(peer, count)| core.outbox.confirmed(*peer, *count))
    };
    let mut steps = 0;
    while !tasks.iter().all(|task| confirmed(task) && idle(task)) {
        tasks[rng.below(tasks.len() as u64) as usize].step();
        steps += 1;
        assert!(steps < 200_000, "the fence: {}", stuck(tasks));
    }
}

/// Whether nothing is under way in a task, as far as it knows.
fn idle(task: &Task) -> bool {
    let mut held = task.context.enter().expect("an open context");
    let core: &mut Core = held.core();
    !core.is_sending() && !core.has_deferred() && core.ops.is_empty()
}

fn stuck(tasks: &[Arc<Task>]) -> String {
    let plan = plan(&tasks[0]);
    let open: Vec<_> = plan.ops.iter().filter(|op| !op.arrived()).map(|op| op.name()).take(20).collect();
    let standing: Vec<_> = tasks.iter().map(|task| task.standing()).collect();
    format!("stuck\n{}\n{}\n{:?}", standing.join("\n"), open.join("\n"), plan.faults.lock())
}

/// Threads that start operations, fence them, meet in collective operations, and wait for
/// their counters.
fn threaded(setup: &Setup, seed: u64, tasks: u32, threads: usize, notifier: bool) {
    let mut rng = Rng::stream(seed, 1);
    let habits = Habits {
        preference: setup.preference,
        wait_policy: if rng.chance(0.5) { SLEEPY } else { AWAKE },
        notifier,
        completion_threads: 1 + rng.below(2) as usize,
        ..Habits::THREADED
    };
    let tasks = begin(setup, seed, tasks, threads, 60, &habits);
    let plan = plan(&tasks[0]);
    let shared = plan.clone();
    // Without the notifier a task has to call LAPI for as long as others may need it.
    let inside = AtomicUsize::new(tasks.len() * threads);
    job::in_threads(&tasks, threads, move |task, thread| {
        play(task, thread, &shared, seed);
        inside.fetch_sub(1, Ordering::AcqRel);
        while !notifier && inside.load(Ordering::Acquire) != 0 {
            progress::probe(&mut task.context.enter().expect("an open context"));
            std::thread::yield_now();
        }
    });
    job::in_threads(&tasks, 1, |task, _| {
        task.term();
        assert!(task.context.enter().is_err(), "LAPI has ended");
    });
    end(tasks, &plan);
}

fn play(task: &Task, thread: usize, plan: &Arc<Plan>, seed: u64) {
    let mut rng = Rng::stream(seed, u64::from(task.me) * 8 + thread as u64 + 100);
    let own = &plan.own[task.me as usize][thread];
    let enter = || task.context.enter().expect("an open context");
    for (done, &number) in own.iter().enumerate() {
        task.stage(format!("thread {thread} starts {}", plan.ops[number].name()));
        start(plan, number, &mut enter());
        if rng.chance(0.1) {
            task.stage(format!("thread {thread} in LAPI_Fence after {}", plan.ops[number].name()));
            fence::fence(&mut enter()).expect("a fence");
            check(plan, &own[..=done]);
        }
        // One thread of each task, at the same places.
        if thread == 0 && done % 10 == 9 {
            together(task, plan, done);
        }
    }
    await_counters(task, thread, plan);
    task.stage(format!("thread {thread} probes until all are done"));
    while !plan.over() {
        progress::probe(&mut enter());
        if rng.chance(0.5) {
            progress::msgpoll(&mut enter(), 5).expect("an open context");
        }
        std::thread::yield_now();
    }
    if thread == 0 {
        task.stage("in the last LAPI_Gfence");
        fence::gfence(&mut enter()).expect("a fence");
    }
    task.stage(format!("thread {thread} is through"));
}

/// What was started and fenced is where it belongs.
fn check(plan: &Plan, numbers: &[usize]) {
    for &number in numbers {
        let op = &plan.ops[number];
        assert!(op.arrived(), "{}: fenced, and not there", op.name());
    }
}

fn together(task: &Task, plan: &Arc<Plan>, round: usize) {
    let mut held = task.context.enter().expect("an open context");
    if round % 20 == 9 {
        task.stage(format!("in LAPI_Address_init after {round}"));
        let value = |task: u32| u64::from(task) << 32 | round as u64;
        let values = address::exchange(&mut held, value(task.me)).expect("an exchange");
        assert_eq!(values, (0..plan.shape.tasks).map(value).collect::<Vec<_>>());
    } else {
        task.stage(format!("in LAPI_Gfence after {round}"));
        fence::gfence(&mut held).expect("a fence");
        plan.own.iter().for_each(|own| check(plan, &own[0][..=round]));
    }
}

fn await_counters(task: &Task, thread: usize, plan: &Arc<Plan>) {
    let counters = &plan.counters[task.me as usize][thread];
    let wanted = plan.expected(task.me, thread);
    let each = [
        (&counters.org, wanted[1], "origin"),
        (&counters.cmpl, wanted[2], "completion"),
        (&counters.tgt, wanted[0], "target"),
    ];
    for (counter, wanted, name) in each {
        task.stage(format!(
            "thread {thread} waits for {wanted} on its {name} counter: {}",
            counter.load(Ordering::SeqCst)
        ));
        let mut held = task.context.enter().expect("an open context");
        // SAFETY: a counter of the plan.
        let left = unsafe { progress::waitcntr(&mut held, counter.as_ptr().addr(), wanted) };
        assert_eq!(left, Ok(0), "the {name} counter of task {}", task.me);
    }
}

fn end(tasks: Vec<Arc<Task>>, plan: &Plan) {
    plan.verify();
    for task in &tasks {
        assert_eq!(task.reports(), [], "task {}", task.me);
    }
    job::close(tasks);
}
