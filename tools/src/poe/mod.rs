//! `poe`, the Parallel Operating Environment: starts the tasks of a job, carries their input and
//! output, and leaves nothing behind.
//!
//! Two processes share the work. `poe` itself owns the terminal: it reads options, passes signals
//! on and writes what the tasks write. Its child, the *supervisor*, owns the tasks: it starts,
//! signals and reaps them. Each ends every process of the job when the other one disappears, so
//! that even SIGKILL of either leaves nothing running.
//!
//! Each task has a socket to `poe`: over it, a task that hangs reports why, and `poe` makes one
//! report of those of all tasks; and `poe` informs the tasks which others have ended (`reports`).
//!
//! On other machines the tasks are started by a launcher that is installed (`remote`).
//!
//! ```text
//!   poe  ── standard input and error by pipes, output by a terminal ──┐
//!    │                                                                │
//!    └── supervisor (own session) ──┬── task 0 (own process group)
//!          notes over a socket      └── task 1 …
//! ```

mod affinity;
mod arguments;
mod bindings;
mod carrier;
mod causes;
mod claims;
mod commands;
mod debugger;
mod dry_run;
mod ends;
mod environment;
mod error;
mod exports;
mod fold;
mod folder;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod hints;
mod hosts;
mod inherited;
mod input;
mod job;
mod lanes;
pub(crate) mod limits;
mod memory_limit;
mod notes;
mod openings;
mod options;
mod output;
mod parked;
mod processes;
mod profile;
mod pty;
mod record;
mod remote;
mod reports;
mod settings;
mod signals;
mod streams;
mod supervisor;
mod time_limit;
mod waiting;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) use inherited::now_ignored;
pub(crate) use reports::{state, viewers};

use arguments::Request;
use commands::Commands;
use error::Error;
use inherited::Inherited;
use input::Input;
use openlapi::base::patient;
use openlapi_runtime::environment::files;
use profile::Profile;
use settings::Settings;
use signals::Signals;
use time_limit::TimeLimit;

/// Runs `poe` with the arguments that follow its name, and returns the job's exit status.
///
/// The status is 0 when every task's is, otherwise that of the first cause ([`causes`]), or the
/// highest; 128 + N when signal N ended the job, or that task; 124 when it has reached its time
/// limit; 1 when the job could not be started as asked, 2 when the arguments are not valid, 126 or
/// 127 when a program could not be executed or found.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    match run(arguments) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            error::say(&error.to_string());
            // As all that a job says, it may be read late.
            if let Ok(signals) =
                Inherited::note().map_err(drop).and_then(|own| Signals::take(own).map_err(drop))
            {
                signals.await_readers();
            }
            ExitCode::from(error.status())
        }
    }
}

/// The variables of the library, and those that `poe` reads or passes to the tasks.
pub(crate) fn known_variables() -> Vec<&'static str> {
    options::known_variables()
}

/// The settings of `poe` that have a variable, with their values.
pub(crate) fn described_variables() -> Vec<options::Described> {
    options::described(files())
}

fn run(arguments: Vec<OsString>) -> Result<u8, Error> {
    if arguments.first().is_some_and(|first| first == debugger::HELD) {
        return debugger::hold(&arguments[1..]);
    }
    let inherited = Inherited::take()?;
    if arguments.len() == 1 && arguments[0] == "--task" {
        return remote::task::run(inherited);
    }
    // Not for a task, whose files are those of the machine where the job was started.
    let settings = |flags| Settings::new(flags, std::env::vars_os()).with_files(files());
    match arguments::parse(arguments, &settings(Default::default()))? {
        Request::Help { all } => print(&options::help(all)),
        Request::Version => print(&format!("poe (OpenLAPI) {}\n", env!("CARGO_PKG_VERSION"))),
        Request::Run { flags, exports, program, is_fenced } => {
            start(&settings(flags).with_exports(exports), program, is_fenced, inherited)
        }
    }
}

fn start(
    settings: &Settings,
    program: Vec<OsString>,
    is_fenced: bool,
    inherited: Inherited,
) -> Result<u8, Error> {
    let limit = TimeLimit::of(settings)?;
    let several = commands::machines_asked(settings)?.is_some();
    let list = hosts::List::of(settings, several)?;
    // Who has said which words are the program's has made no mistake with them.
    hints::give(settings, if is_fenced { &[] } else { &program }, list.as_ref())?;
    let asked = commands::tasks_asked(settings, list.as_ref())?;
    let Commands { steps, stdin_is_spent } = commands::plan(settings, program, asked)?;
    let tasks = steps[0].len();
    let hosts = list.filter(|list| !list.is_here()).map(|list| list.place(settings, tasks)).transpose()?;
    if settings.yes("MP_DRY_RUN")? {
        return print(&dry_run::describe(settings, &steps, hosts.as_deref())?);
    }
    record::prepare(settings, tasks)?;
    let profile = Profile::prepare(settings, hosts.is_some(), &steps)?;
    hosts::save(settings, hosts.as_deref())?;
    let signals = Signals::take(inherited)?;
    let mut input = Input::of_steps(steps.len());
    let mut run = || {
        let mut highest = 0;
        for step in &steps {
            let end =
                job::run(settings, step, hosts.as_deref(), stdin_is_spent, &mut input, &signals, limit)?;
            highest = highest.max(end.status);
            if end.early {
                return Ok(end.status);
            }
        }
        Ok(highest)
    };
    let status = run()?;
    let ended = profile.and_then(|profile| profile.merge(&signals));
    // As the output of the tasks, it may be read late.
    signals.await_readers();
    Ok(ended.map_or(status, |signal| 128 + signal as u8))
}

fn print(text: &str) -> Result<u8, Error> {
    patient::print(text).map_err(|error| Error::system("cannot write to standard output", error))?;
    Ok(0)
}
