//! What `poe` does while the tasks of a job run, until they have ended.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::PollTimeout;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::waitpid;
use openlapi::base::ranges::tasks_named;
use openlapi::wire::launcher::{How, Stage};

use super::carrier::{Carried, Carrier};
use super::causes::{Causes, Effect};
use super::commands::Command;
use super::debugger::{self, Debugger};
use super::ends::{self, Ends, Exit};
use super::error::{Error, LATE, say, say_more};
use super::inherited::Inherited;
use super::memory_limit::MemoryLimit;
use super::notes::{LEFT_OPEN, Note};
use super::output::Lost;
use super::processes::end_descendants;
use super::reports::{self, Gatherer};
use super::signals::{LOOK, Signals};
use super::supervisor::Supervisor;
use super::time_limit::TimeLimit;
use super::waiting::await_any;

/// How long tasks may take to end before they are killed.
const GRACE: Duration = Duration::from_secs(5);

/// How long after the death of a task on other machines the end of an earlier one may be seen.
const ON_ITS_WAY: Duration = Duration::from_millis(300);

/// A signal that comes again so soon is the same one, sent to the process and to its group.
const ONE_SIGNAL: Duration = Duration::from_millis(500);

/// How a job ended.
pub(super) struct End {
    pub status: u8,
    /// The job was ended before its tasks were done: by a task's death or by the user.
    pub early: bool,
}

/// One job whose tasks run.
pub(super) struct Job<'a> {
    pub(super) commands: &'a [Command],
    /// Where relative paths of programs lead from; empty: the working directory of `poe`.
    pub(super) folder: PathBuf,
    /// The host of each task; `None`: all are here.
    pub(super) hosts: Option<&'a [String]>,
    pub(super) info_level: u8,
    pub(super) ends: Ends,
    /// The death of a task does not end the others.
    pub(super) survive: bool,
    pub(super) supervisor: Supervisor,
    pub(super) reports: Gatherer,
    /// 0: not started.
    pub(super) pids: Vec<i32>,
    /// The status, where it is not that of the tasks.
    pub(super) status: Option<u8>,
    /// The failures; those of tasks that are being ended do not count.
    pub(super) causes: Causes,
    /// When the job is ended because a task has died.
    pub(super) end_at: Option<Instant>,
    pub(super) ending: Option<Ending>,
    pub(super) limit: Option<TimeLimit>,
    /// Of this machine; `None` where the tasks are elsewhere, or the kernel counts no such ends.
    pub(super) memory: Option<MemoryLimit>,
    pub(super) debugger: Debugger,
    pub(super) failure: Option<Error>,
    /// Messages wait for room.
    pub(super) unsaid: bool,
}

/// The job is being ended.
pub(super) struct Ending {
    since: Instant,
    /// By this signal.
    signal: Signal,
    /// When what is left is killed; `None`: that is done.
    kill_at: Option<Instant>,
}

impl Job<'_> {
    /// Looks after the job until its tasks and its output have ended.
    pub(super) fn watch(mut self, signals: &Signals, mut output: Carrier) -> Result<End, Error> {
        let (mut kept, mut carried) = (true, false);
        while kept || !carried || self.debugger.runs() {
            // What has ended is not waited for.
            let sources = [
                Some(signals.as_fd()),
                kept.then(|| self.supervisor.socket.as_fd()),
                (!carried).then(|| output.as_fd()),
                self.debugger.as_fd(),
            ];
            let ready = await_any(sources, self.poll_timeout());
            let [_, noted, broken, debugged] =
                ready.map_err(|errno| Error::system("waiting for the tasks", errno))?;
            if kept {
                std::iter::from_fn(|| signals.next()).for_each(|signal| self.pass_on(signal));
            } else if let Some(signal) = signals.next_end() {
                // The tasks have ended, and what they wrote is not read yet.
                return Ok(End { status: 128 + signal as u8, early: true });
            }
            if noted {
                kept = self.take_note(signals.inherited());
                if !kept {
                    self.all_have_ended();
                }
            }
            if debugged {
                // It waits where the debugger could not attach.
                let held = self.debugger.ended();
                held.into_iter().for_each(|task| self.supervisor.signal_task(task, debugger::GOES_ON));
            }
            if broken {
                match output.broken() {
                    Some(task) => self.supervisor.signal_task(task, Signal::SIGPIPE),
                    None => carried = true,
                }
            }
            self.serve_deadlines();
        }
        self.ends.summarize();
        let written = output.finish();
        self.result(written)
    }

    /// How it has ended, of which the first cause is said.
    fn result(mut self, written: Result<Carried, Lost>) -> Result<End, Error> {
        let early = self.ending.is_some() || self.end_at.is_some();
        match (self.failure, written) {
            (Some(failure), _) => Err(failure),
            (None, Err(Lost)) => {
                let status = self.status.unwrap_or_else(|| self.causes.status_after_loss());
                Ok(End { status: status.max(1), early: true })
            }
            (None, Ok(Carried { errors, copy_lost })) => {
                if self.status.is_none() && self.info_level > 0 && self.commands.len() > 1 {
                    self.causes.say_first(&errors);
                }
                let status = self.status.unwrap_or_else(|| self.causes.status(&errors));
                Ok(End { status: status.max(u8::from(copy_lost)), early })
            }
        }
    }

    /// No process is left that a limit could end: the job goes on for its output alone.
    fn all_have_ended(&mut self) {
        self.limit = None;
        if self.end_at.take().is_some() && self.ending.is_none() {
            self.ending = Some(Ending { since: Instant::now(), signal: Signal::SIGTERM, kill_at: None });
        }
        if let Some(ending) = &mut self.ending {
            ending.kill_at = None;
        }
    }

    /// Takes in one note of the supervisor; `false` when it was the last.
    fn take_note(&mut self, inherited: Inherited) -> bool {
        match Note::read(&mut self.supervisor.socket) {
            Ok(Note::Started { task, pid }) => {
                self.pids[task] = pid;
                if let Err(error) = self.debugger.started(task, pid, inherited) {
                    self.failure = Some(error);
                    self.kill();
                }
                self.reports.started(task, pid);
                self.log(2, || {
                    let host = self.hosts.map(|hosts| format!(" on {}", hosts[task])).unwrap_or_default();
                    format!("task {task} ({}) has started, pid {pid}{host}", self.program(task))
                });
            }
            Ok(Note::NotStarted { task, errno }) => {
                let program = self.program(task);
                let is_folder =
                    Errno::from_raw(errno) == Errno::EACCES && self.folder.join(&program).is_dir();
                let errno = if is_folder { Errno::EISDIR as i32 } else { errno };
                self.failure = Some(Error::Program {
                    source: io::Error::from_raw_os_error(errno),
                    program: hint(&self.folder, &program).unwrap_or(program),
                });
            }
            Ok(Note::Randomized { errno }) => self.log(1, || {
                let why = Errno::from_raw(errno).desc();
                format!(
                    "warning: addresses differ between the tasks: the system does not allow otherwise ({why})"
                )
            }),
            Ok(Note::Exited { task, status }) => self.exited(task, status),
            Ok(Note::Killed { task, signal }) => self.killed(task, signal),
            Ok(Note::Lost { task }) => self.lost(task),
            Ok(Note::Done) => {
                let _ = waitpid(self.supervisor.pid, None);
                return false;
            }
            Ok(
                Note::Signal { .. }
                | Note::Offer { .. }
                | Note::SignalTask { .. }
                | Note::Changes { .. }
                | Note::Look { .. }
                | Note::Reply { .. },
            ) => {}
            Err(_) => {
                // The kernel has ended its tasks, and what they left is now below us.
                end_descendants();
                self.status = Some(128 + Signal::SIGKILL as u8);
                self.kill();
                say(&format!(
                    "the supervisor process (pid {}) was killed; ending all tasks",
                    self.supervisor.pid
                ));
                return false;
            }
        }
        true
    }

    fn exited(&mut self, task: usize, status: i32) {
        let left_open = status & LEFT_OPEN != 0;
        let status = status as u8;
        let stage = self.reports.ended(task, How::Exit(status)).or(left_open.then_some(Stage::Ready));
        let (name, program) = (self.name(task), self.program(task));
        self.pids[task] = 0;
        let mut exit = Exit { task, name, program, status, stage };
        let effect = Effect::of(status, stage, self.hosts.is_some());
        let ending = self.ending.is_some();
        if !ending {
            let never = effect == Effect::BeforeLapi && self.hosts.is_none();
            exit.stage = if never { Some(Stage::Never) } else { stage };
            self.causes.add(task, exit.whole(), status, effect);
            exit.stage = stage;
        }
        if !ending && status >= 128 {
            self.died();
        }
        self.ends.exited(exit, ending);
    }

    fn killed(&mut self, task: usize, signal: i32) {
        let used = self.reports.ended(task, How::Signal(signal as u8)).is_some();
        let by_itself = self.ending.as_ref().is_none_or(|ending| !ending.explains(signal));
        let mut text = ends::killed(&self.name(task), signal);
        if signal == Signal::SIGKILL as i32
            && by_itself
            && let Some(limit) = self.memory.as_mut().and_then(MemoryLimit::met)
        {
            text += &format!("; {limit}");
        }
        self.pids[task] = 0;
        if self.ending.is_none() {
            self.causes.add(task, text.clone(), 128 + signal as u8, Effect::TakesOthers);
            self.died();
        }
        self.ends.killed(&text, by_itself, used);
    }

    /// The connection to a task on another machine is lost, and the task has ended, or will.
    fn lost(&mut self, task: usize) {
        let name = self.name(task);
        self.reports.ended(task, How::Signal(Signal::SIGKILL as u8));
        self.pids[task] = 0;
        let text = format!("the connection to {name} is lost");
        // A launcher that ends the job breaks the connections.
        let level = if self.ending.is_some() { 2 } else { 0 };
        if self.ending.is_none() {
            self.causes.add(task, text.clone(), 128 + Signal::SIGKILL as u8, Effect::TakesOthers);
            self.died();
        }
        self.log(level, || text);
    }

    /// A task has died: the others end too, unless they are to continue.
    fn died(&mut self) {
        if self.survive {
            return;
        }
        match self.hosts {
            None => self.end(Signal::SIGTERM),
            // The cause may be the end of a task on another machine, which is on its way.
            Some(_) => drop(self.end_at.get_or_insert_with(|| Instant::now() + ON_ITS_WAY)),
        }
    }

    /// Passes a signal of the user on to the tasks. Those that end a process end the job.
    fn pass_on(&mut self, signal: Signal) {
        match signal {
            Signal::SIGTSTP => {
                self.supervisor.signal(Signal::SIGSTOP);
                // The thread that passes it to other machines stops this process when it has.
                if self.hosts.is_none() {
                    let _ = raise(Signal::SIGSTOP);
                }
                // They go on with this process, whatever has continued it; the first process of a
                // container is not stopped at all.
                self.supervisor.signal(Signal::SIGCONT);
            }
            Signal::SIGUSR1 | Signal::SIGUSR2 | Signal::SIGCONT => {
                if reports::signal() == Some(signal) {
                    // Tasks on other machines write what they have to report themselves.
                    if self.hosts.is_none() {
                        self.reports.ask();
                    }
                    // It asks for a report: no task that cannot handle it shall die of it.
                    self.supervisor.offer(signal);
                } else {
                    self.supervisor.signal(signal);
                }
            }
            _ => match &self.ending {
                Some(ending) if ending.since.elapsed() < ONE_SIGNAL => {}
                // A second signal: do not wait.
                Some(_) => self.kill(),
                None => {
                    self.debugger.end(Signal::SIGTERM);
                    let how = if signal == Signal::SIGINT { "interrupted" } else { "ended" };
                    self.status = Some(128 + signal as u8);
                    self.end(signal);
                    self.log(1, || format!("{how} ({signal}); ending all tasks"));
                }
            },
        }
    }

    /// Begins to end the job.
    fn end(&mut self, signal: Signal) {
        self.supervisor.signal(signal);
        // A stopped task must be continued so that it can end.
        self.supervisor.signal(Signal::SIGCONT);
        let since = Instant::now();
        self.ending = Some(Ending { since, signal, kill_at: Some(since + GRACE) });
    }

    fn kill(&mut self) {
        self.debugger.end(Signal::SIGKILL);
        self.supervisor.signal(Signal::SIGKILL);
        let signal = self.ending.as_ref().map_or(Signal::SIGKILL, |ending| ending.signal);
        self.ending = Some(Ending { since: Instant::now(), signal, kill_at: None });
    }

    fn poll_timeout(&self) -> PollTimeout {
        let kill_at = self.kill_at();
        let limit_at = self.limit.filter(|_| self.ending.is_none()).map(TimeLimit::at);
        let say_at = self.unsaid.then(|| Instant::now() + LOOK);
        let deadlines = [kill_at, self.ends.due(), limit_at, self.end_at(), say_at];
        let next = deadlines.into_iter().flatten().min();
        // Rounded up: a sleep that is too short would be one of many.
        next.map_or(PollTimeout::NONE, |next| {
            let left = next.saturating_duration_since(Instant::now());
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        })
    }

    /// When the job is ended because a task has died.
    fn end_at(&self) -> Option<Instant> {
        self.end_at.filter(|_| self.ending.is_none())
    }

    /// When the tasks that are left are killed; not while one of them is in a debugger.
    fn kill_at(&self) -> Option<Instant> {
        self.ending.as_ref().filter(|_| !self.debugger.runs()).and_then(|ending| ending.kill_at)
    }

    fn serve_deadlines(&mut self) {
        if self.ends.due().is_some_and(|at| at <= Instant::now()) {
            self.ends.summarize();
        }
        if self.end_at().is_some_and(|at| at <= Instant::now()) {
            self.end(Signal::SIGTERM);
        }
        // The user may look at a task that is to end.
        let late = self.kill_at().is_some_and(|at| at <= Instant::now());
        if late {
            let (run, them) = self.left();
            self.kill();
            self.log(1, || format!("{run} after {} s; killing {them}", GRACE.as_secs()));
        }
        if let Some(limit) = self.limit.filter(|limit| limit.is_reached() && self.ending.is_none()) {
            let (run, them) = self.left();
            self.status = Some(LATE);
            self.debugger.end(Signal::SIGTERM);
            self.end(Signal::SIGTERM);
            say(&format!("{limit} reached: {run}; ending {them}"));
        }
        self.unsaid = say_more();
    }

    /// The clause that the tasks that have not ended still run, and the pronoun for them.
    fn left(&self) -> (String, &'static str) {
        let left: Vec<usize> = (0..self.pids.len()).filter(|task| self.pids[*task] != 0).collect();
        match left.len() {
            // What is left are processes that the tasks started.
            0 => ("processes of the tasks still run".to_owned(), "them"),
            1 => (format!("{} still runs", tasks_named(&left)), "it"),
            _ => (format!("{} still run", tasks_named(&left)), "them"),
        }
    }

    fn log(&self, level: u8, message: impl FnOnce() -> String) {
        if self.info_level >= level {
            say(&message());
        }
    }

    fn program(&self, task: usize) -> String {
        self.commands[task][0].to_string_lossy().into_owned()
    }

    fn name(&self, task: usize) -> String {
        let host = self.hosts.map(|hosts| format!(" on {}", hosts[task])).unwrap_or_default();
        format!("task {task} ({}, pid {}{host})", self.program(task), self.pids[task])
    }
}

impl Ending {
    /// Whether a task that this signal has ended was ended by `poe`.
    fn explains(&self, signal: i32) -> bool {
        signal == self.signal as i32 || signal == Signal::SIGKILL as i32 && self.kill_at.is_none()
    }
}

/// A program that is not on the PATH and lies in the working directory.
fn hint(folder: &Path, program: &str) -> Option<String> {
    (!program.contains('/') && folder.join(program).is_file())
        .then(|| format!("{program} (did you mean ./{program}? The working directory is not on the PATH)"))
}
