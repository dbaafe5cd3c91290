//! The thread that reports what this process waits for: when the bell rings (see [`crate::base::bell`]), or when the launcher asks over its
//! line. It belongs to the process, from the first LAPI_Init to the last LAPI_Term, and knows its open contexts.
//!
//! A child of fork has no such thread, and forgets all of it; the memory of the parent's state stays allocated, unchanged.

use crate::abi::LAPI_VOID_HANDLE;
use crate::base::bell::{self, Bell, Cause};
use crate::base::clock::{moment, since};
use crate::base::known_threads::note_thread;
use crate::base::poll::await_readable;
use crate::base::sync::Mutex;
use crate::base::thread::{self, Thread, ThreadConfig};
use crate::config::Env;
use crate::engine::context::Context;
use crate::engine::context::active_handler::Run;
use crate::engine::context::snapshot::{note_reported, snapshot};
use crate::job::ended;
use crate::job::reporter::Line;
use crate::report::{Handlers, Locked};
use crate::transport::Task;
use crate::wire::launcher::{self, Collective, FromLauncher, FromTask, Report};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long the reporter tries to get a context's lock.
const MOMENT: Duration = Duration::from_millis(200);
/// How often it checks for handlers that do not return, at least and at most, where it checks at all. In a job of several hundred
/// tasks it checks up to four times as seldom.
const LOOK: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));
/// After this time a task that was outside of LAPI is checked again: it may be one that polls.
const SECOND_LOOK: Duration = Duration::from_millis(20);
/// How long LAPI_Term waits for the thread.
const END: Duration = Duration::from_secs(1);

/// The settings from the environment.
#[derive(Clone, Copy, Debug)]
pub struct ReportConfig {
    /// The signal that asks for a report.
    pub signal: Option<i32>,
    /// After how many seconds without progress a waiting call causes a report; 0: never.
    pub stall: u32,
}

/// An open context.
#[derive(Clone)]
struct Place {
    instance: usize,
    context: Weak<Context>,
}

#[derive(Default)]
struct State {
    places: Vec<Place>,
    thread: Option<(Arc<Reporter>, Thread)>,
    /// The line to the launcher, from the first LAPI_Init to the last LAPI_Term.
    line: Option<Arc<Line>>,
}

/// Null until it is needed, and again in a child of fork, whose parent may have held the lock.
static STATE: AtomicPtr<Mutex<State>> = AtomicPtr::new(ptr::null_mut());

fn state() -> &'static Mutex<State> {
    let mut found = STATE.load(Ordering::Acquire);
    if found.is_null() {
        let new = Box::into_raw(Box::default());
        match STATE.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => found = new,
            Err(theirs) => {
                // SAFETY: made from a box right above, and not shared yet.
                drop(unsafe { Box::from_raw(new) });
                found = theirs;
            }
        }
    }
    // SAFETY: made from a box, and never freed once it is in `STATE`.
    unsafe { &*found }
}

/// This process is a child of one that uses LAPI: the launcher's line is its parent's.
static CHILD: AtomicBool = AtomicBool::new(false);

/// In the child of a fork.
pub fn forget_in_child() {
    CHILD.store(true, Ordering::Relaxed);
    STATE.store(ptr::null_mut(), Ordering::Relaxed);
    bell::forget();
    ended::forget_in_child();
}

/// A context of `task` of `tasks` is being opened: it is reported from now on. The first one starts the thread, informs the
/// launcher, with its settings. A process in which the thread cannot be started works without reports.
pub fn enlist(
    context: &Arc<Context>,
    instance: usize,
    (task, tasks): (Task, u32),
    config: ReportConfig,
    recipe: ThreadConfig,
    env: &Env<'_>,
) {
    note_thread();
    let mut state = state().lock();
    state.places.push(Place { instance, context: Arc::downgrade(context) });
    if state.thread.is_some() {
        return;
    }
    let Ok(bell) = Bell::hang() else { return };
    bell::set_stall(config.stall);
    let reporter = Arc::new(Reporter { bell, ended: AtomicBool::new(false) });
    let line = if CHILD.load(Ordering::Relaxed) { None } else { Line::from_env(env).map(Arc::new) };
    if let Some(line) = &line {
        line.send(&FromTask::Enter { pid: std::process::id() as i32, task, tasks });
    }
    state.line.clone_from(&line);
    let shared = reporter.clone();
    if let Ok(thread) = thread::spawn("lapi-report", recipe, move || run(&shared, line, tasks)) {
        state.thread = Some((reporter, thread));
        if let Some(signal) = config.signal {
            bell::listen_to(signal);
        }
    }
}

/// A LAPI_Init has succeeded: the launcher learns of it.
pub fn ready() {
    let line = state().lock().line.clone();
    if let Some(line) = line {
        line.send(&FromTask::Ready { pid: std::process::id() as i32 });
    }
}

/// A context is closed, or about to be. With the last one the thread ends; when `wait`, the call returns after that. The
/// signal's handler stays, and does nothing from then on: the launcher may send the signal to a task that has just ended LAPI.
pub fn dismiss(context: &Context, wait: bool) {
    let mut state = state().lock();
    state
        .places
        .retain(|place| place.context.upgrade().is_some_and(|other| !ptr::eq(Arc::as_ptr(&other), context)));
    if !state.places.is_empty() {
        return;
    }
    if let Some(line) = state.line.take() {
        line.send(&FromTask::Leave { pid: std::process::id() as i32 });
    }
    let Some((reporter, thread)) = state.thread.take() else { return };
    reporter.ended.store(true, Ordering::Release);
    bell::ring(Cause::Orders);
    drop(state);
    if wait { thread.join_within(END) } else { thread.detach() }
}

struct Reporter {
    bell: Bell,
    ended: AtomicBool,
}

/// A handler that was running when the thread last looked.
struct Watched {
    instance: usize,
    run: Option<Run>,
    owner: usize,
    since: u32,
    reported: bool,
}

fn run(reporter: &Reporter, mut line: Option<Arc<Line>>, tasks: u32) {
    let stall = bell::stall();
    let patience = (!stall.is_zero()).then(|| (stall / 4).clamp(LOOK.0, LOOK.1 * (tasks / 64).clamp(1, 4)));
    let mut watched = Vec::new();
    while !reporter.ended.load(Ordering::Acquire) {
        // Without the bell it could not be asked to end.
        let Some(bell) = reporter.bell.fd() else { return };
        let call = line.as_ref().and_then(|line| line.fd());
        let heard: Vec<BorrowedFd<'_>> = [Some(bell), call].into_iter().flatten().collect();
        await_readable(&heard, patience);
        if call.is_none() {
            line = None;
        }
        let causes = reporter.bell.heard();
        let mut asked = None;
        while let Some(message) = line.as_ref().and_then(|line| line.receive()) {
            match message {
                FromLauncher::Ask(number) => asked = Some(number),
                FromLauncher::Ended(tasks) => ended::store(&tasks),
            }
        }
        if reporter.ended.load(Ordering::Acquire) {
            return;
        }
        let places = state().lock().places.clone();
        let stuck = look(&places, &mut watched, stall);
        // One report is enough for all that have asked.
        let cause = match asked {
            Some(number) => launcher::Cause::Asked(number),
            None if causes.contains(&Cause::Signal) => launcher::Cause::Signal,
            None if causes.contains(&Cause::Stall) || stuck => launcher::Cause::Stall,
            None => continue,
        };
        let summary = Summary::of(&places, &watched);
        watched.iter_mut().for_each(|watched| watched.reported |= watched.run.is_some());
        if !line.as_ref().is_some_and(|line| line.send(&summary.message(&cause))) {
            print(&summary, &cause);
        }
    }
}

/// Checks, without any lock, which threads hold the locks and which handlers run. Returns whether a handler has run for so
/// long that it is to be reported.
fn look(places: &[Place], watched: &mut Vec<Watched>, stall: Duration) -> bool {
    let mut due = false;
    watched.retain(|watched| places.iter().any(|place| place.instance == watched.instance));
    for place in places {
        let Some(context) = place.context.upgrade() else { continue };
        let (run, owner, instance) = (context.activity.now(), context.lock_owner(), place.instance);
        let new = Watched { instance, run, owner, since: moment(), reported: false };
        let Some(old) = watched.iter_mut().find(|watched| watched.instance == instance) else {
            watched.push(new);
            continue;
        };
        if old.run != run || old.owner != owner {
            *old = new;
        } else if run.is_some() && !old.reported && !stall.is_zero() && since(old.since) >= stall {
            old.reported = true;
            due = true;
        }
    }
    due
}

/// What is reported of all contexts of this process.
#[derive(Default)]
struct Summary {
    task: Option<Task>,
    /// What the task does, each a clause that follows its name.
    clauses: Vec<String>,
    /// The tasks that it waits for.
    awaited: BTreeSet<Task>,
    /// Of each instance: how many collective operations were entered, and whether one is under way.
    collectives: Vec<(usize, u32, bool)>,
    lines: Vec<String>,
    /// No thread of the library serves messages while the program computes.
    deaf: bool,
}

impl Summary {
    fn of(places: &[Place], watched: &[Watched]) -> Self {
        let mut summary = Self::default();
        for place in places {
            let Some(context) = place.context.upgrade() else { continue };
            if places.len() > 1 {
                summary.lines.push(format!("instance {}:", place.instance + 1));
            }
            let watched = watched.iter().find(|watched| watched.instance == place.instance);
            summary.context(&context, place.instance, watched);
            let (queued, running) = context.completions.busy();
            let handlers = Handlers { queued, running };
            summary.clauses.extend(handlers.clauses());
            summary.lines.extend(handlers.lines());
        }
        if summary.clauses.is_empty() {
            let deaf = if summary.deaf { ", and INTERRUPT_SET is off" } else { "" };
            summary.clauses.push(format!("is not inside LAPI{deaf}"));
        }
        summary.lines.extend(processes::threads());
        summary
    }

    fn context(&mut self, context: &Context, instance: usize, watched: Option<&Watched>) {
        if context.handle() == LAPI_VOID_HANDLE {
            self.clauses.push("is in LAPI_Init, or leaves LAPI_Term".into());
            return;
        }
        self.deaf |= !context.settings.interrupts.load(Ordering::Relaxed);
        match context.enter_within(MOMENT) {
            Ok(Some(mut held)) => {
                let snapshot = snapshot(&mut held);
                note_reported(&mut held);
                drop(held);
                self.task = Some(snapshot.me);
                self.clauses.extend(snapshot.clauses());
                if snapshot.clauses().is_empty() && polls_again(context, snapshot.polls) {
                    self.clauses.push("calls LAPI again and again, without waiting there".into());
                }
                self.awaited.extend(snapshot.awaited());
                let (entered, current) = &snapshot.collective;
                self.collectives.push((instance, *entered, current.is_some()));
                self.lines.extend(snapshot.lines());
            }
            Ok(None) => {}
            Err(owner) => {
                let run = context.activity.now();
                let since = watched.filter(|watched| watched.run == run && watched.owner == owner);
                let at_least = since.map_or(Duration::ZERO, |watched| self::since(watched.since));
                let by_program = context.lock_is_programs();
                let locked = Locked { owner, run, by_program, at_least };
                self.clauses.push(locked.clause());
                self.lines.push(locked.line());
            }
        }
    }

    /// As the launcher reads it: what its summary needs, then the text.
    fn message(&self, cause: &launcher::Cause) -> FromTask {
        let collectives = self.collectives.iter().map(|&(instance, entered, inside)| Collective {
            instance,
            entered,
            inside,
        });
        FromTask::Report(Report {
            cause: cause.clone(),
            pid: std::process::id() as i32,
            clauses: self.clauses.clone(),
            awaited: self.awaited.iter().map(|task| *task as usize).collect(),
            collectives: collectives.collect(),
            text: self.lines.join("\n"),
        })
    }
}

/// Whether the program has looked for messages by itself since it had done so `polls` times.
fn polls_again(context: &Context, polls: u64) -> bool {
    std::thread::sleep(SECOND_LOOK);
    context.enter_within(MOMENT).is_ok_and(|held| held.is_some_and(|mut held| held.polls() != polls))
}

/// Without a launcher that would gather it, the report goes to standard error: in one piece, each line with the task's number.
fn print(summary: &Summary, cause: &launcher::Cause) {
    let task = summary
        .task
        .map_or_else(|| std::env::var("MP_CHILD").unwrap_or_else(|_| "?".into()), |task| task.to_string());
    let because = match cause {
        launcher::Cause::Stall => format!("no progress for {} s", bell::stall().as_secs()),
        _ => "requested".to_owned(),
    };
    let pid = std::process::id();
    let mut text = format!("LAPI: task {task}: report of process {pid} ({because})\n");
    for clause in &summary.clauses {
        let _ = writeln!(text, "LAPI: task {task}: it {clause}");
    }
    for line in &summary.lines {
        let _ = writeln!(text, "LAPI: task {task}: {line}");
    }
    // Not by the standard library's buffered streams: their lock could be held for ever in a child of a fork.
    let mut left = text.as_bytes();
    while let Ok(written @ 1..) = rustix::io::write(std::io::stderr().as_fd(), left) {
        left = &left[written..];
    }
}

mod processes {
    //! What `/proc` says of this process.

    /// How many threads are listed.
    const LISTED: usize = 32;

    /// The threads of this process, as lines.
    pub(crate) fn threads() -> Vec<String> {
        let own = rustix::thread::gettid().as_raw_pid();
        let Ok(entries) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
        let mut numbers: Vec<i32> =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        numbers.retain(|number| *number != own);
        numbers.sort_unstable();
        let mut lines = vec![format!("threads of the process: {}", numbers.len())];
        lines.extend(numbers.iter().take(LISTED).map(|number| {
            let read = |what: &str| {
                std::fs::read_to_string(format!("/proc/self/task/{number}/{what}")).unwrap_or_default()
            };
            let stat = read("stat");
            // The name may hold anything and ends at the last bracket.
            let state =
                stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).unwrap_or("?");
            format!("  {number} {}: state {state}", read("comm").trim())
        }));
        if numbers.len() > LISTED {
            lines.push(format!("  and {} more", numbers.len() - LISTED));
        }
        lines
    }
}
