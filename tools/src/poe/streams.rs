//! The pipes and pseudoterminals between `poe` and the tasks.

use std::fs::File;
use std::os::fd::OwnedFd;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use super::error::Error;
use super::input::{self, StdinMode};
use super::output::{OutputStream, Source, StdoutMode};
use super::pty;
use super::settings::Settings;

/// `poe`'s ends.
pub(super) struct Ours {
    pub sources: Vec<Source>,
    /// Where standard input is copied to.
    pub inputs: Vec<File>,
}

/// One task's ends, to become its standard descriptors.
pub(super) struct Theirs {
    pub stdin: Stdin,
    /// `None`: what it writes is discarded.
    pub stdout: Option<OwnedFd>,
    pub stderr: OwnedFd,
}

/// Where a task reads its standard input.
pub(super) enum Stdin {
    /// What `poe` was given itself.
    Inherit,
    Nothing,
    /// A pipe, or a file.
    Own(OwnedFd),
}

/// Makes the pipes of all tasks. None of them is inherited by a program by accident.
pub(super) fn open(
    settings: &Settings,
    tasks: usize,
    stdin_is_spent: bool,
) -> Result<(Ours, Vec<Theirs>), Error> {
    let stdout_mode = settings.parsed("MP_STDOUTMODE")?.unwrap_or(StdoutMode::Unordered);
    let stdin_mode = stdin_mode(settings)?;
    check(stdout_mode, stdin_mode, tasks)?;
    let mut terminals = settings.yes("MP_TTY")?;
    // A debugger reads its commands there.
    let is_taken = settings.text("MP_GDB")?.is_some();
    let stdin_mode =
        if stdin_is_spent || is_taken || input::is_in_background() { StdinMode::None } else { stdin_mode };
    let mut ours = Ours { sources: Vec::new(), inputs: Vec::new() };
    let mut theirs = Vec::new();
    for task in 0..tasks {
        let stdout = if matches!(stdout_mode, StdoutMode::Only(only) if only != task) {
            None
        } else {
            Some(ours.stdout(task, &mut terminals)?)
        };
        let stderr = ours.output(task, OutputStream::Stderr)?;
        let stdin = match stdin_mode {
            StdinMode::All if tasks > 1 => ours.shared_input()?,
            StdinMode::All => ours.only_input()?,
            StdinMode::Only(only) if only == task => ours.only_input()?,
            StdinMode::Only(_) | StdinMode::None => Stdin::Nothing,
        };
        theirs.push(Theirs { stdin, stdout, stderr });
    }
    Ok((ours, theirs))
}

/// Which tasks of a job get standard input.
pub(super) fn stdin_mode(settings: &Settings) -> Result<StdinMode, Error> {
    Ok(settings.parsed("MP_STDINMODE")?.expect("it has a default"))
}

/// Refuses modes that name a task that the job does not have.
pub(super) fn check(stdout: StdoutMode, stdin: StdinMode, tasks: usize) -> Result<(), Error> {
    for (flag, named) in [
        ("-stdoutmode", if let StdoutMode::Only(task) = stdout { task } else { 0 }),
        ("-stdinmode", if let StdinMode::Only(task) = stdin { task } else { 0 }),
    ] {
        if named >= tasks {
            let highest = tasks - 1;
            return Err(Error::asked(format!("{flag} {named}: the highest task number is {highest}")));
        }
    }
    Ok(())
}

/// Makes the pipes of a task that is the only one of this `poe`.
pub(super) fn of_one(settings: &Settings, discards_stdout: bool) -> Result<(Ours, Theirs), Error> {
    let mut terminals = settings.yes("MP_TTY")?;
    let mut ours = Ours { sources: Vec::new(), inputs: Vec::new() };
    let stdout = if discards_stdout { None } else { Some(ours.stdout(0, &mut terminals)?) };
    let stderr = ours.output(0, OutputStream::Stderr)?;
    let stdin = Stdin::Own(ours.input()?);
    Ok((ours, Theirs { stdin, stdout, stderr }))
}

impl Ours {
    /// A pseudoterminal while `terminals` holds, which ends when the system has no more of
    /// them; else a pipe.
    fn stdout(&mut self, task: usize, terminals: &mut bool) -> Result<OwnedFd, Error> {
        if *terminals {
            if let Ok((pipe, write)) = pty::open() {
                self.sources.push(Source {
                    task,
                    stream: OutputStream::Stdout,
                    pipe: pipe.into(),
                    terminal: true,
                });
                return Ok(write);
            }
            *terminals = false;
        }
        self.output(task, OutputStream::Stdout)
    }

    fn output(&mut self, task: usize, stream: OutputStream) -> Result<OwnedFd, Error> {
        let (read, write) = pipe()?;
        self.sources.push(Source { task, stream, pipe: File::from(read).into(), terminal: false });
        Ok(write)
    }

    /// What a task reads that is not the only one: all of it, whatever the others read.
    fn shared_input(&mut self) -> Result<Stdin, Error> {
        if input::is_null() {
            return Ok(Stdin::Inherit);
        }
        match input::reopened() {
            Some(file) => Ok(Stdin::Own(file.into())),
            None => Ok(Stdin::Own(self.input()?)),
        }
    }

    /// What the only task that gets standard input reads.
    fn only_input(&mut self) -> Result<Stdin, Error> {
        // The tasks are in another session, where the terminal of this one would give them what is
        // typed for the shell.
        Ok(if input::is_our_terminal() { Stdin::Own(self.input()?) } else { Stdin::Inherit })
    }

    fn input(&mut self) -> Result<OwnedFd, Error> {
        let (read, write) = pipe()?;
        self.inputs.push(File::from(write));
        Ok(read)
    }
}

/// A pipe that programs do not inherit: the reading end, the writing end.
pub(super) fn pipe() -> Result<(OwnedFd, OwnedFd), Error> {
    pipe2(OFlag::O_CLOEXEC).map_err(|error| Error::system("cannot make a pipe to the tasks", error))
}
