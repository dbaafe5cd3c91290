//! The contexts of a job, opened directly, and the threads that act as its tasks.

use crate::abi::{LAST_LIB, lapi_err_t, lapi_handle_t};
use crate::base::clock::test_deadline;
use crate::base::thread::ThreadConfig;
use crate::engine::context::event_loop::ArmedBy;
use crate::engine::context::events::{Events, Failure};
use crate::engine::context::request::{Policy, Preference};
use crate::engine::context::settings::{LOOK_AROUND, Options};
use crate::engine::context::wait_policy::WaitPolicy;
use crate::engine::context::{Context, Core};
use crate::engine::progress::{closing, completion_threads, dispatcher, interrupt_thread, reports};
use crate::error::Log;
use crate::job::{Hosts, ended};
use crate::proto::pieces::MOST;
use crate::transport::shm::{ShmTransport, in_process};
use crate::transport::testing::faults::{FaultPlan, Faulty};
use crate::transport::testing::mem::{MemOptions, NetworkHandle, network};
use crate::transport::{Task as Number, Transport};
use libc::c_int;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The longest body of a packet in memory: long messages need not be long.
pub const MAX_BODY: usize = 1536;

/// Messages of this many bytes and more go by bulk transfer, where there is one.
pub const BULK_MINIMUM: usize = 5_000;

/// The ends of a transport, one for each task.
pub type Ends = Vec<Box<dyn Transport>>;

/// A way to join tasks.
pub struct Setup {
    /// Joins this number of tasks; faults come from the seed.
    pub join: fn(u32, u64) -> Ends,
    /// How long messages go.
    pub preference: Preference,
}

/// The settings of a job.
#[derive(Clone, Copy)]
pub struct Habits {
    /// How long messages go.
    pub preference: Preference,
    /// How soon threads sleep.
    pub wait_policy: WaitPolicy,
    /// Messages up to this many bytes are copied at once when the transport has no room.
    pub copy_limit: usize,
    /// Whether there is a thread that serves messages while the program computes.
    pub notifier: bool,
    /// How many threads run completion handlers.
    pub completion_threads: usize,
    /// How many hosts there are. Consecutive tasks are on different ones.
    pub hosts: u32,
    /// How many parts of one message are registered at a time.
    pub batch: usize,
}

impl Habits {
    /// One thread does everything: no others are started.
    pub const STEPPED: Self = Self {
        preference: Preference::Auto,
        wait_policy: SLEEPY,
        copy_limit: 128,
        notifier: false,
        completion_threads: 0,
        hosts: 1,
        batch: MOST,
    };
    /// With all threads that a job has.
    pub const THREADED: Self = Self { notifier: true, completion_threads: 1, ..Self::STEPPED };

    /// The hosts of a job of this number of tasks, as task 0 sees them.
    fn hosts(&self, tasks: u32) -> Hosts {
        Hosts::new(0, (0..tasks).map(|task| task % self.hosts))
    }
}

/// Threads sleep almost at once.
pub const SLEEPY: WaitPolicy = WaitPolicy { spin: 10, yields: 4, pollers: u32::MAX, ..WaitPolicy::NONE };
/// Threads sleep seldom.
pub const AWAKE: WaitPolicy = WaitPolicy { spin: 2_000, yields: 200, pollers: u32::MAX, ..WaitPolicy::NONE };

/// An error that was reported to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The error.
    pub code: c_int,
    /// The operation.
    pub kind: lapi_err_t,
    /// The task that got the report.
    pub task: c_int,
    /// The other task.
    pub src: c_int,
}

/// A task: its context, and what its handlers know of it.
pub struct Task {
    /// The task's number.
    pub me: Number,
    /// The task's context.
    pub context: Arc<Context>,
    /// The state of its handlers.
    pub play: OnceLock<Arc<dyn Any + Send + Sync>>,
    /// Runs in the error handler.
    pub on_report: OnceLock<fn(&Self)>,
    /// What its send completion handlers were called with: the parameter and the reason.
    pub reported: Mutex<Vec<(usize, u32)>>,
    reports: Mutex<Vec<Report>>,
    stage: Mutex<String>,
}

/// By the address that handlers are given.
static TASKS: Mutex<BTreeMap<usize, Arc<Task>>> = Mutex::new(BTreeMap::new());

static HANDLES: AtomicU32 = AtomicU32::new(1);

/// Opens a context for each of the ends.
pub fn open(ends: Ends, habits: &Habits) -> Vec<Arc<Task>> {
    let tasks = ends.len() as u32;
    let hosts = habits.hosts(tasks);
    (0..).zip(ends).map(|(me, transport)| open_one(me, &hosts, tasks, transport, habits)).collect()
}

/// Opens the context of a task that rejoins a running job.
pub fn open_again(me: Number, tasks: u32, transport: Box<dyn Transport>, habits: &Habits) -> Arc<Task> {
    let task = open_one(me, &habits.hosts(tasks), tasks, transport, habits);
    let mut held = task.context.enter().expect("an open context");
    let core = held.core();
    core.membership.await_all(me);
    reports::take(core);
    drop(held);
    task
}

fn open_one(
    me: Number,
    hosts: &Hosts,
    tasks: u32,
    transport: Box<dyn Transport>,
    habits: &Habits,
) -> Arc<Task> {
    let context = Arc::new(Context::new());
    let options = Options {
        me,
        tasks,
        hosts: hosts.seen_by(me),
        copy_limit: habits.copy_limit,
        buffers: usize::MAX,
        rdma_contexts: 4,
        lane_bytes: 1 << 20,
        bulk: Policy {
            by_key: habits.preference != Preference::Packets,
            minimum: BULK_MINIMUM,
            batch: habits.batch,
            preference: habits.preference,
            crowded: false,
        },
        wait_policy: habits.wait_policy,
        level: LAST_LIB,
        replaces: false,
        opening: None,
        addresses: None,
        networks: Vec::new(),
        give_up: true,
        stall: Duration::ZERO,
        look_around: LOOK_AROUND,
        guarded: false,
        ends: Arc::new(ended::Ends::of_none()),
        log: Log::none(),
        events: Arc::new(Reports),
        rexmit_buffers: 128,
        rexmit_size: 16384,
        bulk_minimum: 0,
    };
    let task = Arc::new(Task {
        me,
        context: context.clone(),
        play: OnceLock::new(),
        on_report: OnceLock::new(),
        reported: Mutex::default(),
        reports: Mutex::default(),
        stage: Mutex::default(),
    });
    TASKS.lock().insert(context.handle_ptr().addr(), task.clone());
    let handle = HANDLES.fetch_add(1, Ordering::Relaxed);
    context.open(handle, options, transport.into()).expect("a context that is not open");
    context.settings.interrupts.store(habits.notifier, Ordering::Relaxed);
    completion_threads::start(&context, habits.completion_threads, ThreadConfig::PLAIN).expect("threads");
    if habits.notifier {
        interrupt_thread::start(&context, ThreadConfig::PLAIN).expect("a thread");
    }
    task
}

/// Ends all contexts that are still open, and forgets the tasks.
pub fn close(tasks: Vec<Arc<Task>>) {
    for task in &tasks {
        task.context.notifier.stop();
        assert!(task.context.completions.stop(test_deadline()), "a completion handler has not returned");
        if let Some(mut held) = task.context.enter_closing() {
            held.core().begin_closing();
            held.core().transport.close();
            // A thread in whose handler LAPI was ended may still be on its way out.
            while held.dispatching() || !held.core().waiters.inside().is_empty() {
                held.unlocked(std::thread::yield_now);
            }
            drop(task.context.close(held));
        }
        TASKS.lock().remove(&task.context.handle_ptr().addr());
    }
}

/// The task of a handler.
pub fn task(hndl: *mut lapi_handle_t) -> Arc<Task> {
    TASKS.lock().get(&hndl.addr()).cloned().expect("a handler of a job that is open")
}

/// Notes what is reported in the task, and in the threads of the test nothing ends by that.
struct Reports;

impl Events for Reports {
    fn ends_by(&self, _: &Failure<'_>) -> bool {
        false
    }

    fn failed(&self, context: &Context, failure: &Failure<'_>) {
        let task = task(context.handle_ptr());
        let &Failure { error, kind, task: me, source } = failure;
        task.reports.lock().push(Report { code: error.code, kind, task: me as c_int, src: source as c_int });
        if let Some(also) = task.on_report.get() {
            also(&task);
        }
    }

    fn fatal(&self) {}

    fn stalled(&self) {}

    fn closing(&self, _: &Context, _: bool) {}
}

impl Task {
    /// What was reported so far.
    pub fn reports(&self) -> Vec<Report> {
        self.reports.lock().clone()
    }

    /// Notes what the task does now, for the message of a test that hangs.
    pub fn stage(&self, what: impl Into<String>) {
        *self.stage.lock() = what.into();
    }

    /// One round of the dispatcher. Whether anything moved.
    pub fn step(&self) -> bool {
        dispatcher::turn(&mut self.context.enter().expect("an open context"))
    }

    /// Ends LAPI here.
    pub fn term(&self) {
        self.stage("in LAPI_Term");
        closing::close(&self.context, self.context.handle()).expect("an open context");
        self.stage("after LAPI_Term");
    }

    /// The state of the task.
    pub fn standing(&self) -> String {
        let (reporter, reports) = channel();
        let context = self.context.clone();
        // The lock may never be released.
        std::thread::spawn(move || {
            let state = match context.enter_closing() {
                None => "closed".to_owned(),
                Some(mut held) => {
                    let state = describe(held.core());
                    let asleep = held.core().transport.recv().map(|packet| {
                        let head = format!("{packet:?}");
                        held.core().transport.release(packet);
                        head
                    });
                    format!("{state}; not looked at: {asleep:?}")
                }
            };
            let _ = reporter.send(state);
        });
        let state = reports
            .recv_timeout(Duration::from_secs(1))
            .unwrap_or_else(|_| "its lock cannot be taken".into());
        format!("task {}: {}; {state}; reports {:?}", self.me, self.stage.lock(), self.reports())
    }
}

/// What is under way in a context.
pub fn describe(core: &mut Core) -> String {
    format!(
        "{} operations in flight for {:?}, packets wait for {:?}, fences for {:?}, a collective for {:?}, {} transfers, \
         {} to itself, {} dropped, {} finished, {} wait ({} in the room{}{})",
        core.ops.len(),
        core.ops.peers().collect::<std::collections::BTreeSet<_>>(),
        core.outbox.waiting_for().collect::<Vec<_>>(),
        core.outbox.unconfirmed(),
        core.collectives.awaited().collect::<Vec<_>>(),
        core.copies.iter().count() + core.copies.awaiting_parts().count(),
        core.to_self(),
        core.senders_of_kept().count(),
        core.count_done_sends(),
        core.waiters.waiting(),
        core.waiters.parked(),
        if core.waiters.on_descriptor { ", one on the descriptor" } else { "" },
        match core.waiters.armed {
            ArmedBy::NoThread => "",
            ArmedBy::Notifier => ", the notifier is armed",
            ArmedBy::EventLoop => ", the event loop is armed",
        },
    )
}

/// Runs `play` for every task with each of `threads` numbers, each in a thread of its own. When one
/// panics, or when they are not all done in time, prints the state of every task, and panics.
pub fn in_threads(tasks: &[Arc<Task>], threads: usize, play: impl Fn(&Task, usize) + Send + Sync + 'static) {
    let play = Arc::new(play);
    let (reporter, reports) = channel();
    for (task, thread) in tasks.iter().flat_map(|task| (0..threads).map(move |thread| (task, thread))) {
        let (task, play, reporter) = (task.clone(), play.clone(), reporter.clone());
        let run = move || {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| play(&task, thread)));
            let _ = reporter.send(outcome.is_ok());
        };
        std::thread::Builder::new().name(format!("task-{}", tasks[0].me)).spawn(run).expect("a thread");
    }
    let end = Instant::now() + test_deadline();
    for _ in 0..tasks.len() * threads {
        let stuck = match reports.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(true) => continue,
            Ok(false) => "a thread has panicked",
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => "not all are through in time",
        };
        let standing: Vec<_> = tasks.iter().map(|task| task.standing()).collect();
        panic!("{stuck}\n{}", standing.join("\n"));
    }
}

/// A transport inside of the process.
pub fn mem(tasks: u32, capacity: usize, attach: bool) -> Ends {
    boxed(network(
        tasks,
        MemOptions { max_body: MAX_BODY, capacity, remote: attach, ..MemOptions::default() },
    ))
}

/// Short packets, and copies.
pub const SHORT: MemOptions = MemOptions {
    max_body: MAX_BODY,
    capacity: 8,
    take: false,
    lose: 0,
    remote: true,
    seen: true,
    pending: false,
    keyed: false,
    standing: false,
    registrations: u64::MAX,
    accesses: u64::MAX,
};

/// Memory is reached by keys, and accesses are reported later.
pub const KEYED: MemOptions = MemOptions { keyed: true, pending: true, take: true, ..SHORT };

/// Memory that is reached by keys, where each task has a key of all memory of each peer.
pub const STANDING: MemOptions = MemOptions { standing: true, ..KEYED };

/// A transport inside of the process with these options.
pub fn asynchronous(tasks: u32, options: MemOptions) -> Ends {
    boxed(network(tasks, options))
}

/// A transport inside of the process with these options, and with faults.
pub fn faulty(tasks: u32, options: MemOptions, plan: &FaultPlan) -> Ends {
    boxed(Faulty::join(network(tasks, options), plan))
}

/// A transport inside of the process, and the means to kill tasks.
pub fn mortal_mem(tasks: u32, capacity: usize, attach: bool) -> (Ends, NetworkHandle) {
    let ends =
        network(tasks, MemOptions { max_body: MAX_BODY, capacity, remote: attach, ..MemOptions::default() });
    let handle = ends[0].handle();
    (boxed(ends), handle)
}

/// A transport inside of the process with faults.
pub fn faulty_mem(tasks: u32, attach: bool, plan: &FaultPlan) -> Ends {
    boxed(Faulty::join(
        network(
            tasks,
            MemOptions { max_body: MAX_BODY, capacity: 4, remote: attach, ..MemOptions::default() },
        ),
        plan,
    ))
}

/// Shared memory between threads of this process.
pub fn shm(tasks: u32) -> Vec<ShmTransport> {
    in_process::ends(tasks)
}

/// Any ends.
pub fn boxed<T: Transport + 'static>(ends: Vec<T>) -> Ends {
    ends.into_iter().map(|end| Box::new(end) as Box<dyn Transport>).collect()
}
