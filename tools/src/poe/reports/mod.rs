//! Gathers what the tasks say when somebody wants to know why a job hangs, and prints it as one report.
//!
//! Each task has a socket to `poe` (LAPI_REPORT_FD). A task whose calls have stalled, or that has got the signal, hands in its
//! report unasked; then all others are asked. Nothing but these sockets is used for that: a task that is no LAPI program does
//! not notice. Whoever has not answered after [`PATIENCE`] is reported as its process stands.

mod answer;
mod text;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::stat::fstat;

use answer::{Answer, Cause};

/// How long tasks may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// What a signal brings so soon after a report belongs to it.
const QUIET: Duration = Duration::from_secs(2);
/// The lowest number of a task's socket.
const FIRST_PLACE: RawFd = 100;
/// The longest message of a task, in bytes.
const LONGEST: usize = 64 << 10;

/// Makes the sockets, `poe`'s ends and the tasks'. Without one of them a job runs as well: its task reports on standard error.
pub(super) fn open(tasks: usize) -> (Vec<Option<UnixDatagram>>, Vec<Option<UnixDatagram>>) {
    (0..tasks).map(|_| UnixDatagram::pair().ok().unzip()).unzip()
}

/// Keeps a number free for the socket of every task: the same in all of them, and none that programs use for themselves.
pub(super) fn place(sockets: &[Option<UnixDatagram>]) -> Option<OwnedFd> {
    let number = fcntl(sockets.iter().flatten().next()?, FcntlArg::F_DUPFD_CLOEXEC(FIRST_PLACE)).ok()?;
    // SAFETY: just made, and known to nobody else.
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
    /// At that place, or where it is.
    pub(super) fn new(socket: &UnixDatagram, place: Option<&OwnedFd>) -> Option<Self> {
        let from = socket.as_raw_fd();
        let to = place.map_or(from, AsRawFd::as_raw_fd);
        Some(Self { value: format!("{to}:{}", fstat(socket).ok()?.st_ino), from, to })
    }

    /// In the child, just before it becomes the task's program: it inherits the socket. Only makes a system call.
    pub(super) fn pass(&self) {
        // SAFETY: changes descriptors of this process alone, which is about to become another program.
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
    let asked = std::env::var("LAPI_REPORT_SIGNAL").unwrap_or_default().trim().to_ascii_uppercase();
    let asked = if asked.is_empty() { "USR2" } else { asked.strip_prefix("SIG").unwrap_or(&asked) };
    [("USR1", Signal::SIGUSR1), ("USR2", Signal::SIGUSR2)]
        .into_iter()
        .find(|(name, signal)| *name == asked || (*signal as i32).to_string() == asked)
        .map(|(_, signal)| signal)
}

/// The thread that gathers, as the rest of `poe` sees it. It ends when this is dropped.
pub(super) struct Gatherer {
    /// A word of `ASK` or `END`.
    orders: Option<UnixDatagram>,
    /// 0: not started, or ended.
    pids: Arc<[AtomicI32]>,
    thread: Option<JoinHandle<()>>,
}

const ASK: &[u8] = b"ask";
const END: &[u8] = b"end";

impl Gatherer {
    /// Starts it. Without descriptors for it there are no reports of the job.
    pub(super) fn start(sockets: Vec<Option<UnixDatagram>>) -> Self {
        let pids: Arc<[AtomicI32]> = sockets.iter().map(|_| AtomicI32::new(0)).collect();
        let (orders, heard) = UnixDatagram::pair().ok().unzip();
        let thread = heard.map(|heard| {
            let pids = pids.clone();
            thread::spawn(move || Gathering::new(sockets, pids).run(&heard))
        });
        Self { orders, pids, thread }
    }

    pub(super) fn started(&self, task: usize, pid: i32) {
        self.pids[task].store(pid, Ordering::Relaxed);
    }

    pub(super) fn ended(&self, task: usize) {
        self.pids[task].store(0, Ordering::Relaxed);
    }

    /// Has a report made.
    pub(super) fn ask(&self) {
        self.order(ASK);
    }

    fn order(&self, order: &[u8]) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
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
    answers: BTreeMap<usize, Answer>,
}

struct Gathering {
    sockets: Vec<Option<UnixDatagram>>,
    pids: Arc<[AtomicI32]>,
    /// How many reports there were.
    number: u64,
    current: Option<Current>,
    quiet_until: Instant,
}

impl Gathering {
    fn new(sockets: Vec<Option<UnixDatagram>>, pids: Arc<[AtomicI32]>) -> Self {
        for socket in sockets.iter().flatten() {
            let _ = socket.set_nonblocking(true);
        }
        Self { sockets, pids, number: 0, current: None, quiet_until: Instant::now() }
    }

    fn run(mut self, orders: &UnixDatagram) {
        loop {
            let mut polled = vec![PollFd::new(orders.as_fd(), PollFlags::POLLIN)];
            polled.extend(
                self.sockets.iter().flatten().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)),
            );
            match poll(&mut polled, self.time_left()) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return,
            }
            let ordered = polled[0].any() == Some(true);
            self.take_answers();
            if ordered {
                let mut order = [0; 8];
                match orders.recv(&mut order).map(|count| &order[..count] == ASK) {
                    Ok(true) => self.begin(Cause::Asked(0)),
                    _ if self.current.as_ref().is_some_and(|current| !current.answers.is_empty()) => {
                        return self.finish();
                    }
                    // The tasks are over: there is nothing to be told of any.
                    _ => return,
                }
            }
            if self
                .current
                .as_ref()
                .is_some_and(|current| current.until <= Instant::now() || self.complete(current))
            {
                self.finish();
            }
        }
    }

    fn time_left(&self) -> PollTimeout {
        let Some(current) = &self.current else { return PollTimeout::NONE };
        let left = current.until.saturating_duration_since(Instant::now());
        // Rounded up: a sleep that is too short would be one of many.
        PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
    }

    fn take_answers(&mut self) {
        let mut buffer = vec![0; LONGEST + 1];
        for task in 0..self.sockets.len() {
            // A task sends a message or two; one that never ends must not keep us here.
            for _ in 0..8 {
                let Some(Ok(count)) = self.sockets[task].as_ref().map(|socket| socket.recv(&mut buffer))
                else {
                    break;
                };
                if let Some(answer) = Answer::parse(&String::from_utf8_lossy(&buffer[..count])) {
                    self.take(task, answer);
                }
            }
        }
    }

    fn take(&mut self, task: usize, answer: Answer) {
        match (&answer.cause, &mut self.current) {
            // To a question of which nobody wants to know any more.
            (Cause::Asked(number), Some(current)) if *number != current.number => {}
            (Cause::Asked(_), None) => {}
            (_, Some(current)) => {
                current.answers.entry(task).or_insert(answer);
            }
            // The signal that belonged to the report just made.
            (Cause::Signal, None) if Instant::now() < self.quiet_until => {}
            (cause, None) => {
                self.begin(cause.clone());
                self.take(task, answer);
            }
        }
    }

    /// Begins a report, unless one is being made already: asks all tasks.
    fn begin(&mut self, cause: Cause) {
        if self.current.is_some() {
            return;
        }
        self.number += 1;
        let question = format!("LAPI-REPORT 1 ask {}", self.number);
        for socket in self.sockets.iter().flatten() {
            // Full of questions that nobody reads: no LAPI program.
            let _ = socket.send(question.as_bytes());
        }
        let until = Instant::now() + PATIENCE;
        self.current = Some(Current { number: self.number, cause, until, answers: BTreeMap::new() });
    }

    /// Whether every task that runs has answered.
    fn complete(&self, current: &Current) -> bool {
        (0..)
            .zip(self.pids.iter())
            .all(|(task, pid)| pid.load(Ordering::Relaxed) == 0 || current.answers.contains_key(&task))
    }

    fn finish(&mut self) {
        let Some(mut current) = self.current.take() else { return };
        let tasks: Vec<text::Task> = (0..)
            .zip(self.pids.iter())
            .map(|(number, pid)| {
                let pid = pid.load(Ordering::Relaxed);
                let answer = current.answers.remove(&number);
                let process = answer.as_ref().map_or(pid, |answer| answer.pid);
                text::Task { number, pid, answer, state: text::state_of(process) }
            })
            .collect();
        let _ = io::stderr().write_all(text::report(&current.cause, &tasks).as_bytes());
        self.quiet_until = Instant::now() + QUIET;
    }
}
