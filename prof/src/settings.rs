//! The environment variables of the profiler.

use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;

/// How many events a task keeps for the trace, unless LAPIPROF_EVENTS says otherwise.
const EVENTS: usize = 100_000;
/// The variables that there are.
const NAMES: [&str; 3] = ["LAPIPROF_OUT", "LAPIPROF_EVENTS", "LAPIPROF_TABLE"];

/// What the environment says.
#[derive(Debug)]
pub struct Settings {
    /// LAPIPROF_OUT: where the report goes, as an absolute path.
    pub out: Option<PathBuf>,
    /// LAPIPROF_EVENTS: how many events a task keeps.
    pub events: usize,
    /// LAPIPROF_TABLE: who prints a table.
    pub table: Table,
    /// What is wrong with them.
    wrong: Vec<String>,
}

/// Who prints a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Every task.
    All,
    /// No task.
    Nobody,
    /// One task.
    Task(u32),
}

impl Table {
    /// Whether this task does.
    pub fn wanted(self, task: u32) -> bool {
        self == Self::All || self == Self::Task(task)
    }
}

/// The settings, read once.
pub fn get() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| read(&|name| env::var(name).ok()))
}

/// Says on standard error what is wrong with them.
pub fn warn() {
    let unknown = env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with("LAPIPROF_") && !NAMES.contains(&name.as_str()))
        .map(|name| format!("{name} is no variable of the profiler"));
    for wrong in get().wrong.iter().cloned().chain(unknown) {
        eprintln!("lapiprof: {wrong}");
    }
}

fn read(variable: &dyn Fn(&str) -> Option<String>) -> Settings {
    let mut wrong = Vec::new();
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let out = set("LAPIPROF_OUT").map(|dir| std::path::absolute(&dir).unwrap_or_else(|_| dir.into()));
    let events = set("LAPIPROF_EVENTS").and_then(|value| {
        let number = value.parse().ok().filter(|number| *number <= 1 << 30);
        if number.is_none() {
            wrong.push(format!("LAPIPROF_EVENTS is a number up to {}, not \"{value}\"", 1 << 30));
        }
        number
    });
    let table = match set("LAPIPROF_TABLE").as_deref() {
        None | Some("all") => Table::All,
        Some("none") => Table::Nobody,
        Some(value) => value.parse().map(Table::Task).unwrap_or_else(|_| {
            wrong.push(format!("LAPIPROF_TABLE is all, none or the number of a task, not \"{value}\""));
            Table::All
        }),
    };
    Settings { out, events: events.unwrap_or(EVENTS), table, wrong }
}

#[cfg(test)]
mod tests {
    use super::{EVENTS, Table, read};

    #[test]
    fn defaults_values_and_mistakes() {
        let none = read(&|_| None);
        assert_eq!((none.out, none.events, none.table, none.wrong.len()), (None, EVENTS, Table::All, 0));
        let some = read(&|name| {
            let value = match name {
                "LAPIPROF_OUT" => "/x",
                "LAPIPROF_EVENTS" => "0",
                _ => "3",
            };
            Some(value.to_owned())
        });
        assert_eq!((some.out, some.events, some.table), (Some("/x".into()), 0, Table::Task(3)));
        assert!(!Table::Task(3).wanted(2) && Table::Task(3).wanted(3) && Table::All.wanted(7));
        let wrong = read(&|name| (name != "LAPIPROF_OUT").then(|| "many".to_owned()));
        assert_eq!((wrong.events, wrong.table, wrong.wrong.len()), (EVENTS, Table::All, 2));
    }
}
