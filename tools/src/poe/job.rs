//! One job from its start to its end: what `poe` itself does while the tasks run.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::waitpid;

use super::affinity;
use super::commands::Command;
use super::environment::Environment;
use super::error::{Error, say};
use super::input;
use super::keeper::{Keeper, Note, Work};
use super::output::{self, Source, Style};
use super::processes::end_descendants;
use super::reports::{self, Gatherer};
use super::settings::Settings;
use super::streams;

/// How long tasks that were told to end may take before they are killed.
const GRACE: Duration = Duration::from_secs(5);

/// A signal that comes again so soon is the same one, sent to the process and to its group.
const ONE_SIGNAL: Duration = Duration::from_millis(500);

/// How a job ended.
pub(super) struct End {
    pub status: u8,
    /// It was ended before its tasks were done: by a task's death or by the user.
    pub early: bool,
}

/// The signals that `poe` takes in its own time instead of being interrupted.
pub(super) struct Signals {
    queue: SignalFd,
    /// The mask that the tasks get back.
    before: SigSet,
}

impl Signals {
    /// Begins to queue all signals that mean something to a job. What `poe` was started to ignore stays ignored.
    pub(super) fn take() -> Result<Self, Error> {
        let failed = |errno: Errno| Error::system("signals", errno);
        let ignored = ignored_signals();
        let meant = [
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGQUIT,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
            Signal::SIGTSTP,
            Signal::SIGCONT,
        ];
        let taken: SigSet =
            meant.into_iter().filter(|signal| ignored >> (*signal as u32 - 1) & 1 == 0).collect();
        let before = SigSet::thread_get_mask().map_err(failed)?;
        taken.thread_block().map_err(failed)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let queue = SignalFd::with_flags(&taken, flags).map_err(failed)?;
        Ok(Self { queue, before })
    }

    fn next(&self) -> Option<Signal> {
        let info = self.queue.read_signal().ok()??;
        Signal::try_from(info.ssi_signo as i32).ok()
    }
}

/// The signals that this process ignores, bit N - 1 for signal N.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

/// Runs one job: a task for each command.
pub(super) fn run(
    settings: &Settings,
    commands: &[Command],
    stdin_is_spent: bool,
    signals: &Signals,
) -> Result<End, Error> {
    let tasks = commands.len();
    let ordered = settings.text("MP_STDOUTMODE")?.is_some_and(|mode| mode.eq_ignore_ascii_case("ordered"));
    let style = Style { labels: settings.yes("MP_LABELIO")?, ordered };
    let environment = Environment::new(settings, tasks)?;
    let shared = settings.text("MP_CPU_USE")?.is_some_and(|cpu_use| cpu_use.eq_ignore_ascii_case("multiple"));
    let asked = settings.parsed("MP_TASK_AFFINITY")?;
    let info_level = settings.info_level()?;
    let affinity = affinity::sets(asked, shared, info_level > 0, tasks);
    let open_files =
        allow_open_files(tasks).map_err(|errno| Error::system("the limit of open files", errno))?;
    // Should the keeper die, what it kept becomes ours.
    prctl::set_child_subreaper(true).map_err(|errno| Error::system("becoming the subreaper", errno))?;
    let (ours, streams) = streams::open(settings, tasks, stdin_is_spent)?;
    let (sockets, reports) = reports::open(tasks);
    let work =
        Work { commands, environment, streams, reports, affinity, signal_mask: signals.before, open_files };
    let (keeper, ours) = Keeper::start(work, ours)?;
    let reports = Gatherer::start(sockets);
    let output = Carrier::start(ours.sources, style)?;
    if !ours.inputs.is_empty() {
        input::copy_to_all(ours.inputs);
    }
    let on_death = settings.text("MP_ON_DEATH")?;
    let survive = on_death.is_some_and(|what| what.eq_ignore_ascii_case("continue"));
    let pids = vec![0; tasks];
    let job =
        Job { commands, info_level, survive, keeper, reports, pids, status: 0, ending: None, failure: None };
    job.watch(signals, output)
}

/// Makes room for the pipes of all tasks, and answers the limit as it was.
fn allow_open_files(tasks: usize) -> nix::Result<(rlim_t, rlim_t)> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    // At the most three pipes and a socket a task, both ends while the keeper starts, and what is open anyway.
    let needed = (8 * tasks as rlim_t + 64).min(hard);
    if needed > soft {
        setrlimit(Resource::RLIMIT_NOFILE, needed, hard)?;
    }
    Ok((soft, hard))
}

/// The thread that carries output, and a descriptor that tells its end.
struct Carrier {
    thread: JoinHandle<io::Result<()>>,
    over: OwnedFd,
}

impl Carrier {
    fn start(sources: Vec<Source>, style: Style) -> Result<Self, Error> {
        let own = |fd: io::Result<OwnedFd>| {
            fd.map(File::from).map_err(|error| Error::system("poe's output", error))
        };
        let stdout = own(io::stdout().as_fd().try_clone_to_owned())?;
        let stderr = own(io::stderr().as_fd().try_clone_to_owned())?;
        let (over, running) = streams::pipe()?;
        let thread = thread::spawn(move || {
            let _running = running;
            output::carry(sources, style, stdout, stderr)
        });
        Ok(Self { thread, over })
    }
}

struct Job<'a> {
    commands: &'a [Command],
    info_level: u8,
    /// The death of a task does not end the others.
    survive: bool,
    keeper: Keeper,
    reports: Gatherer,
    /// 0: not started.
    pids: Vec<i32>,
    /// The highest so far; what tasks say that are being ended does not count.
    status: u8,
    ending: Option<Ending>,
    failure: Option<Error>,
}

/// The job is being ended.
struct Ending {
    since: Instant,
    /// When what is left is killed; `None`: that is done.
    kill_at: Option<Instant>,
}

impl Job<'_> {
    /// Looks after the job until its tasks and its output have ended.
    fn watch(mut self, signals: &Signals, output: Carrier) -> Result<End, Error> {
        let (mut kept, mut carried) = (true, false);
        while kept || !carried {
            let wanted = |wanted| if wanted { PollFlags::POLLIN } else { PollFlags::empty() };
            let mut polled = [
                PollFd::new(signals.queue.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.keeper.socket.as_fd(), wanted(kept)),
                PollFd::new(output.over.as_fd(), wanted(!carried)),
            ];
            // A closed descriptor is ready whatever is asked of it.
            let last = if carried { 2 } else { 3 };
            let polled = if kept { &mut polled[..last] } else { &mut polled };
            match poll(polled, self.patience()) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(Error::system("waiting for the tasks", errno)),
            }
            let ready: Vec<bool> = polled.iter().map(|polled| polled.any() == Some(true)).collect();
            while let Some(signal) = signals.next() {
                if !kept && signal != Signal::SIGCONT {
                    // The tasks are over and somebody does not read what they wrote: no reason to stay.
                    return Ok(End { status: 128 + signal as u8, early: true });
                }
                self.pass_on(signal);
            }
            if kept && ready[1] {
                kept = self.listen();
            }
            carried |= ready.get(2) == Some(&true);
            self.lose_patience();
        }
        let written = output.thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread has failed")));
        match (self.failure, written) {
            (Some(failure), _) => Err(failure),
            (None, Err(error)) => {
                say(&format!("output of the tasks was lost: {error}"));
                Ok(End { status: self.status.max(1), early: true })
            }
            (None, Ok(())) => Ok(End { status: self.status, early: self.ending.is_some() }),
        }
    }

    /// Takes in one note of the keeper; `false` when it was the last.
    fn listen(&mut self) -> bool {
        match Note::read(&mut self.keeper.socket) {
            Ok(Note::Started { task, pid }) => {
                self.pids[task] = pid;
                self.reports.started(task, pid);
                self.tell(2, || format!("task {task} ({}) has started, pid {pid}", self.program(task)));
            }
            Ok(Note::NotStarted { task, errno }) => {
                let program = self.program(task);
                self.failure = Some(Error::Program {
                    source: io::Error::from_raw_os_error(errno),
                    program: hint(&program).unwrap_or(program),
                });
            }
            Ok(Note::Randomized { errno }) => self.tell(1, || {
                let why = Errno::from_raw(errno).desc();
                format!("attention: the system does not let tasks have the same addresses: {why}")
            }),
            Ok(Note::Exited { task, status }) => self.exited(task, status),
            Ok(Note::Killed { task, signal }) => self.killed(task, signal),
            Ok(Note::Done) => {
                let _ = waitpid(self.keeper.pid, None);
                return false;
            }
            Ok(Note::Signal { .. }) => {}
            Err(_) => {
                // Killed by somebody: the kernel has ended its tasks, and what they left is now below us.
                end_descendants();
                say(&format!(
                    "the keeper of the tasks (pid {}) was ended by somebody: so is the job",
                    self.keeper.pid
                ));
                self.status = 128 + Signal::SIGKILL as u8;
                self.kill();
                return false;
            }
        }
        true
    }

    fn exited(&mut self, task: usize, status: i32) {
        self.reports.ended(task);
        let level = if status == 0 || self.ending.is_some() { 2 } else { 1 };
        self.tell(level, || format!("{} exited with status {status}", self.name(task)));
        if self.ending.is_none() {
            self.status = self.status.max(status as u8);
            if status >= 128 {
                self.died();
            }
        }
    }

    fn killed(&mut self, task: usize, signal: i32) {
        self.reports.ended(task);
        let level = if self.ending.is_some() { 2 } else { 0 };
        self.tell(level, || {
            format!("{} was ended by signal {signal} ({})", self.name(task), signal_name(signal))
        });
        if self.ending.is_none() {
            self.status = self.status.max(128 + signal as u8);
            self.died();
        }
    }

    /// A task has died: the others end too, unless they are to go on.
    fn died(&mut self) {
        if !self.survive {
            self.end(Signal::SIGTERM);
        }
    }

    /// Passes a signal of the user on to the tasks. Those that end a process end the job.
    fn pass_on(&mut self, signal: Signal) {
        match signal {
            Signal::SIGTSTP => {
                self.keeper.signal(Signal::SIGSTOP);
                let _ = raise(Signal::SIGSTOP);
            }
            Signal::SIGUSR1 | Signal::SIGUSR2 | Signal::SIGCONT => {
                if reports::signal() == Some(signal) {
                    self.reports.ask();
                }
                self.keeper.signal(signal);
            }
            _ => match &self.ending {
                Some(ending) if ending.since.elapsed() < ONE_SIGNAL => {}
                // Whoever asks twice does not want to wait.
                Some(_) => self.kill(),
                None => {
                    self.tell(1, || {
                        format!("ended by signal {} ({signal}): so are the tasks", signal as i32)
                    });
                    self.status = 128 + signal as u8;
                    self.end(signal);
                }
            },
        }
    }

    /// Begins to end the job.
    fn end(&mut self, signal: Signal) {
        self.keeper.signal(signal);
        // One that is stopped must go on to end.
        self.keeper.signal(Signal::SIGCONT);
        let since = Instant::now();
        self.ending = Some(Ending { since, kill_at: Some(since + GRACE) });
    }

    fn kill(&mut self) {
        self.keeper.signal(Signal::SIGKILL);
        self.ending = Some(Ending { since: Instant::now(), kill_at: None });
    }

    fn patience(&self) -> PollTimeout {
        let left = self
            .ending
            .as_ref()
            .and_then(|ending| ending.kill_at)
            .map(|at| at.saturating_duration_since(Instant::now()));
        // Rounded up: a sleep that is too short would be one of many.
        left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        })
    }

    fn lose_patience(&mut self) {
        let late =
            self.ending.as_ref().and_then(|ending| ending.kill_at).is_some_and(|at| at <= Instant::now());
        if late {
            let seconds = GRACE.as_secs();
            self.tell(1, || format!("some tasks did not end within {seconds} seconds: they are killed"));
            self.kill();
        }
    }

    fn tell(&self, level: u8, message: impl FnOnce() -> String) {
        if self.info_level >= level {
            say(&message());
        }
    }

    fn program(&self, task: usize) -> String {
        self.commands[task][0].to_string_lossy().into_owned()
    }

    fn name(&self, task: usize) -> String {
        format!("task {task} ({}, pid {})", self.program(task), self.pids[task])
    }
}

/// What to say of a program that is not on the PATH and lies in this folder.
fn hint(program: &str) -> Option<String> {
    (!program.contains('/') && Path::new(program).exists())
        .then(|| format!("{program} (is ./{program} meant? This folder is not on the PATH)"))
}

fn signal_name(signal: i32) -> String {
    match Signal::try_from(signal) {
        Ok(signal) => signal.as_str().to_owned(),
        Err(_) => format!("SIGRTMIN+{}", signal - nix::libc::SIGRTMIN()),
    }
}
