//! The process that owns the tasks: starts, signals and reaps them, and ends them all when
//! `poe` is gone.
//!
//! It is a child of `poe` in a session of its own, so that no signal to `poe` or its process
//! group reaches it. The two exchange [`Note`]s over a socket; end of file means that the
//! other one has died.

use std::io::{self, Read, Write};
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
    /// One per task, or none at all.
    pub affinity: Vec<CpuSet>,
    /// What the tasks get back as it was before `poe` changed it for itself.
    pub inherited: Inherited,
    pub open_files: (rlim_t, rlim_t),
    /// The file in which the tasks count their openings of LAPI; without it they count
    /// for themselves.
    pub openings: Option<Openings>,
}

/// What the two send each other, and what `poe` and a task on another machine do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// A task runs as this process.
    Started { task: usize, pid: i32 },
    /// A program could not be executed, for this `errno`; no task runs any more.
    NotStarted { task: usize, errno: i32 },
    /// Addresses are randomised because the system does not allow otherwise, for this `errno`.
    Randomized { errno: i32 },
    /// A task exited with this status; with [`LEFT_OPEN`] when `poe --task` knows that it had
    /// not closed LAPI.
    Exited { task: usize, status: i32 },
    /// A task was ended by this signal.
    Killed { task: usize, signal: i32 },
    /// The connection to a task on another machine is lost.
    Lost { task: usize },
    /// All tasks have ended and no process of theirs is left.
    Done,
    /// To the supervisor: send this signal to every task.
    Signal { signal: i32 },
    /// To the supervisor: send this signal to every process of the tasks that has a handler for it.
    Offer { signal: i32 },
    /// To the supervisor: send this signal to one task.
    SignalTask { task: usize, signal: i32 },
    /// Between `poe` and tasks on other machines: this number of bytes follows, changes of their
    /// files (`remote::mirror`).
    Changes { length: usize },
}

/// A flag of the status in [`Note::Exited`].
pub(super) const LEFT_OPEN: i32 = 0x100;

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
        // SAFETY: no other thread of this process holds a lock that the child needs: jobs run one
        // after another and the threads of the last one are over, except one that may sit in a read
        // of standard input, which the child does not touch.
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
    let mut socket = match socket.try_clone() {
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
    let mut tasks = Tasks { pids: Vec::new() };
    if tasks.start(work, &mut socket).and_then(|()| tasks.serve(&signals, &mut socket)).is_err() {
        // `poe` is gone, or a task could not be started.
        tasks.signal(Signal::SIGKILL);
    }
    end_descendants();
    let _ = Note::Done.write(&mut socket);
}

struct Tasks {
    /// `None`: it has ended. Only processes that are not reaped are signalled: their
    /// numbers are theirs.
    pids: Vec<Option<Pid>>,
}

impl Tasks {
    fn start(&mut self, work: Work, socket: &mut UnixStream) -> io::Result<()> {
        if let Err(errno) = keep_addresses() {
            Note::Randomized { errno: errno as i32 }.write(socket)?;
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
                Err(error) => return Err(not_started(task, error, socket)?),
            };
            let report = report.as_ref().and_then(|socket| HandOver::new(socket, place.as_ref()));
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
                    Stdin::Pipe(end) => end.into(),
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
                    Note::Started { task, pid }.write(socket)?;
                }
                Err(error) => return Err(not_started(task, error, socket)?),
            }
        }
        let_go_of_stdio()
    }

    /// Reports ends and passes signals on until no task is left.
    fn serve(&mut self, signals: &SignalFd, socket: &mut UnixStream) -> io::Result<()> {
        while self.pids.iter().any(Option::is_some) {
            let mut polled = [
                PollFd::new(signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(socket.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut polled, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let [_, asked] = polled.map(|polled| polled.any() == Some(true));
            // Of several ends the kernel queues one signal: that of the first.
            let first = std::iter::from_fn(|| signals.read_signal().ok().flatten()).next();
            while let Ok(Some(_)) = signals.read_signal() {}
            let mut ended: Vec<_> = std::iter::from_fn(reap).collect();
            // After the first come those that a signal has ended: others end with an error because
            // they have seen them die.
            ended.sort_by_key(|(pid, status)| {
                let is_first = first.is_some_and(|first| first.ssi_pid as i32 == pid.as_raw());
                (!is_first, !libc::WIFSIGNALED(*status))
            });
            for (pid, status) in ended {
                self.report(pid, status, socket)?;
            }
            if asked {
                match Note::read(socket)? {
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
        }
        Ok(())
    }

    /// Reports a task's end to `poe`. Orphans of tasks end here too, and are not reported.
    fn report(&mut self, pid: Pid, status: i32, socket: &mut UnixStream) -> io::Result<()> {
        let Some(task) = self.pids.iter().position(|task| *task == Some(pid)) else { return Ok(()) };
        self.pids[task] = None;
        let note = if libc::WIFSIGNALED(status) {
            Note::Killed { task, signal: libc::WTERMSIG(status) }
        } else {
            Note::Exited { task, status: libc::WEXITSTATUS(status) }
        };
        note.write(socket)
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

/// Reports that a task was not started, and returns why.
fn not_started(task: usize, error: io::Error, socket: &mut UnixStream) -> io::Result<io::Error> {
    Note::NotStarted { task, errno: error.raw_os_error().unwrap_or(libc::EINVAL) }.write(socket)?;
    Ok(error)
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

impl Note {
    /// A note on its way: what it is, which task, a value. Both ends are the same program.
    pub(super) const LENGTH: usize = 12;

    pub(super) fn write(self, to: &mut impl Write) -> io::Result<()> {
        let (kind, task, value) = match self {
            Self::Started { task, pid } => (0, task, pid),
            Self::NotStarted { task, errno } => (1, task, errno),
            Self::Randomized { errno } => (2, 0, errno),
            Self::Exited { task, status } => (3, task, status),
            Self::Killed { task, signal } => (4, task, signal),
            Self::Done => (5, 0, 0),
            Self::Signal { signal } => (6, 0, signal),
            Self::Offer { signal } => (7, 0, signal),
            Self::SignalTask { task, signal } => (8, task, signal),
            Self::Lost { task } => (9, task, 0),
            Self::Changes { length } => (10, length, 0),
        };
        let mut bytes = [0; Self::LENGTH];
        for (field, word) in bytes.chunks_exact_mut(4).zip([kind, task as i32, value]) {
            field.copy_from_slice(&word.to_ne_bytes());
        }
        to.write_all(&bytes)
    }

    /// The note of a supervisor with one task, as one of a job in which that task has this number.
    pub(super) fn of_task(self, task: usize) -> Self {
        match self {
            Self::Started { pid, .. } => Self::Started { task, pid },
            Self::NotStarted { errno, .. } => Self::NotStarted { task, errno },
            Self::Exited { status, .. } => Self::Exited { task, status },
            Self::Killed { signal, .. } => Self::Killed { task, signal },
            other => other,
        }
    }

    /// Waits for the next note. An error is the end of the other side.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut bytes = [0; Self::LENGTH];
        from.read_exact(&mut bytes)?;
        let word = |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (task, value) = (word(4) as usize, word(8));
        match word(0) {
            0 => Ok(Self::Started { task, pid: value }),
            1 => Ok(Self::NotStarted { task, errno: value }),
            2 => Ok(Self::Randomized { errno: value }),
            3 => Ok(Self::Exited { task, status: value }),
            4 => Ok(Self::Killed { task, signal: value }),
            5 => Ok(Self::Done),
            6 => Ok(Self::Signal { signal: value }),
            7 => Ok(Self::Offer { signal: value }),
            8 => Ok(Self::SignalTask { task, signal: value }),
            9 => Ok(Self::Lost { task }),
            10 => Ok(Self::Changes { length: task }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_arrive_as_they_were_written() {
        let (mut here, mut there) = UnixStream::pair().expect("sockets can be made");
        for note in [
            Note::Started { task: 3, pid: 77 },
            Note::NotStarted { task: 1, errno: 2 },
            Note::Randomized { errno: 1 },
            Note::Exited { task: 16383, status: 255 },
            Note::Killed { task: 0, signal: 64 },
            Note::Done,
            Note::Signal { signal: 15 },
            Note::Offer { signal: 12 },
            Note::SignalTask { task: 7, signal: 13 },
            Note::Lost { task: 2 },
            Note::Changes { length: 70_000 },
        ] {
            note.write(&mut here).expect("the other end is open");
            assert_eq!(Note::read(&mut there).expect("a note was written"), note);
        }
        drop(here);
        assert!(Note::read(&mut there).is_err());
    }
}
