//! The process that owns the tasks: starts, signals and reaps them, and ends them all when
//! `poe` is gone.
//!
//! It is a child of `poe` in a session of its own, so that no signal to `poe` or its process
//! group reaches it. The two exchange [`Note`]s over a socket; end of file means that the
//! other one has died.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command as Program, Stdio};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::personality::{self, Persona};
use nix::sys::prctl;
use nix::sys::resource::{Resource, rlim_t, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, setsid};

use super::commands::Command;
use super::debugger;
use super::environment::Environment;
use super::error::Error;
use super::inherited::Inherited;
use super::notes::{Arrived, Exchange, Note};
use super::openings::{self, Openings};
use super::parked::Parked;
use super::processes::{end_descendants, handling};
use super::reports::{self, HandOver};
use super::streams::{Stdin, Theirs};

/// What the supervisor is to start.
pub(super) struct Work<'a> {
    /// One per task.
    pub commands: &'a [Command],
    /// The command of this task is this one instead.
    pub held: Option<(usize, Command)>,
    /// Their working directory; `None`: that of this process.
    pub folder: Option<&'a Path>,
    pub environment: Environment,
    pub streams: Vec<Theirs>,
    /// Their ends of the sockets for reports.
    pub reports: Vec<Option<UnixDatagram>>,
    /// Over these sockets tasks are only looked at: they print their reports themselves.
    pub looks: bool,
    /// One per task, or none at all.
    pub affinity: Vec<CpuSet>,
    /// What the tasks get back as it was before `poe` changed it for itself.
    pub inherited: Inherited,
    pub open_files: (rlim_t, rlim_t),
    /// The file in which the tasks count their openings of LAPI; without it they count
    /// for themselves.
    pub openings: Option<Openings>,
}

/// `poe`'s handle of the supervisor.
pub(super) struct Supervisor {
    pub pid: Pid,
    pub socket: UnixStream,
}

impl Supervisor {
    /// Starts the supervisor, which starts the tasks. `ours` has descriptors of `poe` alone, which
    /// the supervisor closes: each process that it makes would inherit all of them.
    pub(super) fn start<T>(work: Work, ours: T) -> Result<(Self, T), Error> {
        let failed = |error: io::Error| Error::system("cannot start the supervisor process", error);
        let (socket, theirs) = UnixStream::pair().map_err(failed)?;
        theirs.set_nonblocking(true).map_err(failed)?;
        // SAFETY: no other thread of this process holds a lock that the child needs: jobs run one
        // after another and the threads of the last one are over, except one that may copy standard
        // input, which the child does not touch; nor does it write messages.
        match unsafe { fork() }.map_err(|errno| failed(errno.into()))? {
            ForkResult::Parent { child } => Ok((Self { pid: child, socket }, ours)),
            ForkResult::Child => {
                drop((ours, socket));
                keep(work, theirs);
                std::process::exit(0)
            }
        }
    }

    /// Has a signal sent to every task. A supervisor that is gone has no tasks any more.
    pub(super) fn signal(&mut self, signal: Signal) {
        let _ = Note::Signal { signal: signal as i32 }.write(&mut self.socket);
    }

    /// Has a signal sent to every process of the tasks that has a handler for it.
    pub(super) fn offer(&mut self, signal: Signal) {
        let _ = Note::Offer { signal: signal as i32 }.write(&mut self.socket);
    }

    /// Has a signal sent to one task.
    pub(super) fn signal_task(&mut self, task: usize, signal: Signal) {
        let _ = Note::SignalTask { task, signal: signal as i32 }.write(&mut self.socket);
    }
}

/// What the supervisor does from its start to its end.
fn keep(work: Work, socket: UnixStream) {
    // It was made after the descriptors of all tasks. A process that is started copies the table up
    // to the highest number.
    let socket = match socket.try_clone() {
        Ok(lower) => {
            drop(socket);
            lower
        }
        Err(_) => socket,
    };
    let _ = setsid();
    let _ = prctl::set_name(c"poe-supervisor");
    let _ = prctl::set_child_subreaper(true);
    let ended = SigSet::from(Signal::SIGCHLD);
    let signals = ended
        .thread_block()
        .and_then(|()| SignalFd::with_flags(&ended, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK));
    let Ok(signals) = signals else { return };
    let (pids, asked) = (Vec::new(), VecDeque::new());
    let mut tasks = Tasks { pids, signals, poe: Exchange::new(socket), asked };
    if tasks.start(work).and_then(|()| tasks.serve()).is_err() {
        // `poe` is gone, or a task could not be started.
        tasks.signal(Signal::SIGKILL);
    }
    end_descendants();
    let _ = tasks.poe.send(Note::Done).and_then(|()| tasks.poe.finish());
}

struct Tasks {
    /// `None`: it has ended. Only processes that are not reaped are signalled: their
    /// numbers are theirs.
    pids: Vec<Option<Pid>>,
    /// Those of their ends.
    signals: SignalFd,
    poe: Exchange<UnixStream>,
    /// What `poe` has asked for and was not done yet.
    asked: VecDeque<Note>,
}

impl Tasks {
    /// Starts the tasks, unless the job is ended meanwhile: then those that were not started yet
    /// are none of it.
    fn start(&mut self, work: Work) -> io::Result<()> {
        if let Err(errno) = keep_addresses() {
            self.poe.send(Note::Randomized { errno: errno as i32 })?;
        }
        let supervisor = getpid();
        let place = reports::place(&work.reports);
        let openings = work.openings;
        let job_fd = openings.as_ref().and_then(|openings| openings.value().ok());
        // What one task gets is closed here before the next one is started, and what later ones get
        // is parked, so that starting a task does not cost more the more tasks there are.
        let each = work.commands.iter().zip(Parked::new(work.streams, work.reports));
        for (task, (command, ends)) in each.enumerate() {
            let (streams, report) = match ends {
                Ok(ends) => ends,
                Err(error) => return Err(self.not_started(task, error)?),
            };
            let report = report.as_ref().and_then(|socket| HandOver::new(socket, place.as_ref(), work.looks));
            let held = work.held.as_ref().filter(|(held, _)| *held == task);
            let command = held.map_or(command, |(_, command)| command);
            let mut program = Program::new(&command[0]);
            program
                .args(&command[1..])
                .envs(work.environment.of(task))
                .process_group(0)
                .stdin(match streams.stdin {
                    Stdin::Inherit => Stdio::inherit(),
                    Stdin::Nothing => Stdio::null(),
                    Stdin::Own(end) => end.into(),
                })
                .stdout(streams.stdout.map_or_else(Stdio::null, Stdio::from))
                .stderr(streams.stderr);
            if let Some(folder) = work.folder {
                program.current_dir(folder);
            }
            match &report {
                Some(report) => program.env("LAPI_REPORT_FD", &report.value),
                None => program.env_remove("LAPI_REPORT_FD"),
            };
            match &job_fd {
                Some(value) => program.env("LAPI_JOB_FD", value),
                None => program.env_remove("LAPI_JOB_FD"),
            };
            let descriptors = openings.as_ref().map(Openings::numbers).unwrap_or_default();
            let affinity = work.affinity.get(task).copied();
            let (mut inherited, (soft, hard)) = (work.inherited, work.open_files);
            if held.is_some() {
                inherited.mask.add(debugger::GOES_ON);
            }
            // SAFETY: the closure makes system calls only; it neither allocates nor takes a lock.
            unsafe {
                program.pre_exec(move || {
                    prctl::set_pdeathsig(Signal::SIGKILL)?;
                    if getppid() != supervisor {
                        return Err(Errno::ESRCH.into());
                    }
                    if let Some(processors) = affinity {
                        let _ = sched_setaffinity(Pid::from_raw(0), &processors);
                    }
                    setrlimit(Resource::RLIMIT_NOFILE, soft, hard)?;
                    if let Some(report) = &report {
                        report.pass();
                    }
                    openings::inherit(descriptors);
                    inherited.restore()
                });
            }
            match program.spawn() {
                Ok(child) => {
                    let pid = child.id() as i32;
                    self.pids.push(Some(Pid::from_raw(pid)));
                    self.poe.send(Note::Started { task, pid })?;
                }
                Err(error) => return Err(self.not_started(task, error)?),
            }
            self.take_in(PollTimeout::ZERO)?;
            if self.asked.iter().any(ends_the_job) {
                break;
            }
        }
        let_go_of_stdio()
    }

    /// Reports ends and passes signals on until no task is left.
    fn serve(&mut self) -> io::Result<()> {
        while self.pids.iter().any(Option::is_some) {
            while let Some(note) = self.asked.pop_front() {
                match note {
                    Note::Signal { signal } => self.signal(Signal::try_from(signal)?),
                    Note::Offer { signal } => self.offer(Signal::try_from(signal)?),
                    Note::SignalTask { task, signal } => {
                        if let Some(Some(pid)) = self.pids.get(task) {
                            signal_group(*pid, Signal::try_from(signal)?);
                        }
                    }
                    _ => return Err(io::ErrorKind::InvalidData.into()),
                }
            }
            self.take_in(PollTimeout::NONE)?;
        }
        Ok(())
    }

    /// Waits for so long, reports the tasks that have ended, and reads what `poe` asks for.
    fn take_in(&mut self, timeout: PollTimeout) -> io::Result<()> {
        let mut polled = [
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.poe.as_fd(), self.poe.events()),
        ];
        match poll(&mut polled, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let [ended, noted] = polled.map(|polled| polled.any() == Some(true));
        if ended {
            self.reap()?;
        }
        if noted {
            self.poe.write()?;
            self.poe.read()?;
            while let Some(Arrived::Note(note)) = self.poe.next()? {
                self.asked.push_back(note);
            }
        }
        Ok(())
    }

    /// Reaps and reports the children that have ended.
    fn reap(&mut self) -> io::Result<()> {
        // Of several ends the kernel queues one signal: that of the first.
        let first = std::iter::from_fn(|| self.signals.read_signal().ok().flatten()).next();
        while let Ok(Some(_)) = self.signals.read_signal() {}
        let mut ended: Vec<_> = std::iter::from_fn(reap).collect();
        // After the first come those that a signal has ended: others end with an error because
        // they have seen them die.
        ended.sort_by_key(|(pid, status)| {
            let is_first = first.is_some_and(|first| first.ssi_pid as i32 == pid.as_raw());
            (!is_first, !libc::WIFSIGNALED(*status))
        });
        ended.into_iter().try_for_each(|(pid, status)| self.report(pid, status))
    }

    /// Reports a task's end to `poe`. Orphans of tasks end here too, and are not reported.
    fn report(&mut self, pid: Pid, status: i32) -> io::Result<()> {
        let Some(task) = self.pids.iter().position(|task| *task == Some(pid)) else { return Ok(()) };
        self.pids[task] = None;
        let note = if libc::WIFSIGNALED(status) {
            Note::Killed { task, signal: libc::WTERMSIG(status) }
        } else {
            Note::Exited { task, status: libc::WEXITSTATUS(status) }
        };
        self.poe.send(note)
    }

    /// Reports that a task was not started, and returns why.
    fn not_started(&mut self, task: usize, error: io::Error) -> io::Result<io::Error> {
        self.poe.send(Note::NotStarted { task, errno: error.raw_os_error().unwrap_or(libc::EINVAL) })?;
        Ok(error)
    }

    fn signal(&self, signal: Signal) {
        for pid in self.pids.iter().flatten() {
            signal_group(*pid, signal);
        }
    }

    /// Signals the processes of all tasks that have a handler for this signal: it would
    /// end the others.
    fn offer(&self, signal: Signal) {
        let tasks: Vec<Pid> = self.pids.iter().flatten().copied().collect();
        for process in handling(&tasks, signal) {
            let _ = kill(process, signal);
        }
    }
}

/// Whether the tasks are to end: a signal that means no end is for all of them, once they are
/// there.
fn ends_the_job(note: &Note) -> bool {
    const OTHERS: [Signal; 4] = [Signal::SIGSTOP, Signal::SIGCONT, Signal::SIGUSR1, Signal::SIGUSR2];
    matches!(note, Note::Signal { signal } if OTHERS.iter().all(|other| *other as i32 != *signal))
}

/// Signals the process group of a task, or the task alone when it has left its group.
fn signal_group(task: Pid, signal: Signal) {
    if killpg(task, signal).is_err() {
        let _ = kill(task, signal);
    }
}

/// Switches address randomisation off for this process's children: the same address must mean the
/// same thing in every task.
fn keep_addresses() -> nix::Result<()> {
    personality::set(personality::get()? | Persona::ADDR_NO_RANDOMIZE).map(|_| ())
}

/// Closes `poe`'s input and output: only the tasks hold them from now on.
fn let_go_of_stdio() -> io::Result<()> {
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    nix::unistd::dup2_stdin(&nothing)?;
    nix::unistd::dup2_stdout(&nothing)?;
    Ok(())
}

/// Reaps a child that has ended, if there is one: its number and its status as `wait` gives it.
fn reap() -> Option<(Pid, i32)> {
    let mut status = 0;
    // SAFETY: `status` lives through the call. nix's own wrapper loses the status of a child that
    // was ended by a real-time signal.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then(|| (Pid::from_raw(pid), status))
}
