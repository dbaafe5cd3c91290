//! `lapi_info`: the settings in effect on this machine, and what works for LAPI here.
//!
//! Version and build, the transports and why each can or cannot be used, limits, every environment
//! variable with its value, and this process's place in a job. The library's own code determines
//! all of it, or it is tried out; a [`Report`] holds it, [`text`] writes it for people,
//! `serde_json` for programs.

mod ask;
mod limits;
mod machine;
mod network;
mod place;
mod probe;
mod refusal;
mod report;
mod text;
mod transports;
mod variables;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::prefix;
use crate::spelling::nearest;
use openlapi::base::patient;
use openlapi::job::key_file;
use report::{Build, Report};

const HELP: &str = "\
lapi_info: the settings in effect on this machine, and what works for LAPI here

usage: lapi_info [--short | --json] [--verbose]
       lapi_info [--json] NAME...
       lapi_info --network [--json]
       lapi_info --make-key

  NAME...        what is known of a variable, a call, or the name or number of an error; of other words, all whose
                 name or meaning has them
  --short        a line for the version, each transport and this process, and what is wrong
  --json         for programs: one JSON object
  --network      as a job on several hosts: latency and bandwidth between them
  --make-key     make the key file of this user, ~/.openlapi/key, unless there is one: the secret of jobs
                 on several hosts that no launcher starts
  -v, --verbose  also what each variable means
  -h, --help     this text
  --version      the version

The exit status is 0 when LAPI_Init would succeed here, 1 when it would fail (the output ends with the reasons), and 2
when the arguments are invalid.

With NAME it is 1 when nothing is known of it.

Run it as the program would be run (poe lapi_info -procs 2, srun lapi_info) to see what a task sees. With --network
(poe lapi_info --network -hostfile hosts) it is 1 when the job is on one host, or data arrived wrong.
";

const OPTIONS: &[&str] =
    &["--short", "--json", "--network", "--make-key", "--verbose", "-v", "--help", "-h", "--version"];

/// Runs `lapi_info` with the arguments that follow its name.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let (mut json, mut short, mut verbose, mut network, mut key) = (false, false, false, false, false);
    let mut words = Vec::new();
    for argument in &arguments {
        match argument.to_str() {
            Some("--json") => json = true,
            Some("--short") => short = true,
            Some("--network") => network = true,
            Some("--make-key") => key = true,
            Some("-v" | "--verbose") => verbose = true,
            Some("-h" | "--help") => return print(HELP, ExitCode::SUCCESS),
            Some("--version") => {
                return print(&format!("lapi_info (OpenLAPI) {VERSION}\n"), ExitCode::SUCCESS);
            }
            Some(probe::ARGUMENT) => return probe::child(),
            Some(word) if !word.is_empty() && !word.starts_with('-') => words.push(word.to_owned()),
            _ => {
                let argument = argument.to_string_lossy();
                let hint = nearest(&argument, OPTIONS).map(|known| format!("; did you mean {known}?"));
                let hint = hint.unwrap_or_else(|| "; see lapi_info --help".to_owned());
                say(format_args!("unknown argument {argument}{hint}"));
                return ExitCode::from(2);
            }
        }
    }
    if key {
        if json || short || verbose || network || !words.is_empty() {
            say("--make-key is given alone");
            return ExitCode::from(2);
        }
        return make_key();
    }
    if !words.is_empty() {
        if short || verbose || network {
            say("names are given alone, or with --json");
            return ExitCode::from(2);
        }
        return ask::main(&words, json);
    }
    if short && (json || verbose || network) {
        say("--short is given alone");
        return ExitCode::from(2);
    }
    if network {
        return network::main(json);
    }
    let report = report();
    let status = ExitCode::from(u8::from(!report.problems.is_empty()));
    if short {
        return print(&text::short(&report), status);
    }
    if json { print_json(&report, status) } else { print(&text::write(&report, verbose), status) }
}

fn print_json(value: &impl serde::Serialize, status: ExitCode) -> ExitCode {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&(text + "\n"), status),
        Err(error) => {
            say(error);
            ExitCode::FAILURE
        }
    }
}

/// Makes the key file, and says where it is.
fn make_key() -> ExitCode {
    let Some(path) = key_file::path(&openlapi_runtime::environment::process_env) else {
        say("this user has no home directory");
        return ExitCode::FAILURE;
    };
    let made = key_file::make(&path).map_err(|why| format!("{}: {why}", path.display()));
    match made.and_then(|()| key_file::read(&path).map_err(|why| why.detail)) {
        Ok(_) => print(&format!("{}\n", path.display()), ExitCode::SUCCESS),
        Err(why) => {
            say(why);
            ExitCode::FAILURE
        }
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Makes the whole report.
fn report() -> Report {
    let mut problems = Vec::new();
    let variables = variables::all(&mut problems);
    let place = place::look(&mut problems);
    let transports = transports::all(place.as_ref(), &mut problems);
    Report {
        schema: 1,
        version: VERSION,
        build: Build {
            commit: openlapi::config::build::COMMIT,
            date: openlapi::config::build::DATE,
            features: openlapi::config::build::FEATURES,
            profile: env!("OPENLAPI_PROFILE"),
            target: env!("OPENLAPI_TARGET"),
            rustc: env!("OPENLAPI_RUSTC"),
            library: library(),
        },
        machine: machine::look(),
        transports,
        limits: limits::all(),
        files: variables::of_files(),
        variables,
        unknown: variables::unknown(),
        place,
        problems,
    }
}

/// The library that was installed together with this program.
fn library() -> Option<String> {
    let library = prefix::library("liblapi_r.so.1").ok()?.canonicalize().ok()?;
    Some(library.display().to_string())
}

fn say(message: impl std::fmt::Display) {
    crate::said::say("lapi_info", message);
}

/// Writes to standard output. A reader that closes its end is not a failure.
fn print(text: &str, status: ExitCode) -> ExitCode {
    match patient::print(text) {
        Err(error) => {
            say(format_args!("standard output: {error}"));
            ExitCode::FAILURE
        }
        Ok(()) => status,
    }
}
