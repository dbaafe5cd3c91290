//! Which program each task runs: the same one, or one of its own (MP_PGMMODEL, MP_CMDFILE).

use std::ffi::OsString;
use std::path::Path;

use crate::named_file;

use super::error::Error;
use super::hosts::List;
use super::options::Setting;
use super::settings::Settings;
use openlapi::base::patient::Patient;

/// A program and its arguments.
pub(super) type Command = Vec<OsString>;

/// What is run: each step is a job, and has one command per task.
#[derive(Debug)]
pub(super) struct Commands {
    pub steps: Vec<Vec<Command>>,
    /// The commands came from standard input: the tasks get none.
    pub stdin_is_spent: bool,
}

/// Finds the commands: on the command line, in the command file, or else on standard input.
pub(super) fn plan(settings: &Settings, program: Command, asked: Option<usize>) -> Result<Commands, Error> {
    let mpmd = is_mpmd(settings)?;
    if !program.is_empty() {
        if mpmd {
            let named = program[0].to_string_lossy();
            return Err(Error::asked(format!(
                "-pgmmodel mpmd: the command file names the programs; remove {named} from the command line"
            )));
        }
        refuse_missing_file(settings)?;
        return Ok(Commands { steps: vec![vec![program; asked.unwrap_or(1)]], stdin_is_spent: false });
    }
    let file = settings.text("MP_CMDFILE")?;
    let (named, text) = match file {
        Some(file) => (file, named_file::read(Path::new(file))),
        None => ("standard input", named_file::read_from(Patient(std::io::stdin()))),
    };
    let lines = commands(named, &text.map_err(|error| Error::system(named, error))?)?;
    if lines.is_empty() {
        return Err(Error::asked(match file {
            Some(file) => format!("{file} has no commands; see poe -h"),
            None => "no program given; usage: poe [flags] program [arguments]".to_owned(),
        }));
    }
    let steps = if mpmd {
        let tasks = asked.unwrap_or(lines.len());
        if tasks != lines.len() {
            let lines = lines.len();
            return Err(Error::asked(format!("{named} has {lines} commands, but the job has {tasks} tasks")));
        }
        vec![lines]
    } else {
        lines.into_iter().map(|command| vec![command; asked.unwrap_or(1)]).collect()
    };
    Ok(Commands { steps, stdin_is_spent: file.is_none() })
}

fn is_mpmd(settings: &Settings) -> Result<bool, Error> {
    Ok(settings.text("MP_PGMMODEL")?.is_some_and(|model| model.eq_ignore_ascii_case("mpmd")))
}

/// A program on the command line takes precedence over the command file; but one that does not
/// exist is a mistake.
fn refuse_missing_file(settings: &Settings) -> Result<(), Error> {
    match settings.text("MP_CMDFILE")? {
        Some(file) => std::fs::metadata(file).map(drop).map_err(|error| Error::system(file, error)),
        None => Ok(()),
    }
}

/// The number of tasks that the user asked for, if any. Without `hosts` all of them run on this
/// machine, whatever number of machines is given.
pub(super) fn tasks_asked(settings: &Settings, hosts: Option<&List>) -> Result<Option<usize>, Error> {
    let number = |variable| -> Result<Option<usize>, Error> {
        // Checked: the table says that it is a number.
        Ok(settings.given(variable)?.and_then(|text| text.parse().ok()))
    };
    let (procs, nodes) = (number("MP_PROCS")?, number("MP_NODES")?);
    let each = number("MP_TASKS_PER_NODE")?;
    let product = match (nodes, each) {
        (None, None) if procs.is_none() && !is_mpmd(settings)? => {
            let Some(hosts) = hosts else { return Ok(None) };
            let said = format!("{}, the number of tasks", hosts.source());
            Setting::of_variable("MP_PROCS").check(&said, &hosts.tasks().to_string())?;
            return Ok(Some(hosts.tasks()));
        }
        (None, None) => return Ok(procs),
        // Without their number there are as many machines as the tasks need.
        (None, Some(each)) => match procs {
            None => hosts.map_or(1, List::machines) * each,
            Some(procs) => {
                if procs % each == 0 {
                    procs
                } else {
                    each
                }
            }
        },
        (Some(nodes), None) => procs.unwrap_or(nodes),
        (Some(nodes), Some(each)) => nodes * each,
    };
    match procs {
        Some(procs) if procs != product => Err(Error::asked(match nodes {
            Some(nodes) => format!(
                "-procs {procs}, but -nodes {nodes} and -tasks_per_node {} make {product}",
                each.unwrap_or(1)
            ),
            None => format!("-procs {procs} is not a multiple of -tasks_per_node {product}"),
        })),
        _ => {
            Setting::of_variable("MP_PROCS").check("-nodes times -tasks_per_node", &product.to_string())?;
            Ok(Some(product))
        }
    }
}

/// A request for several machines, in words.
pub(super) fn machines_asked(settings: &Settings) -> Result<Option<String>, Error> {
    let given =
        |variable| Ok::<_, Error>(settings.given(variable)?.and_then(|text| text.parse::<usize>().ok()));
    let (nodes, each) = (given("MP_NODES")?.unwrap_or(1), given("MP_TASKS_PER_NODE")?);
    let tasks = tasks_asked(settings, None)?.unwrap_or(1);
    Ok(match each {
        _ if nodes > 1 => Some(format!("-nodes {nodes}")),
        Some(each) if each < tasks => Some(format!("-tasks_per_node {each}")),
        _ => None,
    })
}

/// The commands of a file: one a line, words as in a shell, empty lines and lines that begin
/// with # left out.
pub(super) fn commands(file: &str, text: &str) -> Result<Vec<Command>, Error> {
    // Blanks at the end of a line may be escaped.
    let lines = (1..).zip(text.lines().map(|line| line.trim_start_matches([' ', '\t'])));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            let words = shell_words::split(line)
                .map_err(|error| Error::asked(format!("{file}, line {number}: {error}: {line}")))?;
            Ok(words.into_iter().map(OsString::from).collect())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_file_has_a_command_a_line() {
        let found = commands("f", "# first\n./a 1 'two words'\n\n  ./b  \\$x\n").expect("the file is right");
        assert_eq!(found, [vec!["./a", "1", "two words"], vec!["./b", "$x"]]);
        // What is escaped at the end of a line is a part of the word, and so is a blank that no
        // shell takes for one.
        let found = commands("f", "\t./a x\\  \n./b \u{b}\n").expect("the file is right");
        assert_eq!(found, [vec!["./a", "x "], vec!["./b", "\u{b}"]]);
        assert!(commands("f", "./a\n./b 'open").expect_err("no end").to_string().contains("f, line 2"));
    }

    #[test]
    fn the_number_of_tasks_comes_from_any_of_three() {
        for (variables, tasks) in [
            (&[][..], Some(None)),
            (&[("MP_PROCS", "4")], Some(Some(4))),
            (&[("MP_TASKS_PER_NODE", "3")], Some(Some(3))),
            (&[("MP_NODES", "1"), ("MP_TASKS_PER_NODE", "3"), ("MP_PROCS", "3")], Some(Some(3))),
            (&[("MP_TASKS_PER_NODE", "3"), ("MP_PROCS", "4")], None),
            (&[("MP_TASKS_PER_NODE", "2"), ("MP_PROCS", "4")], Some(Some(4))),
            (&[("MP_NODES", "2")], Some(Some(2))),
            (&[("MP_NODES", "2"), ("MP_PROCS", "2")], Some(Some(2))),
            (&[("MP_NODES", "3"), ("MP_TASKS_PER_NODE", "4")], Some(Some(12))),
            (&[("MP_NODES", "3"), ("MP_TASKS_PER_NODE", "4"), ("MP_PROCS", "8")], None),
            (&[("MP_NODES", "1000"), ("MP_TASKS_PER_NODE", "1000")], None),
        ] {
            assert_eq!(tasks_asked(&Settings::of(variables), None).ok(), tasks, "{variables:?}");
        }
    }

    #[test]
    fn a_program_on_the_command_line_is_for_all_tasks() {
        let program = vec![OsString::from("./a")];
        let plan = plan(&Settings::of(&[]), program.clone(), Some(3)).expect("the request is right");
        assert_eq!(plan.steps, [vec![program.clone(), program.clone(), program]]);
        assert!(!plan.stdin_is_spent);
    }
}
