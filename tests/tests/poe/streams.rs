//! Standard input and output of the tasks.

use openlapi_tests::{Job, stage};

use crate::{job, sorted, task};

#[test]
fn labels_stand_before_every_line_of_both_outputs() {
    let outcome =
        job(2, &["lines", "100", "50"]).poe_arg("-labelio").poe_arg("yes").env("MP_INFOLEVEL", "0").run();
    let expected: Vec<String> = ["a", "b"]
        .iter()
        .enumerate()
        .flat_map(|(task, letter)| vec![format!("  {task}:{}", letter.repeat(49)); 100])
        .collect();
    assert_eq!(sorted(&outcome.ok().stdout), expected);
    assert_eq!(sorted(&outcome.stderr), expected);
}

#[test]
fn ordered_output_comes_task_after_task() {
    let outcome = job(5, &["lines", "30000", "80"]).poe_arg("-stdoutmode").poe_arg("ordered").run();
    let expected: String =
        ["a", "b", "c", "d", "e"].iter().map(|letter| (letter.repeat(79) + "\n").repeat(30000)).collect();
    assert!(outcome.ok().stdout == expected, "{} bytes", outcome.stdout.len());
}

#[test]
fn one_tasks_output_can_be_chosen() {
    let outcome =
        job(3, &["lines", "10", "5"]).poe_arg("-stdoutmode").poe_arg("2").env("MP_INFOLEVEL", "0").run();
    assert_eq!(outcome.ok().stdout, "cccc\n".repeat(10));
    assert_eq!(outcome.stderr.lines().count(), 30);
}

#[test]
fn much_output_arrives_whole() {
    let outcome = job(4, &["lines", "80000", "100"]).env("MP_INFOLEVEL", "0").deadline(120).run();
    for text in [&outcome.ok().stdout, &outcome.stderr] {
        assert_eq!(text.len(), 4 * 80000 * 100);
        for letter in ["a", "b", "c", "d"] {
            let line = letter.repeat(99);
            assert_eq!(text.lines().filter(|found| **found == line).count(), 80000);
        }
    }
}

#[test]
fn a_question_is_shown_before_it_is_answered() {
    let mut asked = job(1, &["ask"]).stdin("somebody\n").start();
    assert_eq!(asked.lines(1), ["name? it is somebody"]);
    asked.wait().ok();
    // Nobody answers before the question can be read.
    let mut open = std::process::Command::new(stage().join("bin/poe"));
    let mut open = open.arg(task()).arg("ask");
    open = open.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut open = open.spawn().expect("poe can be run");
    let mut question = [0; 6];
    let stdout = open.stdout.as_mut().expect("it is a pipe");
    std::io::Read::read_exact(stdout, &mut question).expect("the question comes");
    assert_eq!(&question, b"name? ");
    drop(open.stdin.take());
    assert_eq!(open.wait().expect("poe ends").code(), Some(93));
}

#[test]
fn standard_input_goes_where_it_should() {
    let text = "line\n".repeat(100_000);
    let lengths = |mode: &str, tasks| {
        let outcome = job(tasks, &["copy"]).poe_arg("-stdinmode").poe_arg(mode).stdin(&*text).run();
        outcome.ok().stdout.len()
    };
    assert_eq!(
        job(3, &["copy"]).stdin(&*text).poe_arg("-stdoutmode").poe_arg("0").run().ok().stdout.len(),
        text.len()
    );
    assert_eq!(lengths("2", 3), text.len());
    assert_eq!(lengths("all", 3), 3 * text.len());
    assert_eq!(lengths("none", 3), 0);
}

#[test]
fn a_reader_that_goes_away_ends_the_job() {
    let script = r#""$0" -procs 2 "$1" lines 100000000 100 2>/dev/null | head -n 1"#;
    let outcome = Job::direct("sh").arg("-c").arg(script).arg(stage().join("bin/poe")).arg(task()).run();
    assert_eq!(outcome.ok().stdout.lines().count(), 1);
}
