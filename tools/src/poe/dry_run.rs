//! What a job would be, without starting it (MP_DRY_RUN).

use std::fmt::Write as _;

use openlapi::config::files;

use super::affinity;
use super::bindings;
use super::commands::Command;
use super::debugger;
use super::environment::Environment;
use super::error::Error;
use super::exports::OF_POE;
use super::folder;
use super::limits;
use super::output::StdoutMode;
use super::remote;
use super::settings::Settings;
use super::streams;

/// What differs from job to job, or must not be seen.
const FRESH: &[&str] = &["LAPI_JOB_SECRET", "MP_PARTITION"];
/// What differs from task to task.
const OF_TASK: &[&str] = &["MP_CHILD", "MP_COMMON_TASKS"];

/// Describes the jobs of these commands, after the checks that come before a start.
pub(super) fn describe(
    settings: &Settings,
    steps: &[Vec<Command>],
    hosts: Option<&[String]>,
) -> Result<String, Error> {
    let mut text = String::new();
    for (number, commands) in steps.iter().enumerate() {
        if steps.len() > 1 {
            let _ = writeln!(text, "job {} of {}:", number + 1, steps.len());
        }
        text += &job(settings, commands, hosts)?;
    }
    Ok(text)
}

fn job(settings: &Settings, commands: &[Command], hosts: Option<&[String]>) -> Result<String, Error> {
    let tasks = commands.len();
    let stdout = settings.parsed("MP_STDOUTMODE")?.unwrap_or(StdoutMode::Unordered);
    let stdin = streams::stdin_mode(settings)?;
    streams::check(stdout, stdin, tasks)?;
    // What a start reads of the others.
    for variable in
        ["MP_LABELIO", "MP_TIMESTAMPS", "MP_TTY", "MP_ON_DEATH", "MP_REPORT_BINDINGS", "MP_OUTPUT_DIR"]
    {
        settings.text(variable)?;
    }
    limits::open_files(tasks)?;
    debugger::check_attached(settings, tasks)?;
    debugger::task(settings, tasks, hosts)?;
    let environment = Environment::new(settings, tasks, hosts)?;
    let (folder, bindings, launcher) = match hosts {
        Some(_) => (folder::of(settings)?, Vec::new(), remote::launcher(settings)?),
        None => {
            let folder = folder::here(settings)?.map_or_else(|| folder::of(settings), Ok)?;
            let sets = bindings::of(settings, settings.info_level()? > 0, tasks, None)?;
            (folder, affinity::described(&sets, tasks), "poe".to_owned())
        }
    };
    let mut text = format!("{tasks} tasks, started by {launcher}, in {}\n", folder.display());
    for (task, command) in commands.iter().enumerate() {
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        let host = hosts.map(|hosts| format!(" on {}", hosts[task])).unwrap_or_default();
        let binding = bindings.get(task).map_or("bound by its host", String::as_str);
        let _ = writeln!(text, "task {task}{host}, {binding}: {}", shell_words::join(&words));
        let own = environment.of(task).filter(|(name, _)| OF_TASK.contains(name));
        text += &variables(own.map(|(name, value)| (name.to_owned(), value)).collect());
    }
    let mut common: Vec<(String, String)> = environment
        .of(0)
        .filter(|(name, _)| !OF_TASK.contains(name) && *name != files::READ)
        .map(|(name, value)| {
            (
                name.to_owned(),
                if FRESH.contains(&name) { "(another one in each job)".to_owned() } else { value },
            )
        })
        .collect();
    let inherited = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| is_setting(name))?;
        Some((name, value.to_string_lossy().into_owned()))
    });
    let of_files =
        openlapi_runtime::environment::files().lines().map(|line| (line.name.clone(), line.value.clone()));
    for (name, value) in inherited.chain(of_files) {
        if common.iter().all(|(known, _)| *known != name) {
            common.push((name, value));
        }
    }
    // The tasks of a job that starts do not have it.
    common.retain(|(name, _)| name != "MP_DRY_RUN");
    common.sort_unstable();
    text += "every task\n";
    text += &variables(common);
    Ok(text)
}

/// The variables of the environment that are shown: those of `poe` and the library that `poe` does
/// not set itself.
fn is_setting(name: &str) -> bool {
    (name.starts_with("MP_") || name.starts_with("LAPI_")) && !OF_POE.contains(&name)
}

fn variables(list: Vec<(String, String)>) -> String {
    list.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "    {name}={value}");
        text
    })
}
