//! The environment variables of the profiler.

use openlapi::base::patient;
use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// How many events a task keeps for the trace, unless LAPIPROF_EVENTS is set.
const EVENTS: usize = 100_000;
/// After how many seconds a task writes its part again, unless LAPIPROF_INTERVAL is set.
const INTERVAL: u64 = 30;
/// Of how many short transfers one is timed, unless LAPIPROF_SAMPLE is set. A prime: transfers to
/// several tasks in turn are all timed.
const SAMPLE: u64 = 61;
/// The most seconds that LAPIPROF_INTERVAL may name.
const LONGEST: u64 = 86_400;
/// All variables.
const NAMES: [&str; 5] =
    ["LAPIPROF_OUT", "LAPIPROF_EVENTS", "LAPIPROF_INTERVAL", "LAPIPROF_SAMPLE", "LAPIPROF_TABLE"];

/// The values of the environment.
#[derive(Debug)]
pub struct Settings {
    /// LAPIPROF_OUT: where the report goes, as an absolute path.
    pub out: Option<PathBuf>,
    /// LAPIPROF_EVENTS: how many events a task keeps.
    pub events: usize,
    /// LAPIPROF_INTERVAL: after which time a task writes its part again; `None`: only at its end.
    pub interval: Option<Duration>,
    /// LAPIPROF_SAMPLE: of how many short transfers one is timed.
    pub sample: u64,
    /// LAPIPROF_TABLE: which tasks print a table.
    pub table: Table,
    /// Messages about values that are not valid.
    wrong: Vec<String>,
}

/// Which tasks print a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Every task.
    All,
    /// No task.
    Never,
    /// One task.
    Task(u32),
}

impl Table {
    /// Whether this task prints one.
    pub fn wanted(self, task: u32) -> bool {
        self == Self::All || self == Self::Task(task)
    }
}

/// The settings, read once.
pub fn get() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| read(&|name| env::var(name).ok()))
}

/// Reports values that are not valid, and unknown names, on standard error.
pub fn warn() {
    let unknown = env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with("LAPIPROF_") && !NAMES.contains(&name.as_str()))
        .map(|name| format!("unknown variable {name}"));
    for wrong in get().wrong.iter().cloned().chain(unknown) {
        patient::say(format!("lapiprof: {wrong}\n").as_bytes());
    }
}

fn read(variable: &dyn Fn(&str) -> Option<String>) -> Settings {
    let mut wrong = Vec::new();
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let out = set("LAPIPROF_OUT").map(|dir| std::path::absolute(&dir).unwrap_or_else(|_| dir.into()));
    let mut number = |name, default: u64, most: u64| {
        let Some(value) = set(name) else { return default };
        let number = value.parse().ok().filter(|number| *number <= most);
        if number.is_none() {
            wrong.push(format!("{name}={value} is not valid: allowed are numbers from 0 to {most}"));
        }
        number.unwrap_or(default)
    };
    let events = number("LAPIPROF_EVENTS", EVENTS as u64, 1 << 30) as usize;
    let interval = number("LAPIPROF_INTERVAL", INTERVAL, LONGEST);
    let sample = number("LAPIPROF_SAMPLE", SAMPLE, 1000);
    let table = match set("LAPIPROF_TABLE").as_deref() {
        None | Some("all") => Table::All,
        Some("none") => Table::Never,
        Some(value) => value.parse().map(Table::Task).unwrap_or_else(|_| {
            wrong.push(format!(
                "LAPIPROF_TABLE={value} is not valid: allowed are all, none, or a task number"
            ));
            Table::All
        }),
    };
    let interval = (interval != 0).then(|| Duration::from_secs(interval));
    Settings { out, events, interval, sample, table, wrong }
}

#[cfg(test)]
mod tests {
    use super::{EVENTS, INTERVAL, SAMPLE, Table, read};
    use std::time::Duration;

    #[test]
    fn defaults_values_and_mistakes() {
        let none = read(&|_| None);
        assert_eq!((none.out, none.events, none.table, none.wrong.len()), (None, EVENTS, Table::All, 0));
        assert_eq!(none.interval, Some(Duration::from_secs(INTERVAL)));
        let some = read(&|name| {
            let value = match name {
                "LAPIPROF_OUT" => "/x",
                "LAPIPROF_EVENTS" | "LAPIPROF_INTERVAL" => "0",
                _ => "3",
            };
            Some(value.to_owned())
        });
        assert_eq!((some.out, some.events, some.table), (Some("/x".into()), 0, Table::Task(3)));
        assert_eq!((some.interval, some.sample, none.sample), (None, 3, SAMPLE));
        assert!(!Table::Task(3).wanted(2) && Table::Task(3).wanted(3) && Table::All.wanted(7));
        let wrong = read(&|name| (name != "LAPIPROF_OUT").then(|| "many".to_owned()));
        assert_eq!((wrong.events, wrong.table, wrong.wrong.len()), (EVENTS, Table::All, 4));
        assert_eq!(wrong.interval, Some(Duration::from_secs(INTERVAL)));
    }
}
