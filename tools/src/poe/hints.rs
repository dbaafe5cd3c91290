//! Hints about what looks like a mistake and is none by the rules: flags of other launchers, and
//! misspelt variables.

use std::ffi::OsString;
use std::path::Path;

use super::commands::{machines_asked, tasks_asked};
use super::error::{Error, say};
use super::exports::Export;
use super::hosts::List;
use super::options::{Setting, acting_flags, flags, known_variables};
use super::settings::Settings;
use crate::spelling;
use openlapi_runtime::environment::files;

/// Flags of other launchers, and those of `poe` for the same.
const OTHERS: &[(&[&str], &str)] = &[
    (&["host", "H", "hosts", "machinefile", "nodelist", "w"], "-hostfile FILE"),
    (&["N", "ppn", "npernode", "perhost"], "-nodes N, and -tasks_per_node N"),
    (&["genv", "env", "export"], "-x VAR=VALUE"),
    (&["genvall"], "-x VAR; the tasks on this machine have all variables"),
    (&["oversubscribe", "overcommit"], "none is needed: tasks may share processors (-task_affinity no)"),
    (&["bind-to", "map-by", "cpu-bind"], "-task_affinity WHAT: CORE, CPU, NUMA or LIST:…"),
    (&["tag-output", "l", "label", "prepend-rank"], "-labelio yes"),
    (&["cwd", "chdir", "D"], "-wdir DIR"),
];

/// What `poe` has for a flag of another launcher, or which of its flags was meant.
pub(super) fn meant(word: &str) -> Option<String> {
    let name = word.split('=').next().unwrap_or(word);
    let name = name.strip_prefix("--").or_else(|| name.strip_prefix('-'))?;
    if name.is_empty() {
        return None;
    }
    if PROCS.contains(&name) {
        return Some("poe's flag is -procs N".to_owned());
    }
    if let Some((_, ours)) = OTHERS.iter().find(|(theirs, _)| theirs.contains(&name)) {
        return Some(format!("poe's flag is {ours}"));
    }
    if word.starts_with("--") && flags().any(|flag| flag == name) {
        return Some(format!("poe's flag is -{name}"));
    }
    nearest_flag(name, flags()).map(|flag| format!("did you mean -{flag}?"))
}

/// The one of these flags that is spelled most like this name, which is no flag of `poe`; short
/// ones are too much like others.
fn nearest_flag(name: &str, of: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    if name.len() < 5 || flags().any(|flag| flag == name) {
        return None;
    }
    spelling::nearest(name, &of.filter(|flag| flag.len() > 4).collect::<Vec<_>>())
}

/// How other launchers, and hasty fingers, write `-procs`.
const PROCS: &[&str] = &["n", "np", "c", "proc", "procs", "nproc", "nprocs", "ntasks", "numproc", "tasks"];

const TIME_LIMIT: &str = "MP_TIME_LIMIT";

/// The host file that IBM's poe reads by default.
const HOST_LIST: &str = "host.list";

/// Writes the hints and warnings about a request for these machines.
pub(super) fn give(settings: &Settings, program: &[OsString], list: Option<&List>) -> Result<(), Error> {
    if settings.info_level()? == 0 {
        return Ok(());
    }
    let on_hosts = list.is_some_and(|list| !list.is_here());
    if let Some(asked) = machines_asked(settings)?.filter(|_| !on_hosts) {
        say(&format!("warning: {asked}: this machine serves for all; all tasks run here"));
    }
    if let Some(hosts) = unused_hosts(settings)?.filter(|_| !on_hosts) {
        say(&format!(
            "hint: all tasks run on this one of the {hosts} hosts of the Slurm allocation; for all: poe -nodes {hosts}"
        ));
    }
    if Path::new(HOST_LIST).is_file() && uses_this_host(settings)? {
        say(&format!(
            "hint: ./{HOST_LIST} is not read unless it is asked for, and all tasks run here; for its hosts: poe -hostfile {HOST_LIST}"
        ));
    }
    settings.exports().iter().try_for_each(Export::warn)?;
    let counted = ["MP_PROCS", "MP_NODES", "MP_TASKS_PER_NODE"].map(|name| settings.given(name));
    if list.is_none_or(|list| list.is_here() && list.tasks() == 1)
        && counted.iter().all(|given| matches!(given, Ok(None)))
        && let Some(words) = near_miss(program)
    {
        let named = program[0].to_string_lossy();
        say(&format!(
            "hint: \"{}\" was passed to {named}, and one task was started; poe's flag is -procs {}",
            words.join(" "),
            words[1]
        ));
    }
    if let Some(words) = late_limit(program)
        && matches!(settings.given(TIME_LIMIT), Ok(None))
    {
        let named = program[0].to_string_lossy();
        say(&format!(
            "hint: \"{}\" was passed to {named}; for a time limit of the job: poe -timeout {} {named}",
            words.join(" "),
            words[1]
        ));
    }
    let known = known_variables();
    let files = files();
    files.faults.iter().for_each(|fault| say(&format!("hint: {fault}")));
    for line in files.lines() {
        if let Some(fault) = spelling::unknown_in_file(line, &known) {
            say(&format!("hint: {}: {fault}", line.place));
        }
    }
    for (word, flag) in misspelt_flags(program) {
        let named = program[0].to_string_lossy();
        say(&format!("hint: \"{word}\" was passed to {named}; did you mean poe's flag -{flag}?"));
    }
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for (name, meant) in names.filter_map(|name| misspelt(&name, &known).map(|meant| (name, meant))) {
        say(&format!("hint: the variable {name} has no effect; did you mean {meant}?"));
    }
    Ok(())
}

/// How many hosts the Slurm allocation has, of which a job of several tasks uses this one without
/// having been asked to.
fn unused_hosts(settings: &Settings) -> Result<Option<usize>, Error> {
    let hosts = std::env::var("SLURM_JOB_NUM_NODES").ok().and_then(|hosts| hosts.parse().ok());
    let here = uses_this_host(settings)?;
    Ok(hosts.filter(|hosts| *hosts > 1 && here))
}

/// Whether a job has several tasks, and nothing was said of their hosts.
fn uses_this_host(settings: &Settings) -> Result<bool, Error> {
    let asked = settings.given("MP_HOSTFILE")?.is_some() || settings.given("MP_NODES")?.is_some();
    let several = tasks_asked(settings, None)?.is_some_and(|tasks| tasks > 1);
    Ok(several && !asked)
}

/// The words among a program's arguments that are almost flags of `poe`, and these.
fn misspelt_flags(program: &[OsString]) -> Vec<(&str, &'static str)> {
    let words = program.iter().skip(1).filter_map(|word| word.to_str());
    words
        .filter_map(|word| {
            let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
            let name = name.split('=').next().unwrap_or(name);
            // Of one that was cut, or one letter off: programs have flags of their own. A flag of
            // poe that does nothing is not missed.
            let flag = nearest_flag(name, acting_flags())?;
            (strsim::osa_distance(name, flag) == 1).then_some((word, flag))
        })
        .collect()
}

/// The words among a program's arguments that look like a flag for the number of tasks,
/// and that number.
fn near_miss(program: &[OsString]) -> Option<[String; 2]> {
    let more_than_one =
        |value: &str| value != "1" && Setting::of_variable("MP_PROCS").check("", value).is_ok();
    find_flag(program, PROCS, more_than_one)
}

/// The words among a program's arguments that are poe's flag for a time limit before
/// the program only.
fn late_limit(program: &[OsString]) -> Option<[String; 2]> {
    find_flag(program, &["timeout"], |value| Setting::of_variable(TIME_LIMIT).check("", value).is_ok())
}

/// The first flag with one of these names, and its value if that is right.
fn find_flag(program: &[OsString], names: &[&str], right: impl Fn(&str) -> bool) -> Option<[String; 2]> {
    let words: Vec<&str> = program.iter().skip(1).map(|word| word.to_str().unwrap_or("")).collect();
    let candidates = words.iter().enumerate().filter_map(|(at, word)| {
        let (flag, attached) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (*word, None),
        };
        let value = attached.or_else(|| words.get(at + 1).copied())?;
        let name = flag.strip_prefix("--").or_else(|| flag.strip_prefix('-'))?;
        (names.contains(&name) && right(value)).then(|| [flag.to_owned(), value.to_owned()])
    });
    candidates.into_iter().next()
}

/// The variable of `poe` or of the library that a name of theirs was meant to be.
fn misspelt(name: &str, known: &[&'static str]) -> Option<&'static str> {
    spelling::misspelt(name, known).filter(|_| name.starts_with("MP_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(words: &[&str]) -> Option<String> {
        near_miss(&words.iter().map(OsString::from).collect::<Vec<_>>()).map(|words| words.join(" "))
    }

    #[test]
    fn flags_of_other_launchers_are_noticed() {
        for (words, found) in [
            (&["./a", "-np", "4"][..], Some("-np 4")),
            (&["./a", "x", "-n", "4", "y"], Some("-n 4")),
            (&["./a", "--ntasks=8"], Some("--ntasks 8")),
            (&["./a", "-proc", "4"], Some("-proc 4")),
            (&["./a", "-n", "1000000"], None),
            (&["./a", "-n", "many"], None),
            (&["./a", "-n"], None),
            (&["./a", "-size", "4"], None),
            (&["./a"], None),
        ] {
            assert_eq!(near(words).as_deref(), found, "{words:?}");
        }
    }

    #[test]
    fn flags_that_are_almost_ours_are_noticed() {
        let words: Vec<OsString> =
            ["./a", "-timout", "5", "--labelo", "-profil=x", "-size", "-verbose", "-timeout", "-procsx"]
                .map(OsString::from)
                .into();
        let found =
            [("-timout", "timeout"), ("--labelo", "labelio"), ("-profil=x", "profile"), ("-procsx", "procs")];
        assert_eq!(misspelt_flags(&words), found);
        // Those that are accepted and do nothing are likelier the program's.
        let words: Vec<OsString> = ["./a", "--tmp-dir=/x", "-statistic", "-print-env", "-puls", "-tmpdir"]
            .map(OsString::from)
            .into();
        assert_eq!(misspelt_flags(&words), []);
        for (word, ours) in [
            ("-host", "poe's flag is -hostfile FILE"),
            ("-machinefile=h", "poe's flag is -hostfile FILE"),
            ("-N", "poe's flag is -nodes N, and -tasks_per_node N"),
            ("-genv", "poe's flag is -x VAR=VALUE"),
            ("--nprocs", "poe's flag is -procs N"),
            ("-labelo", "did you mean -labelio?"),
            ("--labelio", "poe's flag is -labelio"),
            ("--tty=no", "poe's flag is -tty"),
            ("--procs", "poe's flag is -procs N"),
        ] {
            assert_eq!(meant(word).as_deref(), Some(ours), "{word}");
        }
        assert_eq!(meant("-zzz"), None);
    }

    #[test]
    fn a_time_limit_behind_the_program_is_noticed() {
        let late = |words: &[&str]| {
            late_limit(&words.iter().map(OsString::from).collect::<Vec<_>>()).map(|words| words.join(" "))
        };
        assert_eq!(late(&["./a", "x", "-timeout", "60"]).as_deref(), Some("-timeout 60"));
        assert_eq!(late(&["./a", "--timeout=60"]).as_deref(), Some("--timeout 60"));
        for words in [&["./a", "-timeout", "never"][..], &["./a", "-timeout"], &["./a", "timeout", "60"]] {
            assert_eq!(late(words), None, "{words:?}");
        }
    }

    #[test]
    fn misspelt_variables_are_noticed() {
        for (wrong, right) in [
            ("MP_PROC", Some("MP_PROCS")),
            ("MP_INFOLVEL", Some("MP_INFOLEVEL")),
            ("MP_LABEL_IO", Some("MP_LABELIO")),
            ("MP_PROCS", None),
            ("MP_SOMETHING_ELSE", None),
            ("OMP_PROCS", None),
        ] {
            assert_eq!(misspelt(wrong, &known_variables()), right, "{wrong}");
        }
    }
}
