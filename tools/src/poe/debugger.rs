//! The debugger of one task (MP_GDB): gdb has the terminal of `poe`, and the task begins under it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command as Program;
use std::thread;

use nix::errno::Errno;
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp, getpid, getppid, tcsetpgrp};

use super::commands::Command;
use super::error::Error;
use super::inherited::Inherited;
use super::input;
use super::settings::Settings;
use super::streams;
use openlapi_runtime::report::attach::is_traced;

const GDB: &str = "gdb";

/// Another process than the one that gdb gets would be no task of the job.
const COMMANDS: &str = "server define run
echo The task runs already, at its first instruction: type continue\\n
end
server define start
echo The task runs already, at its first instruction: type break main, then continue\\n
end
";

/// A file of commands for gdb, which inherits it.
fn commands() -> io::Result<File> {
    let mut file = File::from(memfd_create(c"gdb", MFdFlags::empty())?);
    file.write_all(COMMANDS.as_bytes())?;
    Ok(file)
}

/// The first argument of a `poe` that holds a program back for a debugger ([`hold`]).
pub(super) const HELD: &str = "--held";

/// The signal by which a process that is held learns that no debugger comes.
pub(super) const GOES_ON: Signal = Signal::SIGCONT;

/// How often a program that is held back looks for its debugger.
const LOOK_MS: libc::c_long = 20;

/// The task that is to run under a debugger, if there is to be one.
pub(super) fn task(
    settings: &Settings,
    tasks: usize,
    hosts: Option<&[String]>,
) -> Result<Option<usize>, Error> {
    let Some(task) = settings.parsed::<usize>("MP_GDB")? else { return Ok(None) };
    if task >= tasks {
        return Err(Error::asked(format!("-gdb {task}: the highest task number is {}", tasks - 1)));
    }
    if let Some(hosts) = hosts {
        return Err(Error::asked(format!(
            "-gdb {task}: the task runs on {}, and gdb would run here; -attach {task} lets it wait for a gdb there",
            hosts[task]
        )));
    }
    if !is_installed(std::env::var_os("PATH").as_deref()) {
        return Err(Error::failed(format!("-gdb {task}: gdb is not installed")));
    }
    if input::is_in_background() {
        return Err(Error::failed(format!(
            "-gdb {task}: poe does not run in the foreground of its terminal"
        )));
    }
    Ok(Some(task))
}

/// Refuses tasks that are to wait for a debugger (MP_ATTACH), and that the job does not have.
pub(super) fn check_attached(settings: &Settings, tasks: usize) -> Result<(), Error> {
    let named = settings.given("MP_ATTACH")?.unwrap_or_default();
    let beyond = |number: &&str| number.parse().is_ok_and(|task: usize| task >= tasks);
    match named.split(',').find(beyond) {
        None => Ok(()),
        Some(task) => Err(Error::asked(format!("-attach {task}: the highest task number is {}", tasks - 1))),
    }
}

fn is_installed(path: Option<&OsStr>) -> bool {
    path.is_some_and(|path| std::env::split_paths(path).any(|folder| folder.join(GDB).is_file()))
}

/// A command whose program begins when a debugger has attached to it.
pub(super) fn held(command: &Command) -> Command {
    ["/proc/self/exe".into(), OsString::from(HELD)].into_iter().chain(command.iter().cloned()).collect()
}

/// The process that a debugger attaches to: it becomes this program once it is traced, so that the
/// debugger sees the program's first instruction. [`GOES_ON`] ends the wait: the debugger could not
/// attach. The process is started with this signal blocked, because the signal may come before this
/// function runs; the program begins without that.
pub(super) fn hold(command: &[OsString]) -> Result<u8, Error> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::asked(format!("{HELD} is for poe -gdb")));
    };
    // Where the system lets only ancestors attach.
    let _ = rustix::process::set_ptracer(rustix::process::PTracer::Any);
    let goes_on = SigSet::from(GOES_ON);
    while !is_traced() && !comes(&goes_on) {}
    let mut inherited = Inherited::note().map_err(|errno| Error::system("signals", errno))?;
    inherited.mask.remove(GOES_ON);
    let mut program_to_be = Program::new(program);
    // SAFETY: the closure makes system calls only; it neither allocates nor takes a lock.
    unsafe { program_to_be.pre_exec(move || inherited.restore()) };
    let source = program_to_be.args(arguments).exec();
    Err(Error::Program { program: program.to_string_lossy().into_owned(), source })
}

/// Waits a moment for one of these signals, which are blocked.
fn comes(signals: &SigSet) -> bool {
    let moment = libc::timespec { tv_sec: 0, tv_nsec: LOOK_MS * 1_000_000 };
    // SAFETY: both live through the call; what came is not wanted.
    unsafe { libc::sigtimedwait(signals.as_ref(), std::ptr::null_mut(), &raw const moment) > 0 }
}

/// The debugger of a job, if it has one.
pub(super) struct Debugger {
    task: Option<usize>,
    running: Option<Running>,
}

struct Running {
    task: usize,
    gdb: Pid,
    /// At its end of file the debugger has ended.
    until: OwnedFd,
}

impl Debugger {
    /// The debugger of this task, which is not started.
    pub(super) fn of(task: Option<usize>) -> Self {
        Self { task, running: None }
    }

    /// Starts gdb when the process of its task is there, in the foreground of the terminal. Its
    /// first commands let it stop at the program's first instruction.
    pub(super) fn started(&mut self, task: usize, pid: i32, inherited: Inherited) -> Result<(), Error> {
        if self.task != Some(task) {
            return Ok(());
        }
        let failed = |error: io::Error| Error::system("-gdb: cannot start gdb", error);
        let (until, running) = streams::pipe()?;
        let mut program = Program::new(GDB);
        program
            .args(["-q", "-p", &pid.to_string(), "-ex", "tcatch exec", "-ex", "continue"])
            .process_group(0);
        let commands = commands();
        if let Ok(commands) = &commands {
            program.args(["-x", &format!("/proc/self/fd/{}", commands.as_raw_fd())]);
        }
        let poe = getpid();
        // SAFETY: the closure makes system calls only; it neither allocates nor takes a lock.
        unsafe {
            program.pre_exec(move || {
                prctl::set_pdeathsig(Signal::SIGKILL)?;
                if getppid() != poe {
                    return Err(Errno::ESRCH.into());
                }
                take_terminal(getpid());
                inherited.restore()
            });
        }
        let gdb = Pid::from_raw(program.spawn().map_err(failed)?.id() as i32);
        self.running = Some(Running { task, gdb, until });
        let watcher = thread::Builder::new().name("poe-debugger".to_owned()).spawn(move || {
            watch(gdb);
            drop(running);
        });
        watcher.map(drop).map_err(failed)
    }

    pub(super) fn runs(&self) -> bool {
        self.running.is_some()
    }

    /// Readable when it has ended.
    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.running.as_ref().map(|running| running.until.as_fd())
    }

    /// Sends it a signal that ends it, if it runs: the program goes on without it.
    pub(super) fn end(&self, signal: Signal) {
        if let Some(running) = &self.running {
            let _ = kill(running.gdb, signal);
        }
    }

    /// Takes in that it has ended: `poe` has the terminal again. Returns its task, which is to
    /// begin now if it was not traced.
    pub(super) fn ended(&mut self) -> Option<usize> {
        self.running.take().map(|running| running.task)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        take_terminal(getpgrp());
    }
}

/// Waits for the end of gdb. One that the terminal has stopped goes on: no shell knows it.
fn watch(gdb: Pid) {
    loop {
        match waitpid(gdb, Some(WaitPidFlag::WUNTRACED)) {
            Ok(WaitStatus::Stopped(..)) => {
                let _ = kill(gdb, Signal::SIGCONT);
            }
            Err(Errno::EINTR) => {}
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// Makes a process group the foreground of the terminal, if standard input is one.
fn take_terminal(group: Pid) {
    let refused = SigSet::from(Signal::SIGTTOU);
    // From the background the call would stop this process.
    let before = refused.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK);
    // SAFETY: standard input stays open. Not io::stdin(), which allocates: this runs after fork.
    let terminal = unsafe { BorrowedFd::borrow_raw(libc::STDIN_FILENO) };
    let _ = tcsetpgrp(terminal, group);
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
}
