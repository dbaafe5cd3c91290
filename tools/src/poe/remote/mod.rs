//! Jobs on several machines: a launcher that is installed starts `poe --task` for each task, on the
//! machine of its line in the host file, and each of these connects to `poe`.
//!
//! The launcher only starts processes. All else goes over the connections (`link`): the program,
//! its arguments and its environment; standard input and output; signals; and the ends of tasks. So
//! a job has the same labels, messages, exit status and rules for the death of a task on several
//! machines as on one, whatever the launcher.
//!
//! ```text
//!   poe ── launcher ── (its daemons) ── poe --task ── supervisor ── task
//!     └──────── control, input, output, error ──────┘
//! ```
//!
//! `poe --task` has what the launcher gives to a task, such as PMI_FD, and leaves it to the
//! program. The library does not use it: the tasks exchange their addresses by `poe` (`mirror`), so
//! that what the death of a task ends is not up to the launcher.
//!
//! The job's secret and the environment are never in the arguments of a process, which every user
//! can read. The launcher gets one variable, with a token that `poe` and the tasks prove to each
//! other that they know; the environment of a process can be read by its user only.
//! The connections are not encrypted, as those of the launchers are not.

mod admission;
#[cfg(feature = "fuzz")]
pub(super) mod fuzz;
mod hub;
mod launcher;
mod link;
mod looks;
mod mirror;
mod peer;
pub(super) mod task;

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command as Program};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill, raise};
use nix::unistd::{Pid, setsid};
use openlapi_runtime::environment::process_env;

use super::commands::Command;
use super::environment::Environment;
use super::error::{Error, say};
use super::input::{StdinMode, is_in_background};
use super::notes::Note;
use super::output::{OutputStream, Source, StdoutMode};
use super::reports::Elsewhere;
use super::settings::Settings;
use super::signals::Signals;
use super::streams::Ours;
use super::supervisor::Supervisor;
use super::time_limit::TimeLimit;
use admission::Admitted;
use launcher::Launcher;
use link::{Connection, HubContact, Listener};

/// How often the start looks for signals and for the end of the launcher.
const LOOK: Duration = Duration::from_millis(100);
/// After how long tasks that have not been started are named.
const SLOW: Duration = Duration::from_secs(30);
/// How long the tasks may take to connect, unless LAPI_INIT_TIMEOUT says otherwise: Hydra waits
/// without end for a machine that it cannot reach.
const DEADLINE: Duration = Duration::from_secs(300);
/// How long a launcher may take to end.
const GRACE: Duration = Duration::from_secs(5);

/// Starts a job: a task for each command, on these hosts.
#[expect(clippy::zombie_processes, reason = "the job reaps the launcher, as it does a supervisor")]
pub(super) fn start(
    settings: &Settings,
    commands: &[Command],
    hosts: &[String],
    environment: &Environment,
    stdin_is_spent: bool,
    signals: &Signals,
    limit: Option<TimeLimit>,
) -> Result<(Supervisor, Ours, Elsewhere), Error> {
    let tasks = commands.len();
    let folder = super::folder::of(settings)?;
    let stdout = settings.parsed("MP_STDOUTMODE")?.unwrap_or(StdoutMode::Unordered);
    let stdin = super::streams::stdin_mode(settings)?;
    super::streams::check(stdout, stdin, tasks)?;
    let stdin = if stdin_is_spent || is_in_background() { StdinMode::None } else { stdin };
    let launcher = Launcher::choose(settings)?;
    let listener = Listener::open()?;
    let link = listener.link(launcher.rank_variable());
    let info_level = settings.info_level()?;
    if info_level > 0 {
        let mut names: Vec<&String> = hosts.iter().collect();
        names.sort_unstable();
        names.dedup();
        say(&format!("{} starts {tasks} tasks on {} hosts", launcher.name(), names.len()));
    }
    let mut starting =
        Starting { process: Some(spawn(&launcher, hosts, &link, signals)?), launcher: &launcher };
    let arrived = listener.listen(tasks)?;
    let mut found = starting.gather(&arrived, hosts, signals, limit, info_level)?;
    let mut ours = Ours { sources: Vec::new(), inputs: Vec::new() };
    let mut connected = Vec::new();
    for (task, [control, input, output, error]) in found.drain(..).enumerate() {
        let [output, error] = [output, error].map(|stream| Arc::new(file(stream)));
        // The carrier of output alone keeps them: when it closes one, the task gets SIGPIPE.
        connected.push((control, [&output, &error].map(Arc::downgrade).to_vec()));
        match stdin {
            StdinMode::All => ours.inputs.push(file(input)),
            StdinMode::Only(only) if only == task => ours.inputs.push(file(input)),
            StdinMode::Only(_) | StdinMode::None => {}
        }
        if !matches!(stdout, StdoutMode::Only(only) if only != task) {
            ours.sources.push(Source { task, stream: OutputStream::Stdout, pipe: output, terminal: false });
        }
        ours.sources.push(Source { task, stream: OutputStream::Stderr, pipe: error, terminal: false });
    }
    let orders =
        commands.iter().enumerate().map(|(task, command)| order(&folder, command, environment, task));
    let mut process = starting.process.take().expect("it runs");
    let pid = Pid::from_raw(process.id() as i32);
    let hub::Ends { notes, looks } = hub::start(connected, orders.collect(), (pid, process.stdin.take()))?;
    let elsewhere = Elsewhere::new(looks, hosts)?;
    Ok((Supervisor { pid, socket: notes }, ours, elsewhere))
}

/// The name of the launcher that would start the tasks.
pub(super) fn launcher(settings: &Settings) -> Result<String, Error> {
    Ok(Launcher::choose(settings)?.name().to_owned())
}

fn file(stream: Connection) -> File {
    File::from(OwnedFd::from(stream))
}

/// What a task is to run: the version of the notes, the folder, the number of words of the command,
/// these words, the number of variables of the job, these variables, and those of `poe`.
fn order(folder: &Path, command: &Command, environment: &Environment, task: usize) -> Vec<Vec<u8>> {
    let folder = folder.as_os_str().as_bytes().to_vec();
    let mut words = vec![Note::VERSION.into(), folder, command.len().to_string().into_bytes()];
    words.extend(command.iter().map(|word| word.as_bytes().to_vec()));
    let forwarded = std::env::vars_os().filter(|(name, _)| is_forwarded(name));
    let own: Vec<(OsString, OsString)> =
        environment.of(task).map(|(name, value)| (name.into(), value.into())).collect();
    words.push(own.len().to_string().into_bytes());
    words.extend(own.into_iter().chain(forwarded).map(|(name, value)| {
        let mut variable = name.into_vec();
        variable.push(b'=');
        variable.extend(value.as_bytes());
        variable
    }));
    words
}

/// Whether a variable of `poe` may be the tasks': those of launchers and of the login are not.
fn is_forwarded(name: &std::ffi::OsStr) -> bool {
    const OTHERS: [&str; 13] = [
        "SLURM", "PMI", "OMPI_", "OPAL_", "PRTE_", "HYDRA_", "MPI_", "MPIEXEC_", "SSH_", "XDG_", "DBUS_",
        "DISPLAY", "HOSTNAME",
    ];
    let name = name.to_string_lossy();
    name != link::VARIABLE && !OTHERS.iter().any(|other| name.starts_with(other))
}

/// Starts the launcher. It gets no signals from the terminal, and ends the job if this
/// process is killed.
fn spawn(
    launcher: &Launcher,
    hosts: &[String],
    link: &HubContact,
    signals: &Signals,
) -> Result<Child, Error> {
    let mut program: Program = launcher.command(hosts)?;
    program.env(link::VARIABLE, link.to_string());
    let inherited = signals.inherited().for_launcher();
    // SAFETY: the closure makes system calls only; it neither allocates nor takes a lock.
    unsafe {
        program.pre_exec(move || {
            setsid()?;
            prctl::set_pdeathsig(Signal::SIGTERM)?;
            inherited.restore()
        });
    }
    program.spawn().map_err(|source| Error::Program { program: launcher.name().to_owned(), source })
}

/// The launcher until all tasks are connected.
struct Starting<'a> {
    process: Option<Child>,
    launcher: &'a Launcher,
}

impl Starting<'_> {
    /// Waits for the connections of all tasks, and returns those of each.
    fn gather(
        &mut self,
        arrived: &Admitted,
        hosts: &[String],
        signals: &Signals,
        limit: Option<TimeLimit>,
        info_level: u8,
    ) -> Result<Vec<[Connection; 4]>, Error> {
        let mut found: Vec<[Option<Connection>; 4]> = hosts.iter().map(|_| Default::default()).collect();
        let timeout = process_env("LAPI_INIT_TIMEOUT").and_then(|seconds| seconds.trim().parse().ok());
        let timeout = timeout.map_or(DEADLINE, Duration::from_secs);
        // A time that no clock reaches is none.
        let deadline = || Instant::now().checked_add(timeout);
        let mut until = if self.launcher.queues() { None } else { deadline() };
        let mut slow_at = (info_level > 0).then(|| Instant::now() + SLOW);
        let missing = |found: &[[Option<Connection>; 4]]| {
            found.iter().position(|streams| streams.iter().any(Option::is_none))
        };
        while let Some(first) = missing(&found) {
            match arrived.connections.recv_timeout(LOOK) {
                Ok((task, kind, stream)) => {
                    if let Some(streams) = found.get_mut(task) {
                        streams[kind as usize].get_or_insert(stream);
                        until = until.or_else(deadline);
                    }
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::failed("the thread that takes the tasks' connections has failed"));
                }
            }
            while let Some(signal) = signals.next() {
                if signal == Signal::SIGTSTP {
                    let _ = raise(Signal::SIGSTOP);
                } else if [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT].contains(&signal)
                {
                    self.end();
                    return Err(Error::Ended { signal: signal as i32 });
                }
            }
            if let Some(limit) = limit.filter(|limit| limit.is_reached()) {
                self.end();
                return Err(Error::Late { limit: limit.to_string() });
            }
            let process = self.process.as_mut().expect("it runs");
            if let Ok(Some(status)) = process.try_wait() {
                self.process = None;
                let name = self.launcher.name();
                return Err(Error::failed(format!(
                    "{name} ended ({status}) before task {first} on {} had started",
                    hosts[first]
                )));
            }
            if until.is_some_and(|at| at <= Instant::now()) {
                let (name, seconds) = (self.launcher.name(), timeout.as_secs());
                return Err(Error::failed(format!(
                    "{name} has not started task {first} on {} for {seconds} s (LAPI_INIT_TIMEOUT)",
                    hosts[first]
                )));
            }
            if slow_at.is_some_and(|at| at <= Instant::now()) {
                slow_at = None;
                let name = self.launcher.name();
                say(&format!("waiting for {name} to start task {first} on {}", hosts[first]));
            }
        }
        Ok(found.into_iter().map(|streams| streams.map(|stream| stream.expect("none is missing"))).collect())
    }

    /// Ends the launcher, and with it what it has started.
    fn end(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let _ = kill(Pid::from_raw(process.id() as i32), Signal::SIGTERM);
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            if !matches!(process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK / 4);
        }
        let _ = process.kill();
        let _ = process.wait();
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
