//! The harness itself: a job that hangs is ended, and its state is printed.

use openlapi_tests::{Job, compile_plain, named, workspace};

#[test]
fn a_job_that_hangs_says_where_and_is_ended() {
    let task = compile_plain("poe_task", &["tests/c/poe/task.c"], &[]);
    let mark = format!("HARNESS_TEST_MARK={}.", std::process::id());
    let (name, value) = mark.split_once('=').expect("it is a variable");
    for job in [Job::new(&task).procs(2), Job::direct(&task)] {
        let outcome = job.arg("beget").env(name, value).deadline(4).run();
        assert!(outcome.timed_out && outcome.status != Some(0), "{outcome}");
        assert!(outcome.standing.contains("poe_task") && outcome.standing.contains("state S"), "{outcome}");
        assert!(outcome.stdout.contains("task 0 waits"), "{outcome}");
        assert!(openlapi_tests::eventually(|| named(&mark).is_empty()), "left behind: {:?}", named(&mark));
    }
}

#[test]
fn output_that_stays_open_is_found() {
    // The program ends, and a process that it has started keeps its output open: the test must
    // detect this leak.
    let task = compile_plain("poe_task", &["tests/c/poe/task.c"], &[]);
    let mark = format!("HARNESS_LEAK_MARK={}.", std::process::id());
    let (name, value) = mark.split_once('=').expect("it is a variable");
    let outcome = Job::direct(task).arg("beget-and-leave").env(name, value).deadline(4).run();
    for pid in named(&mark) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
    }
    assert!(outcome.timed_out && outcome.status == Some(0), "{outcome}");
}

#[test]
fn a_failing_job_shows_all_it_wrote() {
    let outcome = Job::direct("sh").arg("-c").arg("echo said; echo complained >&2; exit 3").run();
    let shown = std::panic::catch_unwind(|| {
        outcome.ok();
    })
    .expect_err("3 is not 0");
    let shown = shown.downcast_ref::<String>().expect("a panic has a text");
    assert!(shown.contains("said") && shown.contains("complained") && shown.contains("Some(3)"), "{shown}");
}

/// Of a long output the end is what is read: a test that is skipped is named there, whichever its
/// lane.
#[test]
fn tests_that_were_skipped_are_counted_at_the_end_of_all_lanes() {
    let script = r#". ci/lanes.sh
        lane one printf 'SKIPPED: two: of them\nanything, SKIPPED\n'
        lane other sh -c "echo SKIPPED: one: of one lane; echo SKIPPED: two: of them; exit $0"
        lanes_end"#;
    for status in ["0", "1"] {
        let lanes = format!("cd '{}' && {script}", workspace().display());
        let outcome = Job::direct("bash").arg("-c").arg(lanes).arg(status).run();
        outcome.exited(status.parse().expect("a number"));
        let end = outcome.stdout.split("== skipped: ").nth(1).unwrap_or_else(|| panic!("{outcome}"));
        let lines: Vec<&str> = end.lines().take(3).map(str::trim).collect();
        assert_eq!(lines, ["3", "1 SKIPPED: one: of one lane", "2 SKIPPED: two: of them"], "{outcome}");
    }
}
