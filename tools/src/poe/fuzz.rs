//! What `poe` reads from outside, and what must hold of whatever it reads ([`openlapi::fuzz`]).

use std::collections::BTreeSet;
use std::ffi::OsString;

use openlapi::fuzz::{Reader, Seed, Target, seed};

use super::affinity::Affinity;
use super::commands::{commands, machines_asked, tasks_asked};
use super::hosts::List;
use super::input::StdinMode;
use super::options::TABLE;
use super::output::StdoutMode;
use super::remote::fuzz::{LINK, MIRROR};
use super::settings::{Flags, Settings};

/// The targets of `poe`.
pub const TARGETS: &[Target] = &[COMMANDS, HOSTS, LINK, MIRROR, SETTINGS];

const HOSTS: Target = Target { name: "hostfile", feed: hosts, seeds: host_files };
const COMMANDS: Target = Target { name: "command_file", feed: command_file, seeds: command_files };
const SETTINGS: Target = Target { name: "poe_settings", feed: settings, seeds: variables };

/// The input: the number of tasks, and a host file.
fn hosts(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    let tasks = usize::from(reader.byte()) + 1;
    let text = String::from_utf8_lossy(reader.0);
    let Ok(list) = List::parse("f", &text) else { return false };
    let distinct = list.distinct();
    assert!(distinct.len() <= list.tasks() && distinct.len() <= text.lines().count());
    assert!(distinct.iter().all(|host| !host.is_empty() && !host.contains(char::is_whitespace)));
    assert_eq!(distinct.iter().collect::<BTreeSet<_>>().len(), distinct.len());
    let placed = list.place(&Settings::new(Flags::new(), std::iter::empty()), tasks);
    assert_eq!(placed.as_ref().map_or(0, Vec::len), if tasks <= list.tasks() { tasks } else { 0 });
    if let Some(first) = placed.iter().flatten().next() {
        assert_eq!(first, distinct[0]);
    }
    true
}

fn host_files() -> Vec<Seed> {
    let file = |tasks: u8, text: &str| [&[tasks - 1], text.as_bytes()].concat();
    vec![
        seed("lines", file(3, "! comment\n# comment\n\none\n  two:2 extra words\none:1\n")),
        seed("addresses", file(2, "192.0.2.1:4\nfe80::1\n* comment\n")),
    ]
}

fn command_file(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Ok(found) = commands("f", &text) else { return false };
    assert!(found.len() <= text.lines().count());
    // What a shell is given so that it reads these words is read as these words.
    for command in &found {
        let words: Vec<&str> = command.iter().filter_map(|word| word.to_str()).collect();
        assert!(!words.is_empty() && words.len() == command.len());
        if !words.iter().any(|word| word.contains(['\n', '\r'])) {
            let again = commands("f", &shell_words::join(&words));
            let comment = words[0].starts_with('#');
            assert!(comment || again.is_ok_and(|again| again == [command.clone()]), "{words:?}");
        }
    }
    true
}

fn command_files() -> Vec<Seed> {
    vec![
        seed("words", "# first\n./a 1 'two words'\n\n  ./b  \\$x\n"),
        seed("quotes", "\"a b\"'c' d\\ e\n./x \"\\\"\"\n"),
    ]
}

/// The input: `NAME=VALUE` in each line. A value that the table accepts is one that is understood.
fn settings(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let variables = pairs.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let settings = Settings::new(Flags::new(), variables);
    let mut right = TABLE.iter().all(|setting| settings.text(setting.variable).is_ok());
    right &= settings.info_level().is_ok();
    right &= settings.parsed::<StdoutMode>("MP_STDOUTMODE").is_ok();
    right &= settings.parsed::<StdinMode>("MP_STDINMODE").is_ok();
    right &= settings.parsed::<Affinity>("MP_TASK_AFFINITY").is_ok();
    right &= settings.parsed::<usize>("MP_PROCS").is_ok();
    let list = List::parse("f", "a\nb:3\na\n").expect("the file is right");
    for hosts in [None, Some(&list)] {
        let Ok(tasks) = tasks_asked(&settings, hosts) else { return false };
        if let Some(tasks) = tasks {
            assert!(tasks >= 1);
            if let Ok(placed) = list.place(&settings, tasks) {
                assert_eq!(placed.len(), tasks);
            }
        }
    }
    right && machines_asked(&settings).is_ok()
}

fn variables() -> Vec<Seed> {
    let lines = |variables: &[&str]| variables.join("\n");
    vec![
        seed("tasks", lines(&["MP_PROCS=4", "MP_NODES=2", "MP_TASKS_PER_NODE=2", "MP_LABELIO=yes"])),
        seed(
            "streams",
            lines(&["MP_STDOUTMODE=ordered", "MP_STDINMODE=2", "MP_INFOLEVEL=3", "MP_PGMMODEL=mpmd"]),
        ),
        seed("affinity", lines(&["MP_TASK_AFFINITY=CPU:2", "MP_CPU_USE=unique", "MP_TASKS_PER_NODE=3"])),
    ]
}
