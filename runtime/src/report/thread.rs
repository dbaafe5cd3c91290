//! The thread that reports what this process waits for: when the bell rings (see
//! [`crate::report::bell`]), or when the launcher asks over its socket. It belongs to the process,
//! from the first LAPI_Init to the last LAPI_Term, and knows its open contexts.
//!
//! A child of fork has no such thread, and forgets all of it; the memory of the parent's state
//! stays allocated, unchanged.

use crate::once::Once;
use crate::report::bell::{self, Bell, Cause};
use crate::report::look::{OpenContext, look};
use crate::report::message::{Summary, print};
use openlapi::base::known_threads::note_thread;
use openlapi::base::poll::await_readable;
use openlapi::base::sync::Mutex;
use openlapi::base::thread::{self, Thread, ThreadConfig};
use openlapi::engine::context::Context;
use openlapi::job::Link;
use openlapi::job::ended::Ends;
use openlapi::job::reporter::LauncherSocket;
use openlapi::transport::Task;
use openlapi::wire::launcher::{self, FromLauncher, FromTask};
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often it checks for handlers that do not return, at least and at most, where it checks at
/// all. In a job of several hundred tasks it checks up to four times as seldom.
const LOOK: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));
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

#[derive(Default)]
struct State {
    places: Vec<OpenContext>,
    thread: Option<(Arc<Reporter>, Thread)>,
    /// The socket to the launcher, from the first LAPI_Init to the last LAPI_Term.
    socket: Option<Arc<LauncherSocket>>,
}

/// Not made in a child of fork, whose parent may have held the lock.
static STATE: Once<Mutex<State>> = Once::new();

fn state() -> &'static Mutex<State> {
    STATE.get(Mutex::default)
}

/// This process is a child of one that uses LAPI: the launcher's socket is its parent's.
static CHILD: AtomicBool = AtomicBool::new(false);

/// In the child of a fork.
pub fn forget_in_child() {
    CHILD.store(true, Ordering::Relaxed);
    STATE.forget();
    bell::forget();
}

/// A context of `task` of `tasks` is being opened: it is reported from now on. The first one starts
/// the thread, informs the launcher, with its settings. A process in which the thread cannot be
/// started works without reports.
pub fn enlist(
    context: &Arc<Context>,
    instance: usize,
    (task, tasks): (Task, u32),
    config: ReportConfig,
    thread_config: ThreadConfig,
    link: &Link,
) {
    note_thread();
    let mut state = state().lock();
    state.places.push(OpenContext { instance, context: Arc::downgrade(context) });
    if state.thread.is_some() {
        return;
    }
    let Ok(bell) = Bell::open() else { return };
    bell::set_stall(config.stall);
    let reporter = Arc::new(Reporter { bell, ended: AtomicBool::new(false) });
    let socket =
        if CHILD.load(Ordering::Relaxed) { None } else { LauncherSocket::from_env(link.env()).map(Arc::new) };
    if let Some(socket) = &socket {
        socket.send(&FromTask::Enter { pid: std::process::id() as i32, task, tasks });
    }
    state.socket.clone_from(&socket);
    let (shared, ends) = (reporter.clone(), link.ends().clone());
    if let Ok(thread) =
        thread::spawn("lapi-report", thread_config, move || run(&shared, socket, tasks, &ends))
    {
        state.thread = Some((reporter, thread));
        if let Some(signal) = config.signal {
            bell::install_handler(signal);
        }
    }
}

/// Does this with each open context, from the handler of a signal: nothing is done when another
/// call has the lock.
pub(super) fn with_contexts(mut does: impl FnMut(&Context)) {
    let Some(state) = STATE.made().and_then(Mutex::try_lock) else { return };
    for place in &state.places {
        if let Some(context) = place.context.upgrade() {
            does(&context);
            // It may be the last one, and a handler must not free memory.
            std::mem::forget(context);
        }
    }
}

/// A LAPI_Init has succeeded: the launcher learns of it.
pub fn ready() {
    let socket = state().lock().socket.clone();
    if let Some(socket) = socket {
        socket.send(&FromTask::Ready { pid: std::process::id() as i32 });
    }
}

/// A context is closed, or about to be. With the last one the thread ends; when `wait`, the call
/// returns after that. The signal's handler stays, and does nothing from then on: the launcher may
/// send the signal to a task that has just ended LAPI.
pub fn dismiss(context: &Context, wait: bool) {
    let mut state = state().lock();
    state
        .places
        .retain(|place| place.context.upgrade().is_some_and(|other| !ptr::eq(Arc::as_ptr(&other), context)));
    if !state.places.is_empty() {
        return;
    }
    if let Some(socket) = state.socket.take() {
        socket.send(&FromTask::Leave { pid: std::process::id() as i32 });
    }
    let Some((reporter, thread)) = state.thread.take() else { return };
    reporter.ended.store(true, Ordering::Release);
    bell::ring(Cause::Orders);
    drop(state);
    if wait {
        thread.join_within(END);
    } else {
        thread.detach();
    }
}

struct Reporter {
    bell: Bell,
    ended: AtomicBool,
}

fn run(reporter: &Reporter, mut socket: Option<Arc<LauncherSocket>>, tasks: u32, ends: &Ends) {
    let stall = bell::stall();
    let timeout = (!stall.is_zero()).then(|| (stall / 4).clamp(LOOK.0, LOOK.1 * (tasks / 64).clamp(1, 4)));
    let mut watched = Vec::new();
    while !reporter.ended.load(Ordering::Acquire) {
        // Without the bell it could not be asked to end.
        let Some(bell) = reporter.bell.fd() else { return };
        let requests = socket.as_ref().and_then(|socket| socket.fd());
        let polled: Vec<BorrowedFd<'_>> = [Some(bell), requests].into_iter().flatten().collect();
        await_readable(&polled, timeout);
        if requests.is_none() {
            socket = None;
        }
        let causes = reporter.bell.take_causes();
        let (mut asked, mut looked) = (None, None);
        while let Some(message) = socket.as_ref().and_then(|socket| socket.receive()) {
            match message {
                FromLauncher::Ask(number) => asked = Some(number),
                FromLauncher::Look(number) => looked = Some(number),
                FromLauncher::Ended(among, tasks) => ends.store(among, &tasks),
            }
        }
        if reporter.ended.load(Ordering::Acquire) {
            return;
        }
        let places = state().lock().places.clone();
        let stuck = look(&places, &mut watched, stall);
        if let (Some(number), Some(socket)) = (looked, &socket) {
            socket.send(&Summary::of(&places, &watched, true).message(&launcher::Cause::Looked(number)));
        }
        // One report is enough for all that have asked.
        let cause = match asked {
            Some(number) => launcher::Cause::Asked(number),
            None if causes.contains(&Cause::Signal) => launcher::Cause::Signal,
            None if causes.contains(&Cause::Stall) || stuck => launcher::Cause::Stall,
            None => continue,
        };
        let summary = Summary::of(&places, &watched, false);
        watched.iter_mut().for_each(|watched| watched.reported |= watched.run.is_some());
        if !socket.as_ref().is_some_and(|socket| socket.send(&summary.message(&cause))) {
            print(&summary, &cause);
        }
    }
}
