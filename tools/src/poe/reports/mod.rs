//! Gathers the reports of the tasks when a job hangs, and prints them as one. Informs the tasks
//! which others have ended.
//!
//! Each task on this machine has a socket to `poe` (LAPI_REPORT_FD; `openlapi::wire::launcher` has
//! the messages). A task whose calls have stalled, or that has received the signal, sends its
//! report unasked; then all others are asked. Nothing but these sockets is used for that: a task
//! that is not a LAPI program does not notice. A task that has not replied after [`TIMEOUT`] is
//! reported by the state of its process. Of a job on several machines nothing is gathered: those
//! who look on are served alone (`elsewhere`).

mod board;
mod elsewhere;
pub(crate) mod state;
mod text;
pub(crate) mod viewers;

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::Signal;
use nix::sys::stat::fstat;
use openlapi::base::patient;
use openlapi::wire::launcher::{Cause, FromLauncher, How, LOOKS, Report, Stage};
use openlapi_runtime::report::lines::with_lines;

use super::error::Error;
use board::Board;
pub(super) use elsewhere::Elsewhere;
use viewers::Viewers;

/// How long tasks may take to reply.
const TIMEOUT: Duration = Duration::from_secs(2);
/// A signal that arrives so soon after a report belongs to it.
const QUIET: Duration = Duration::from_secs(2);
/// How long the ends of tasks are collected before the others are informed: up to four times as
/// long in a job of many hundred tasks, each of which gets all of them.
const COLLECT: Duration = Duration::from_millis(100);
/// The number of tasks from which on it is longer.
const MANY_TASKS: u32 = 256;
/// The lowest number of a task's socket.
const FIRST_PLACE: RawFd = 100;

/// Makes the sockets, `poe`'s ends and the tasks'. A task without one reports on standard error.
pub(super) fn open(tasks: usize) -> (Vec<Option<UnixDatagram>>, Vec<Option<UnixDatagram>>) {
    (0..tasks).map(|_| UnixDatagram::pair().ok().unzip()).unzip()
}

/// Keeps a number free for the socket of every task: the same in all of them, and none that
/// programs use for themselves.
pub(super) fn place(sockets: &[Option<UnixDatagram>]) -> Option<OwnedFd> {
    let number = fcntl(sockets.iter().flatten().next()?, FcntlArg::F_DUPFD_CLOEXEC(FIRST_PLACE)).ok()?;
    // SAFETY: just made, and owned by nothing else.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A task's socket on its way to the task.
pub(super) struct HandOver {
    /// The value of the variable that names it.
    pub value: String,
    from: RawFd,
    to: RawFd,
}

impl HandOver {
    /// At that place, or where it is. `looks`: the task is only looked at.
    pub(super) fn new(socket: &UnixDatagram, place: Option<&OwnedFd>, looks: bool) -> Option<Self> {
        let from = socket.as_raw_fd();
        let to = place.map_or(from, AsRawFd::as_raw_fd);
        let inode = fstat(socket).ok()?.st_ino;
        let value = if looks { format!("{to}:{inode}:{LOOKS}") } else { format!("{to}:{inode}") };
        Some(Self { value, from, to })
    }

    /// In the child, just before it becomes the task's program: it inherits the socket. Only makes
    /// a system call.
    pub(super) fn pass(&self) {
        // SAFETY: changes descriptors of this process alone, which is about to become
        // another program.
        unsafe {
            if self.from == self.to {
                libc::fcntl(self.from, libc::F_SETFD, 0);
            } else {
                libc::dup2(self.from, self.to);
            }
        }
    }
}

/// The signal that asks for a report, when it is one that `poe` passes on.
pub(super) fn signal() -> Option<Signal> {
    let asked = openlapi_runtime::environment::process_env("LAPI_REPORT_SIGNAL")
        .unwrap_or_default()
        .trim()
        .to_ascii_uppercase();
    let asked = if asked.is_empty() { "USR2" } else { asked.strip_prefix("SIG").unwrap_or(&asked) };
    [("USR1", Signal::SIGUSR1), ("USR2", Signal::SIGUSR2)]
        .into_iter()
        .find(|(name, signal)| *name == asked || (*signal as i32).to_string() == asked)
        .map(|(_, signal)| signal)
}

/// The thread that gathers, as the rest of `poe` sees it. It ends when this is dropped.
pub(super) struct Gatherer {
    /// A word of `ASK`, `NEWS` or `END`.
    orders: UnixDatagram,
    board: Arc<Board>,
    thread: Option<JoinHandle<()>>,
}

/// The orders, as `watch` names them; a task's socket has the task's number.
const ORDERS: u64 = u64::MAX;
/// Those who look on.
const VIEWERS: u64 = u64::MAX - 1;
/// What passes on the replies of tasks on other machines.
const ELSEWHERE: u64 = u64::MAX - 2;

/// Watches the orders and the sockets of all tasks. A message costs what has arrived, not the
/// number of tasks.
fn watch(board: &Board, orders: &UnixDatagram) -> nix::Result<Epoll> {
    let watch = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    watch.add(orders, EpollEvent::new(EpollFlags::EPOLLIN, ORDERS))?;
    for (task, socket) in board.sockets() {
        watch.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, task as u64))?;
    }
    Ok(watch)
}

const ASK: &[u8] = b"ask";
const NEWS: &[u8] = b"news";
const END: &[u8] = b"end";

impl Gatherer {
    /// Starts it. `complete`: reports have the details of every task.
    pub(super) fn start(
        sockets: Vec<Option<UnixDatagram>>,
        elsewhere: Option<Elsewhere>,
        complete: bool,
    ) -> Result<Self, Error> {
        let failed = |error| Error::system("cannot start the thread that makes reports", error);
        let board = Arc::new(Board::new(sockets));
        let (orders, notices) = UnixDatagram::pair().map_err(failed)?;
        let watch = watch(&board, &notices).map_err(|errno| failed(errno.into()))?;
        if let Some(hub) = elsewhere.as_ref().and_then(Elsewhere::as_fd) {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, ELSEWHERE);
            watch.add(hub, event).map_err(|errno| failed(errno.into()))?;
        }
        let viewers = Viewers::open(elsewhere);
        if let Some(listener) = viewers.listener() {
            let _ = watch.add(listener, EpollEvent::new(EpollFlags::EPOLLIN, VIEWERS));
        }
        let shared = board.clone();
        let thread = thread::Builder::new()
            .name("poe-reports".into())
            .spawn(move || Gathering::new(&shared, complete, viewers).run(&watch, &notices))
            .map_err(failed)?;
        Ok(Self { orders, board, thread: Some(thread) })
    }

    pub(super) fn started(&self, task: usize, pid: i32) {
        self.board.started(task, pid);
    }

    /// A task has ended. Returns the state of its use of LAPI; `None` when no task of the job
    /// has used LAPI.
    pub(super) fn ended(&self, task: usize, how: How) -> Option<Stage> {
        let stage = self.board.ended(task, how);
        self.order(NEWS);
        stage
    }

    /// Has a report made.
    pub(super) fn ask(&self) {
        self.order(ASK);
    }

    fn order(&self, order: &[u8]) {
        let _ = self.orders.send(order);
    }
}

impl Drop for Gatherer {
    fn drop(&mut self) {
        self.order(END);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A report that is being made.
struct Current {
    number: u64,
    cause: Cause,
    until: Instant,
    reports: BTreeMap<usize, Report>,
}

struct Gathering<'a> {
    board: &'a Board,
    complete: bool,
    /// How many reports there were.
    number: u64,
    current: Option<Current>,
    quiet_until: Instant,
    /// When the tasks are informed which others have ended.
    inform_at: Option<Instant>,
    viewers: Viewers,
}

impl<'a> Gathering<'a> {
    fn new(board: &'a Board, complete: bool, viewers: Viewers) -> Self {
        let quiet_until = Instant::now();
        Self { board, complete, number: 0, current: None, quiet_until, inform_at: None, viewers }
    }

    fn run(mut self, watch: &Epoll, orders: &UnixDatagram) {
        let mut events = [EpollEvent::empty(); 64];
        loop {
            let ready = match watch.wait(&mut events, self.time_left()) {
                Ok(count) => &events[..count],
                Err(Errno::EINTR) => &[],
                Err(_) => return,
            };
            for event in ready.iter().filter(|event| event.data() < ELSEWHERE) {
                self.board.read(event.data() as usize);
            }
            while let Some((task, report)) = self.board.next_report() {
                self.take(task, report);
            }
            if ready.iter().any(|event| event.data() == ORDERS) {
                let mut order = [0; 8];
                match orders.recv(&mut order).map(|count| &order[..count]) {
                    Ok(ASK) => self.begin(Cause::Asked(0)),
                    Ok(NEWS) => {}
                    _ if self.current.as_ref().is_some_and(|current| !current.reports.is_empty()) => {
                        return self.finish();
                    }
                    // The tasks are over: nothing remains to be reported.
                    _ => return,
                }
            }
            if ready.iter().any(|event| event.data() == ELSEWHERE) {
                self.viewers.take_elsewhere();
            }
            if ready.iter().any(|event| event.data() == VIEWERS) {
                self.viewers.accept(self.board);
            }
            self.viewers.serve(self.board);
            self.inform();
            if self
                .current
                .as_ref()
                .is_some_and(|current| current.until <= Instant::now() || self.complete(current))
            {
                self.finish();
            }
        }
    }

    /// Informs the tasks which others have ended: a moment after the first of them, for many
    /// may end together.
    fn inform(&mut self) {
        if self.inform_at.is_some_and(|at| at <= Instant::now()) {
            self.board.publish();
            self.inform_at = None;
        }
        if self.inform_at.is_none() && self.board.has_news() {
            let times = (self.board.sockets().count() as u32 / MANY_TASKS).clamp(1, 4);
            self.inform_at = Some(Instant::now() + COLLECT * times);
        }
    }

    fn time_left(&self) -> EpollTimeout {
        let current = self.current.as_ref().map(|current| current.until);
        let until = [current, self.inform_at, self.viewers.until()].into_iter().flatten().min();
        let Some(until) = until else { return EpollTimeout::NONE };
        let left = until.saturating_duration_since(Instant::now());
        // Rounded up: a sleep that is too short would be one of many.
        EpollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(EpollTimeout::MAX)
    }

    fn take(&mut self, task: usize, report: Report) {
        match (&report.cause, &mut self.current) {
            (Cause::Looked(number), _) => self.viewers.take(*number, task, &report),
            // The reply to an earlier request.
            (Cause::Asked(number), Some(current)) if *number != current.number => {}
            (Cause::Asked(_), None) => {}
            (_, Some(current)) => {
                current.reports.entry(task).or_insert(report);
            }
            // The signal that belonged to the report just made.
            (Cause::Signal, None) if Instant::now() < self.quiet_until => {}
            (cause, None) => {
                self.begin(cause.clone());
                self.take(task, report);
            }
        }
    }

    /// Begins a report, unless one is being made already: asks all tasks.
    fn begin(&mut self, cause: Cause) {
        if self.current.is_some() {
            return;
        }
        self.number += 1;
        let question = FromLauncher::Ask(self.number).encode();
        for (_, socket) in self.board.sockets() {
            // Full of requests that are not read: not a LAPI program.
            let _ = socket.send(question.as_bytes());
        }
        let until = Instant::now() + TIMEOUT;
        self.current = Some(Current { number: self.number, cause, until, reports: BTreeMap::new() });
    }

    /// Whether every task that runs has replied.
    fn complete(&self, current: &Current) -> bool {
        (0..).zip(self.board.pids()).all(|(task, pid)| pid == 0 || current.reports.contains_key(&task))
    }

    fn finish(&mut self) {
        let Some(mut current) = self.current.take() else { return };
        let pids = self.board.pids();
        let tasks: Vec<text::Task> = (0..)
            .zip(pids.into_iter().zip(self.board.have_ended()))
            .map(|(number, (pid, ended))| {
                let report = current.reports.remove(&number);
                let process = report.as_ref().map_or(pid, |report| report.pid);
                let state = state::process(process).map(|(state, _)| state);
                text::Task { number, pid, ended, report, state }
            })
            .collect();
        let text = with_lines(&text::report(&current.cause, &tasks, self.complete));
        patient::say(text.as_bytes());
        self.quiet_until = Instant::now() + QUIET;
    }
}
