//! The samples under poe: what they print, and that their README shows it.

use openlapi_tests::Job;

const PUT_GET: &str = env!("CARGO_BIN_EXE_put_get");
const ACTIVE_MESSAGE: &str = env!("CARGO_BIN_EXE_active_message");
const MEASUREMENTS: &str = env!("CARGO_BIN_EXE_measurements");
const ACCUMULATE: &str = env!("CARGO_BIN_EXE_accumulate");

/// Runs a sample and compares what each task prints; with two tasks, the README shows the same.
fn check(program: &str, expected: impl Fn(u32, u32) -> Vec<String>) {
    for tasks in [1u32, 2, 3] {
        let outcome = Job::new(program).procs(tasks as usize).run();
        outcome.ok();
        assert_eq!(outcome.complaints(), "", "{outcome}");
        for task in 0..tasks {
            let mark = format!("task {task}: ");
            let printed: Vec<&str> = outcome.stdout.lines().filter(|line| line.starts_with(&mark)).collect();
            assert_eq!(printed, expected(task, tasks), "{outcome}");
        }
    }
    let readme = include_str!("../README");
    for line in (0..2).flat_map(|task| expected(task, 2)) {
        assert!(readme.lines().any(|shown| shown.trim() == line), "the README does not show \"{line}\"");
    }
}

#[test]
fn put_get() {
    let of = |task: u32| (0..6).map(|number| 10 * task + number).collect::<Vec<u32>>();
    check(PUT_GET, |me, tasks| {
        let before = (me + tasks - 1) % tasks;
        vec![format!("task {me}: arrived: {:?}", of(before)), format!("task {me}: got back: {:?}", of(me))]
    });
}

#[test]
fn active_message() {
    check(ACTIVE_MESSAGE, |me, _| {
        let sums: Vec<u32> = (1..=6).map(|number| number + 100 * me).collect();
        vec![format!("task {me}: the sums: {sums:?}")]
    });
}

#[test]
fn accumulate() {
    check(ACCUMULATE, |me, tasks| {
        let sum = 100 * tasks * (tasks + 1) / 2;
        let line = format!("task 0: the sum is {sum}, and {} tickets were taken", 100 * tasks);
        if me == 0 { vec![line] } else { Vec::new() }
    });
}

#[test]
fn measurements() {
    check(MEASUREMENTS, |me, tasks| {
        let all: Vec<u32> = (0..tasks).flat_map(|task| (0..=task).map(move |at| 10 * task + at)).collect();
        let mean = f64::from(all.iter().sum::<u32>()) / all.len() as f64;
        let most = all[all.len() - 1];
        let mut lines =
            vec![format!("task {me}: {} measurements; mean {mean:.2}, from 0 to {most}", all.len())];
        if me == 0 {
            let counts: Vec<u32> = (1..=tasks).collect();
            lines.push(format!("task 0: measurements by task: {counts:?}"));
        }
        lines
    });
}
