//! The report of a job: which task waits for which at the top, then what each task has sent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use openlapi::wire::launcher::{Cause, Report};

use openlapi::base::ranges::tasks_named;

/// How many circles are named.
const CIRCLES: usize = 4;
/// A job of more tasks is summarized by their states.
/// As many of those that are missing have their details shown.
const NAMED: usize = 16;
/// Of how many tasks in one state the details are shown.
const EXAMPLES: usize = 2;

/// The state of a task.
pub(super) struct Task {
    pub number: usize,
    /// 0: it has not begun, or has ended.
    pub pid: i32,
    pub ended: bool,
    pub report: Option<Report>,
    /// The state of its process, as `/proc` has it.
    pub state: Option<char>,
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
    openlapi_runtime::environment::config().map_or(300, |config| config.stall_seconds)
}

/// The whole report. `complete`: the details of every task, however many are in one state.
pub(super) fn report(cause: &Cause, tasks: &[Task], complete: bool) -> String {
    let replied = tasks.iter().filter(|task| task.report.is_some()).count();
    let because = match cause {
        Cause::Stall => format!("no progress for {} s", stall_seconds()),
        Cause::Signal | Cause::Asked(_) | Cause::Looked(_) => "requested".to_owned(),
    };
    let mut text = format!("poe: job report ({because}): {replied} of {} tasks have replied\n", tasks.len());
    let mut add = |line: &str| text.extend(["  ", line, "\n"]);
    let (lines, missing) = collectives(tasks);
    lines.iter().for_each(|line| add(line));
    let circles = circles(tasks);
    for circle in &circles {
        let links: Vec<String> = (0..circle.len())
            .map(|at| format!("task {} waits for task {}", circle[at], circle[(at + 1) % circle.len()]))
            .collect();
        add(&format!("a circle of waiting tasks: {}", links.join(", ")));
    }
    let groups = groups(tasks);
    groups.iter().flat_map(Group::lines).for_each(|line| add(&line));
    let mut shown: BTreeSet<usize> = missing.into_iter().take(NAMED).collect();
    shown.extend(circles.iter().flatten());
    shown.extend(groups.iter().flat_map(|group| group.tasks.iter().take(EXAMPLES)));
    let mut left_out = 0;
    for task in tasks {
        if let Some(report) = &task.report {
            if !complete && tasks.len() > NAMED && !shown.contains(&task.number) {
                left_out += 1;
                continue;
            }
            let _ = writeln!(text, "--- task {} (pid {})", task.number, report.pid);
            for line in report.text.lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
    }
    if left_out > 0 {
        let _ = writeln!(
            text,
            "--- {left_out} more tasks, in the same states as those above (-infolevel 3: all)"
        );
    }
    let _ = writeln!(text, "--- poe (pid {})", std::process::id());
    text += "poe: end of the report\n";
    text
}

/// What a task does, in clauses without a subject.
fn clauses(task: &Task) -> Vec<String> {
    let state =
        task.state.map_or_else(String::new, |state| format!("{}, process state {state}", state_name(state)));
    match &task.report {
        None if task.pid == 0 && task.ended => vec!["has ended".to_owned()],
        None if task.pid == 0 => vec!["has not begun".to_owned()],
        None => vec![format!("has not replied ({state}, pid {})", task.pid)],
        Some(report) => report
            .clauses
            .iter()
            .map(|clause| match clause.starts_with("is not inside LAPI") {
                true => format!("{clause} ({state})"),
                false => clause.clone(),
            })
            .collect(),
    }
}

/// Tasks in one state.
struct Group {
    clauses: Vec<String>,
    /// Whether they wait for other tasks.
    wait: bool,
    tasks: Vec<usize>,
}

impl Group {
    fn lines(&self) -> impl Iterator<Item = String> {
        let subject = match self.tasks[..] {
            [task] => format!("task {task}"),
            _ => format!("{}: each", tasks_named(&self.tasks)),
        };
        self.clauses.iter().map(move |clause| format!("{subject} {clause}"))
    }
}

/// The tasks by their state. In a job of few tasks each has lines of its own; in one of many, those
/// that wait for no other task come first.
fn groups(tasks: &[Task]) -> Vec<Group> {
    let single = tasks.len() <= NAMED;
    let collect = |name_awaited: bool| {
        let mut groups: Vec<Group> = Vec::new();
        let mut known: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        for task in tasks {
            let mut clauses = clauses(task);
            if !name_awaited {
                clauses.iter_mut().for_each(omit_awaited);
            }
            let wait = task.report.as_ref().is_some_and(|report| !report.awaited.is_empty());
            match known.get(&clauses) {
                Some(&at) if !single => groups[at].tasks.push(task.number),
                _ => {
                    known.insert(clauses.clone(), groups.len());
                    groups.push(Group { clauses, wait, tasks: vec![task.number] });
                }
            }
        }
        groups
    };
    let mut groups = match collect(true) {
        groups if single || groups.len() <= NAMED => groups,
        _ => collect(false),
    };
    if !single {
        groups.sort_by_key(|group| group.wait);
    }
    groups
}

/// `waits in CALL for task N` without the task.
fn omit_awaited(clause: &mut String) {
    if let Some(at) = clause.find(" for task") {
        clause.replace_range(at.., " for other tasks");
    }
}

/// Collective calls that some tasks are in and others have not entered, and these others.
fn collectives(tasks: &[Task]) -> (Vec<String>, Vec<usize>) {
    let mut instances: BTreeMap<usize, Vec<(usize, u32, bool)>> = BTreeMap::new();
    for task in tasks {
        for collective in task.report.iter().flat_map(|report| &report.collectives) {
            let place = (task.number, collective.entered, collective.inside);
            instances.entry(collective.instance).or_default().push(place);
        }
    }
    let (mut lines, mut absent) = (Vec::new(), Vec::new());
    for (instance, places) in &instances {
        let Some(last) = places.iter().filter(|place| place.2).map(|place| place.1).max() else { continue };
        let (inside, missing): (Vec<_>, Vec<_>) = places.iter().partition(|place| place.1 >= last);
        if missing.is_empty() {
            continue;
        }
        let numbers = |places: &[&(usize, u32, bool)]| {
            tasks_named(&places.iter().map(|place| place.0).collect::<Vec<_>>())
        };
        let of = if instances.len() > 1 { format!(" of instance {}", instance + 1) } else { String::new() };
        lines.push(format!(
            "collective call number {last}{of}: entered by {}, not by {}",
            numbers(&inside),
            numbers(&missing)
        ));
        absent.extend(missing.iter().map(|place| place.0));
    }
    (lines, absent)
}

/// Circles of tasks each of which waits for the next, each beginning with its lowest task: the
/// first [`CIRCLES`] that are met. Of circles that share a task not every one is met, but at least
/// one.
fn circles(tasks: &[Task]) -> Vec<Vec<usize>> {
    let waits: BTreeMap<usize, &[usize]> =
        tasks.iter().filter_map(|task| Some((task.number, &task.report.as_ref()?.awaited[..]))).collect();
    let mut found = BTreeSet::new();
    let mut done = BTreeSet::new();
    for &start in waits.keys() {
        // The way from `start`, and how many of each task's awaited ones were tried.
        let mut way: Vec<(usize, usize)> = vec![(start, 0)];
        // Where each task is on the way.
        let mut places = BTreeMap::from([(start, 0)]);
        while let Some((at, tried)) = way.last_mut() {
            let next = waits.get(at).and_then(|awaited| awaited.get(*tried)).copied();
            *tried += 1;
            match next {
                Some(next) => match places.get(&next) {
                    Some(&begin) => {
                        let mut circle: Vec<usize> = way[begin..].iter().map(|(task, _)| *task).collect();
                        let lowest = (0..circle.len()).min_by_key(|at| circle[*at]).unwrap_or(0);
                        circle.rotate_left(lowest);
                        found.insert(circle);
                        if found.len() == CIRCLES {
                            return found.into_iter().collect();
                        }
                    }
                    None if !done.contains(&next) => {
                        places.insert(next, way.len());
                        way.push((next, 0));
                    }
                    None => {}
                },
                None => {
                    done.insert(*at);
                    places.remove(at);
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
        Task { number, pid: 100 + number as i32, ended: false, report: Some(report), state: Some('R') }
    }

    #[test]
    fn the_summary_names_the_tasks_and_those_that_they_wait_for() {
        let mut tasks = vec![
            task(0, "says waits in LAPI_Gfence for task 1\nfor 1\ncollective 0 4 in"),
            task(1, "says waits in LAPI_Gfence for task 2\nfor 2\ncollective 0 4 in"),
            task(2, "says is not inside LAPI\ncollective 0 3 out"),
        ];
        tasks.push(Task { number: 3, pid: 103, ended: false, report: None, state: Some('T') });
        tasks.push(Task { number: 4, pid: 0, ended: true, report: None, state: None });
        tasks.push(Task { number: 5, pid: 0, ended: false, report: None, state: None });
        let text = report(&Cause::Stall, &tasks, false);
        for line in [
            "poe: job report (no progress for 300 s): 3 of 6 tasks have replied",
            "  task 0 waits in LAPI_Gfence for task 1",
            "  task 2 is not inside LAPI (computing, process state R)",
            "  task 3 has not replied (stopped, process state T, pid 103)",
            "  task 4 has ended",
            "  task 5 has not begun",
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
        let text = report(&Cause::Signal, &two, false);
        assert!(
            text.contains("a circle of waiting tasks: task 0 waits for task 1, task 1 waits for task 0\n"),
            "{text}"
        );
    }

    /// As many tasks as a job may have on a machine, each of which waits for all others.
    #[test]
    fn of_many_circles_few_are_collected() {
        let all: Vec<Task> = (0..1024)
            .map(|number| {
                let others = (0..1024).filter(|other| *other != number);
                task(number, others.map(|other| format!("for {other}\n")).collect::<String>().trim_end())
            })
            .collect();
        let circles = circles(&all);
        assert_eq!(circles.len(), CIRCLES);
        for circle in &circles {
            assert!(circle.len() > 1 && circle.iter().min() == circle.first(), "{circle:?}");
        }
    }

    #[test]
    fn of_many_tasks_the_cause_comes_first_and_equal_states_are_one_line() {
        let mut tasks: Vec<Task> = (0..64)
            .map(|number| match number {
                1 => task(1, "says is not inside LAPI\ncollective 0 1 out"),
                0 => task(0, "says waits in LAPI_Gfence for task 1\nfor 1\ncollective 0 2 in"),
                _ => task(number, "says waits in LAPI_Gfence for task 0\nfor 0\ncollective 0 2 in"),
            })
            .collect();
        let text = report(&Cause::Signal, &tasks, false);
        let expected = [
            "poe: job report (requested): 64 of 64 tasks have replied",
            "  collective call number 2: entered by tasks 0, 2-63, not by task 1",
            "  task 1 is not inside LAPI (computing, process state R)",
            "  task 0 waits in LAPI_Gfence for task 1",
            "  tasks 2-63: each waits in LAPI_Gfence for task 0",
            "--- task 0 (pid 100)",
        ];
        assert_eq!(text.lines().take(expected.len()).collect::<Vec<_>>(), expected);
        assert!(
            text.contains("\n--- 60 more tasks, in the same states as those above (-infolevel 3: all)\n"),
            "{text}"
        );
        assert_eq!(text.matches("\n--- task ").count(), 4, "{text}");
        let all = report(&Cause::Signal, &tasks, true);
        assert_eq!(all.matches("\n--- task ").count(), 64, "{all}");

        // Tasks that wait for many different ones are still one line.
        for (number, waiting) in tasks.iter_mut().enumerate().skip(2) {
            let head = format!("says waits in LAPI_Gfence for task {}\nfor 0\ncollective 0 2 in", number - 1);
            *waiting = task(number, &head);
        }
        let text = report(&Cause::Signal, &tasks, false);
        assert!(text.contains("\n  tasks 0, 2-63: each waits in LAPI_Gfence for other tasks\n"), "{text}");
    }
}
