//! Hints about what looks like a mistake and is none by the rules: flags of other launchers, and misspelt variables.

use std::ffi::OsString;

use super::commands::machines_asked;
use super::error::{Error, say};
use super::exports::Export;
use super::options::{Setting, known_variables};
use super::settings::Settings;
use crate::spelling;

/// How other launchers, and hasty fingers, write `-procs`.
const PROCS: &[&str] = &["n", "np", "c", "proc", "procs", "nproc", "nprocs", "ntasks", "numproc", "tasks"];

/// Writes the hints and warnings about a request; `on_hosts`: for machines that are known.
pub(super) fn give(settings: &Settings, program: &[OsString], on_hosts: bool) -> Result<(), Error> {
    if settings.info_level()? == 0 {
        return Ok(());
    }
    if let Some(asked) = machines_asked(settings)?.filter(|_| !on_hosts) {
        say(&format!("warning: {asked}: this machine serves for all; all tasks run here"));
    }
    settings.exports().iter().try_for_each(Export::warn)?;
    let counted = ["MP_PROCS", "MP_NODES", "MP_TASKS_PER_NODE"].map(|name| settings.given(name));
    if !on_hosts
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
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let known = known_variables();
    for (name, meant) in names.filter_map(|name| misspelt(&name, &known).map(|meant| (name, meant))) {
        say(&format!("hint: the variable {name} has no effect; did you mean {meant}?"));
    }
    Ok(())
}

/// The words among a program's arguments that look like a flag for the number of tasks, and that number.
fn near_miss(program: &[OsString]) -> Option<[String; 2]> {
    let words: Vec<&str> = program.iter().skip(1).map(|word| word.to_str().unwrap_or("")).collect();
    let candidates = words.iter().enumerate().filter_map(|(at, word)| {
        let (flag, attached) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (*word, None),
        };
        let value = attached.or_else(|| words.get(at + 1).copied())?;
        let name = flag.strip_prefix("--").or_else(|| flag.strip_prefix('-'))?;
        let tasks = Setting::of_variable("MP_PROCS").check("", value).is_ok() && value != "1";
        (tasks && PROCS.contains(&name)).then(|| [flag.to_owned(), value.to_owned()])
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
