//! The report of a job: which task waits for which at the top, then what each task has sent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use openlapi::config;
use openlapi::wire::launcher::{Cause, Report};

/// How many circles are named.
const CIRCLES: usize = 4;
/// How many tasks of a list are named.
const NAMED: usize = 16;

/// The state of a task.
pub(super) struct Task {
    pub number: usize,
    /// 0: it has not started, or has ended.
    pub pid: i32,
    pub report: Option<Report>,
    /// The state of its process, as `/proc` has it.
    pub state: Option<char>,
}

/// The state of a process.
pub(super) fn state_of(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything and ends at the last bracket.
    stat.rsplit(')').next()?.trim_start().chars().next()
}

fn state_name(state: char) -> &'static str {
    match state {
        'R' => "computing",
        'S' => "asleep",
        'D' => "in the kernel",
        'T' => "stopped",
        't' => "held by a debugger",
        'Z' | 'X' => "dead",
        _ => "idle",
    }
}

/// After how long without progress the library reports a stall.
fn stall_seconds() -> u32 {
    config::Config::from_env(&config::process_env).map_or(300, |config| config.stall_seconds)
}

/// The whole report.
pub(super) fn report(cause: &Cause, tasks: &[Task]) -> String {
    let replied = tasks.iter().filter(|task| task.report.is_some()).count();
    let because = match cause {
        Cause::Stall => format!("no progress for {} s", stall_seconds()),
        Cause::Signal | Cause::Asked(_) => "requested".to_owned(),
    };
    let mut text = format!("poe: job report ({because}): {replied} of {} tasks have replied\n", tasks.len());
    let mut add = |line: &str| text.extend(["  ", line, "\n"]);
    tasks.iter().flat_map(sentences).for_each(|line| add(&line));
    for line in collectives(tasks) {
        add(&line);
    }
    for circle in circles(tasks).iter().take(CIRCLES) {
        let links: Vec<String> = (0..circle.len())
            .map(|at| format!("task {} waits for task {}", circle[at], circle[(at + 1) % circle.len()]))
            .collect();
        add(&format!("a circle of waiting tasks: {}", links.join(", ")));
    }
    for task in tasks {
        if let Some(report) = &task.report {
            let _ = writeln!(text, "--- task {} (pid {})", task.number, report.pid);
            for line in report.text.lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
    }
    text += "poe: end of the report\n";
    text
}

/// What a task does, in sentences.
fn sentences(task: &Task) -> Vec<String> {
    let number = task.number;
    let state =
        task.state.map_or_else(String::new, |state| format!("{}, process state {state}", state_name(state)));
    match &task.report {
        None if task.pid == 0 => vec![format!("task {number} has ended")],
        None => vec![format!("task {number} has not replied ({state}, pid {})", task.pid)],
        Some(report) => report
            .clauses
            .iter()
            .map(|clause| match clause.starts_with("is not inside LAPI") {
                true => format!("task {number} {clause} ({state})"),
                false => format!("task {number} {clause}"),
            })
            .collect(),
    }
}

/// Collective calls that some tasks are in and others have not entered.
fn collectives(tasks: &[Task]) -> Vec<String> {
    let mut instances: BTreeMap<usize, Vec<(usize, u32, bool)>> = BTreeMap::new();
    for task in tasks {
        for collective in task.report.iter().flat_map(|report| &report.collectives) {
            let place = (task.number, collective.entered, collective.inside);
            instances.entry(collective.instance).or_default().push(place);
        }
    }
    let mut lines = Vec::new();
    for (instance, places) in &instances {
        let Some(last) = places.iter().filter(|place| place.2).map(|place| place.1).max() else { continue };
        let (inside, missing): (Vec<_>, Vec<_>) = places.iter().partition(|place| place.1 >= last);
        if missing.is_empty() {
            continue;
        }
        let numbers =
            |places: &[&(usize, u32, bool)]| list(&places.iter().map(|place| place.0).collect::<Vec<_>>());
        let of = if instances.len() > 1 { format!(" of instance {}", instance + 1) } else { String::new() };
        lines.push(format!(
            "collective call number {last}{of}: entered by {}, not by {}",
            numbers(&inside),
            numbers(&missing)
        ));
    }
    lines
}

fn list(tasks: &[usize]) -> String {
    let named: Vec<String> = tasks.iter().take(NAMED).map(usize::to_string).collect();
    let more = match tasks.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("task{} {}{more}", if tasks.len() == 1 { "" } else { "s" }, named.join(", "))
}

/// Circles of tasks each of which waits for the next, each beginning with its lowest task. Of circles that share a task not
/// every one is found, but at least one.
fn circles(tasks: &[Task]) -> Vec<Vec<usize>> {
    let waits: BTreeMap<usize, &[usize]> =
        tasks.iter().filter_map(|task| Some((task.number, &task.report.as_ref()?.awaited[..]))).collect();
    let mut found = BTreeSet::new();
    let mut done = BTreeSet::new();
    for &start in waits.keys() {
        // The way from `start`, and how many of each task's awaited ones were tried.
        let mut way: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((at, tried)) = way.last_mut() {
            let next = waits.get(at).and_then(|awaited| awaited.get(*tried)).copied();
            *tried += 1;
            match next {
                Some(next) => match way.iter().position(|(task, _)| *task == next) {
                    Some(begin) => {
                        let mut circle: Vec<usize> = way[begin..].iter().map(|(task, _)| *task).collect();
                        let lowest = (0..circle.len()).min_by_key(|at| circle[*at]).unwrap_or(0);
                        circle.rotate_left(lowest);
                        found.insert(circle);
                    }
                    None if !done.contains(&next) => way.push((next, 0)),
                    None => {}
                },
                None => {
                    done.insert(*at);
                    way.pop();
                }
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use openlapi::wire::launcher::FromTask;

    fn task(number: usize, head: &str) -> Task {
        let text = format!("LAPI-REPORT 1 stall\npid {}\n{head}\n\nline of {number}", 100 + number);
        let Some(FromTask::Report(report)) = FromTask::decode(&text) else { panic!("a report") };
        Task { number, pid: 100 + number as i32, report: Some(report), state: Some('R') }
    }

    #[test]
    fn the_summary_names_the_tasks_and_those_that_they_wait_for() {
        let mut tasks = vec![
            task(0, "says waits in LAPI_Gfence for task 1\nfor 1\ncollective 0 4 in"),
            task(1, "says waits in LAPI_Gfence for task 2\nfor 2\ncollective 0 4 in"),
            task(2, "says is not inside LAPI\ncollective 0 3 out"),
        ];
        tasks.push(Task { number: 3, pid: 103, report: None, state: Some('T') });
        tasks.push(Task { number: 4, pid: 0, report: None, state: None });
        let text = report(&Cause::Stall, &tasks);
        for line in [
            "poe: job report (no progress for 300 s): 3 of 5 tasks have replied",
            "  task 0 waits in LAPI_Gfence for task 1",
            "  task 2 is not inside LAPI (computing, process state R)",
            "  task 3 has not replied (stopped, process state T, pid 103)",
            "  task 4 has ended",
            "  collective call number 4: entered by tasks 0, 1, not by task 2",
            "--- task 1 (pid 101)",
            "  line of 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("circle"), "{text}");
        assert!(text.ends_with("poe: end of the report\n"));
    }

    #[test]
    fn circles_are_found_wherever_they_begin() {
        let waiting = |edges: &[(usize, &[usize])]| -> Vec<Task> {
            let head = |list: &[usize]| list.iter().map(|to| format!("for {to}\n")).collect::<String>();
            edges.iter().map(|(from, to)| task(*from, head(to).trim_end())).collect()
        };
        assert_eq!(circles(&waiting(&[(0, &[1]), (1, &[0])])), [[0, 1]]);
        assert_eq!(circles(&waiting(&[(0, &[2]), (2, &[3]), (3, &[1, 2])])), [[2, 3]]);
        assert_eq!(circles(&waiting(&[(0, &[1, 2]), (1, &[2]), (2, &[])])), Vec::<Vec<usize>>::new());
        let two = waiting(&[(0, &[1]), (1, &[0]), (2, &[3, 0]), (3, &[4]), (4, &[2])]);
        assert_eq!(circles(&two), vec![vec![0, 1], vec![2, 3, 4]]);
        let text = report(&Cause::Signal, &two);
        assert!(
            text.contains("a circle of waiting tasks: task 0 waits for task 1, task 1 waits for task 0\n"),
            "{text}"
        );
    }
}
