//! What a job is: a program under `poe`, or alone, with its arguments and its variables.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{SigHandler, Signal, signal};

use crate::stage::{stage, workspace};
use crate::transport;

/// A job to be run. Made by [`Job::new`] or [`Job::direct`], changed by the other methods, started
/// by [`Job::run`].
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) under: Option<PathBuf>,
    pub(crate) launcher: Option<PathBuf>,
    pub(crate) program: Option<PathBuf>,
    args: Vec<OsString>,
    poe_args: Vec<OsString>,
    /// The number of tasks that the test has given; 1 unless it has.
    pub(crate) procs: usize,
    pub(crate) env: Vec<(OsString, Option<OsString>)>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) stdin_ends: bool,
    dir: PathBuf,
    pub(crate) deadline: Duration,
}

/// The variables that every job gets: `TEST_JOB_ENV`, words `NAME=VALUE` split at blanks.
fn common() -> Vec<String> {
    let words = std::env::var("TEST_JOB_ENV").unwrap_or_default();
    words.split_whitespace().map(str::to_owned).collect()
}

/// The launcher: the staged one, or where that is for another processor, `TEST_POE`.
fn poe() -> PathBuf {
    std::env::var_os("TEST_POE").map_or_else(|| stage().join("bin/poe"), PathBuf::from)
}

/// What runs the programs: `TEST_RUNNER`, words of a command that runs programs of another
/// processor (`make test-cross`); nothing, where it is not set.
fn runner() -> Vec<OsString> {
    let words = std::env::var("TEST_RUNNER").unwrap_or_default();
    words.split_whitespace().map(OsString::from).collect()
}

impl Job {
    /// A job of one task under the staged `poe`.
    pub fn new(program: impl AsRef<Path>) -> Self {
        Self { launcher: Some(poe()), ..Self::direct(program) }
    }

    /// A program that is started without any launcher.
    pub fn direct(program: impl AsRef<Path>) -> Self {
        Self {
            under: None,
            launcher: None,
            program: Some(program.as_ref().to_owned()),
            args: Vec::new(),
            poe_args: Vec::new(),
            procs: 1,
            env: Vec::new(),
            stdin: Vec::new(),
            stdin_ends: true,
            dir: workspace().to_owned(),
            deadline: Duration::from_secs(60),
        }
    }

    /// `poe` itself, with only the arguments that the test gives.
    pub fn poe() -> Self {
        Self { program: None, ..Self::new("") }
    }

    /// The number of tasks (`-procs`).
    pub fn procs(mut self, n: usize) -> Self {
        self.procs = n;
        self.poe_arg("-procs").poe_arg(n.to_string())
    }

    /// Sets a variable for the launcher and the tasks.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Removes a variable.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), None));
        self
    }

    /// Removes the variables that launchers have set for the tests themselves.
    pub fn without_launchers(self) -> Self {
        std::env::vars_os()
            .map(|(name, _)| name)
            .filter(|name| {
                let name = name.to_string_lossy();
                ["PMI", "OMPI_", "MPI_", "SLURM_", "HYDRA_"].iter().any(|prefix| name.starts_with(prefix))
            })
            .fold(self, Self::env_remove)
    }

    /// A program that starts the whole job as its arguments say.
    pub fn under(mut self, program: impl AsRef<Path>) -> Self {
        self.under = Some(program.as_ref().to_owned());
        self
    }

    /// One more argument of the program.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// One more argument of `poe`, before the program's name.
    pub fn poe_arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.poe_args.push(arg.as_ref().to_owned());
        self
    }

    /// The standard input; empty unless given.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// The standard input does not end before the job.
    pub fn stdin_stays_open(mut self) -> Self {
        self.stdin_ends = false;
        self
    }

    /// The folder in which the job runs; the top of the source tree unless given.
    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.dir = dir.as_ref().to_owned();
        self
    }

    /// How many seconds the job may take; 60 unless given. `TEST_PATIENCE` in the environment
    /// multiplies them, and a machine that is crowded.
    pub fn deadline(mut self, seconds: u64) -> Self {
        self.deadline = Duration::from_secs(seconds);
        self
    }

    /// The command that starts the job.
    pub(crate) fn command(&self) -> Command {
        let runner = if self.program.is_some() { runner() } else { Vec::new() };
        let words: Vec<&OsStr> = self
            .under
            .iter()
            .chain(&self.launcher)
            .map(|path| path.as_os_str())
            .chain(self.poe_args.iter().map(OsString::as_os_str))
            .chain(runner.iter().map(OsString::as_os_str))
            .chain(self.program.iter().map(|path| path.as_os_str()))
            .chain(self.args.iter().map(OsString::as_os_str))
            .collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&self.dir);
        // Variables of the caller's shell for jobs and languages must not change the tests.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let language = text.starts_with("LC_") || ["LANG", "LANGUAGE", "NLSPATH"].contains(&&*text);
            if text.starts_with("MP_") || text.starts_with("LAPI_") || language {
                command.env_remove(&name);
            }
        }
        // Nor must files of settings.
        command.env("LAPI_CONFIG", "none");
        // `make test-crowded` gives every job some variables; those of the test itself
        // come after them.
        for (name, value) in common().iter().filter_map(|word| word.split_once('=')) {
            command.env(name, value);
        }
        if self.launcher.is_some() {
            command.envs(transport::variables());
        }
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        // A shell starts its background jobs with the keys of the terminal ignored, nohup ignores
        // the hang-up; poe would continue to ignore them.
        // SAFETY: the closure makes system calls only, and restores the defaults of every program.
        unsafe {
            command.pre_exec(|| {
                for ignored in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
                    signal(ignored, SigHandler::SigDfl)?;
                }
                Ok(())
            });
        }
        command
    }
}
