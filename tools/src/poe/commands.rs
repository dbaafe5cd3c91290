//! Which program each task runs: one for all, or one of its own (MP_PGMMODEL, MP_CMDFILE).

use std::ffi::OsString;
use std::io::Read;

use super::error::Error;
use super::settings::Settings;

/// A program and its arguments.
pub(super) type Command = Vec<OsString>;

/// What is to be run: each step is a job, and has one command per task.
#[derive(Debug)]
pub(super) struct Commands {
    pub steps: Vec<Vec<Command>>,
    /// The commands came from standard input: the tasks get none.
    pub stdin_is_spent: bool,
}

/// Finds the commands: on the command line, in the command file, or else on standard input.
pub(super) fn plan(settings: &Settings, program: Command) -> Result<Commands, Error> {
    let mpmd = settings.text("MP_PGMMODEL")?.is_some_and(|model| model.eq_ignore_ascii_case("mpmd"));
    let asked = tasks_asked(settings)?;
    if !program.is_empty() {
        if mpmd {
            let named = program[0].to_string_lossy();
            return Err(Error::asked(format!(
                "MP_PGMMODEL is mpmd: the programs stand in the file MP_CMDFILE, {named} cannot stand here"
            )));
        }
        return Ok(Commands { steps: vec![vec![program; asked.unwrap_or(1)]], stdin_is_spent: false });
    }
    let file = settings.text("MP_CMDFILE")?;
    let (named, text) = match file {
        Some(file) => (file, std::fs::read_to_string(file)),
        None => {
            let mut text = String::new();
            ("standard input", std::io::stdin().read_to_string(&mut text).map(|_| text))
        }
    };
    let lines = commands(named, &text.map_err(|error| Error::system(named, error))?)?;
    if lines.is_empty() {
        let help = "poe -h tells how to name a program";
        return Err(Error::asked(match file {
            Some(file) => format!("{file} holds no command; {help}"),
            None => format!("there is no program to run; {help}"),
        }));
    }
    let steps = if mpmd {
        let tasks = asked.unwrap_or(lines.len());
        if tasks != lines.len() {
            let lines = lines.len();
            return Err(Error::asked(format!("{named} holds {lines} commands, and there are {tasks} tasks")));
        }
        vec![lines]
    } else {
        lines.into_iter().map(|command| vec![command; asked.unwrap_or(1)]).collect()
    };
    Ok(Commands { steps, stdin_is_spent: file.is_none() })
}

/// The number of tasks that the user asked for, if he did.
fn tasks_asked(settings: &Settings) -> Result<Option<usize>, Error> {
    let number = |variable| -> Result<Option<usize>, Error> {
        // Checked: the table says that it is a number.
        Ok(settings.given(variable)?.and_then(|text| text.parse().ok()))
    };
    let procs = number("MP_PROCS")?;
    let nodes = number("MP_NODES")?.unwrap_or(1);
    if nodes > 1 {
        return Err(Error::asked(format!(
            "MP_NODES is {nodes}: running on several hosts is not built yet, this host is the only one"
        )));
    }
    match (procs, number("MP_TASKS_PER_NODE")?) {
        (Some(procs), Some(each)) if procs != each => Err(Error::asked(format!(
            "MP_PROCS is {procs}, but MP_TASKS_PER_NODE asks for {each} on the one host"
        ))),
        (procs, each) => Ok(procs.or(each)),
    }
}

/// The commands of a file: one a line, words as in a shell, empty lines and lines that begin with # left out.
fn commands(file: &str, text: &str) -> Result<Vec<Command>, Error> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
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
            (&[("MP_NODES", "2")], None),
        ] {
            assert_eq!(tasks_asked(&Settings::of(variables)).ok(), tasks, "{variables:?}");
        }
    }

    #[test]
    fn a_program_on_the_command_line_is_for_all_tasks() {
        let program = vec![OsString::from("./a")];
        let plan = plan(&Settings::of(&[("MP_PROCS", "3")]), program.clone()).expect("the request is right");
        assert_eq!(plan.steps, [vec![program.clone(), program.clone(), program]]);
        assert!(!plan.stdin_is_spent);
    }
}
