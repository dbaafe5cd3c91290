//! The start of one job. What `poe` does while the tasks run is in `watch`.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::prctl;

use super::affinity;
use super::bindings;
use super::carrier::{Carrier, Style};
use super::causes::Causes;
use super::claims::Claims;
use super::commands::Command;
use super::debugger::{self, Debugger};
use super::ends::Ends;
use super::environment::Environment;
use super::error::{Error, say};
use super::folder;
use super::input::Input;
use super::limits;
use super::memory_limit::MemoryLimit;
use super::openings::Openings;
use super::output::Prefix;
use super::record;
use super::remote;
use super::reports::{self, Gatherer};
use super::settings::Settings;
use super::signals::Signals;
use super::streams;
use super::supervisor::{Supervisor, Work};
use super::time_limit::TimeLimit;
use super::watch::{End, Job};

/// Runs one job: a task for each command, on this machine or on these hosts.
pub(super) fn run(
    settings: &Settings,
    commands: &[Command],
    hosts: Option<&[String]>,
    stdin_is_spent: bool,
    input: &mut Input,
    signals: &Signals,
    limit: Option<TimeLimit>,
) -> Result<End, Error> {
    let tasks = commands.len();
    let ordered = settings.text("MP_STDOUTMODE")?.is_some_and(|mode| mode.eq_ignore_ascii_case("ordered"));
    let info_level = settings.info_level()?;
    let style = Style {
        prefix: Prefix { time: settings.yes("MP_TIMESTAMPS")?, label: settings.yes("MP_LABELIO")? },
        ordered,
        fold: info_level <= 1,
        record: record::folder(settings)?,
    };
    debugger::check_attached(settings, tasks)?;
    let debugged = debugger::task(settings, tasks, hosts)?;
    let environment = Environment::new(settings, tasks, hosts)?;
    let open_files = limits::open_files(tasks)?;
    let folder = if hosts.is_none() { folder::here(settings)? } else { None };
    let mut claims = Claims::open();
    // If the supervisor dies, its descendants become ours.
    prctl::set_child_subreaper(true)
        .map_err(|errno| Error::system("cannot become the subreaper of the tasks", errno))?;
    let (supervisor, ours, sockets, memory, elsewhere) = match hosts {
        Some(hosts) => {
            let (supervisor, ours, elsewhere) =
                remote::start(settings, commands, hosts, &environment, stdin_is_spent, signals, limit)?;
            (supervisor, ours, (0..tasks).map(|_| None).collect(), None, Some(elsewhere))
        }
        None => {
            let affinity = bindings::of(settings, info_level > 0, tasks, Some(&mut claims))?;
            if settings.yes("MP_REPORT_BINDINGS")? {
                for (task, binding) in affinity::described(&affinity, tasks).iter().enumerate() {
                    say(&format!("task {task}: {binding}"));
                }
            }
            let partition = environment.of(0).find(|(name, _)| *name == "MP_PARTITION");
            let partition = partition.map(|(_, value)| value).unwrap_or_default();
            // Before the descriptors of all tasks: its number is low.
            let openings = Openings::create(tasks, &partition).ok();
            let (ours, streams) = streams::open(settings, tasks, stdin_is_spent)?;
            let (sockets, reports) = reports::open(tasks);
            let inherited = signals.inherited();
            let folder = folder.as_deref();
            let held = debugged.map(|task| (task, debugger::held(&commands[task])));
            let work = Work {
                commands,
                held,
                folder,
                environment,
                streams,
                reports,
                looks: false,
                affinity,
                inherited,
                open_files,
                openings,
            };
            // Before the first task, which may end at once.
            let memory = MemoryLimit::watch();
            let (supervisor, (ours, sockets, memory)) = Supervisor::start(work, (ours, sockets, memory))?;
            (supervisor, ours, sockets, memory, None)
        }
    };
    let reports = Gatherer::start(sockets, elsewhere, info_level >= 3)?;
    let output = Carrier::start(ours.sources, style, own(io::stdout().as_fd())?, own(io::stderr().as_fd())?)?;
    if !ours.inputs.is_empty() {
        input.copy_to_all(ours.inputs)?;
    }
    let on_death = settings.text("MP_ON_DEATH")?;
    let survive = on_death.is_some_and(|what| what.eq_ignore_ascii_case("continue"));
    let pids = vec![0; tasks];
    let ends = Ends::new(info_level);
    let (ending, failure, end_at, status, causes) = (None, None, None, None, Causes::default());
    let folder = folder.unwrap_or_default();
    let job = Job {
        commands,
        folder,
        hosts,
        info_level,
        ends,
        survive,
        supervisor,
        reports,
        pids,
        status,
        causes,
        end_at,
        ending,
        limit,
        memory,
        debugger: Debugger::of(debugged),
        failure,
        unsaid: false,
    };
    job.watch(signals, output)
}

/// A copy of an output of this process.
fn own(output: BorrowedFd<'_>) -> Result<File, Error> {
    output
        .try_clone_to_owned()
        .map(File::from)
        .map_err(|error| Error::system("cannot copy the descriptor of an output", error))
}
