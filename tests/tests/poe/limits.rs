//! Limits of the system: raised, or reported; and the time limit of a job.

use openlapi_tests::{Job, Marked, stage};

use crate::{early, job, refusing, sorted, task};

/// `poe` with these limits of open files (as `ulimit` takes them) and arguments.
fn limited(limits: &str, arguments: &[&str]) -> Job {
    let script = format!(r#"ulimit {limits} && exec "$0" "$@""#);
    let job = Job::direct("sh").arg("-c").arg(script).arg(stage().join("bin/poe"));
    arguments.iter().fold(job, Job::arg)
}

#[test]
fn the_limit_of_open_files_is_raised_where_it_is_too_low() {
    let limits = |tasks, limit| {
        let arguments = ["-procs", tasks, "/bin/sh", "-c", "ulimit -n"];
        limited(&format!("-S -n {limit}"), &arguments).run().ok().stdout.clone()
    };
    assert_eq!(limits("32", "40"), "384\n".repeat(32));
    // Where it is high enough it stays.
    assert_eq!(limits("2", "1000"), "1000\n".repeat(2));
}

#[test]
fn a_later_job_has_the_limit_of_open_files_that_poe_was_started_with() {
    // It is enough for the tasks, and poe itself needs more.
    let steps = limited("-S -n 210", &["-procs", "20"]).stdin("sh -c 'ulimit -n'\nsh -c 'ulimit -n'\n");
    assert_eq!(steps.run().ok().stdout, "210\n".repeat(40));
}

#[test]
fn a_low_soft_limit_does_not_keep_lapi_from_starting() {
    let program = early::program().display().to_string();
    let outcome = limited("-S -n 64", &["-procs", "24", &program, "all"]).run();
    assert_eq!(outcome.ok().stdout.matches("PASS").count(), 24, "{outcome}");
}

#[test]
fn a_job_that_the_limit_has_no_room_for_is_refused_with_numbers() {
    let outcome = limited("-n 100", &["-procs", "32", "/bin/true"]).run();
    outcome.exited(1).says("poe: 32 tasks need about 320 open files; the limit is 100 (ulimit -Hn)\n");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
}

#[test]
fn a_thread_or_process_that_cannot_be_started_is_named_with_its_limit() {
    for (what, says) in [
        (
            "thread",
            "poe: cannot start the thread that makes reports: process limit reached (ulimit -u, pids.max)",
        ),
        ("fork", "poe: cannot start the supervisor process: process limit reached (ulimit -u, pids.max)"),
    ] {
        let outcome = refusing(job(2, &["args"]), what).run();
        // Each limit that there is has its number.
        let said = outcome.exited(1).stderr.trim_end().replace(|digit: char| digit.is_ascii_digit(), "");
        assert_eq!(said.replace(" ,", ",").replace(" )", ")"), says, "{outcome}");
    }
}

#[test]
fn what_every_task_says_is_shown_once() {
    let program = early::program();
    // The line about the others has the beginning of it.
    let refused = "LAPI_SPIN is \"fast\"; allowed: auto, or a whole number";
    let outcome = Job::new(&program).procs(6).arg("refused").env("LAPI_SPIN", "fast").run();
    assert_eq!(outcome.ok().stderr.matches(refused).count(), 1, "{outcome}");
    outcome.says("poe: the same from tasks ");
    let outcome =
        Job::new(&program).procs(6).arg("refused").env("LAPI_SPIN", "fast").env("MP_INFOLEVEL", "2").run();
    assert_eq!(outcome.ok().stderr.matches(refused).count(), 6, "{outcome}");
    // The program's own messages are not changed.
    let outcome = Job::new(task()).procs(3).arg("lines").arg("1").arg("4").run();
    assert_eq!(sorted(&outcome.ok().stderr), ["aaa", "bbb", "ccc"]);
}

#[test]
fn a_job_ends_at_its_time_limit_and_the_tasks_that_still_ran_are_named() {
    let script = "if [ $MP_CHILD = 1 ]; then exit 3; fi; echo waits; exec sleep 100";
    let job = |procs| Job::new("/bin/sh").procs(procs).arg("-c").arg(script).deadline(30);
    let outcome = Marked::start(job(4).poe_arg("-timeout").poe_arg("5")).over();
    assert_eq!(outcome.exited(124).stdout, "waits\n".repeat(3), "{outcome}");
    outcome.says("poe: time limit of 5 s (-timeout) reached: tasks 0, 2, 3 still run; ending them\n");
    // By the variable, of a task that does not react, and at the lowest message level.
    let deaf = crate::job(1, &["deaf"]).deadline(30).env("MP_TIME_LIMIT", "1").env("MP_INFOLEVEL", "0");
    let outcome = Marked::start(deaf).over();
    outcome.exited(124).says("poe: time limit of 1 s (-timeout) reached: task 0 still runs; ending it\n");
    // A job that ends before is not concerned; the commands of a file have the time together.
    crate::job(2, &["leave", "0", "5"]).poe_arg("-timeout").poe_arg("60").run().exited(5);
    let steps =
        Job::poe().poe_arg("-timeout").poe_arg("3").stdin("sleep 1\nsleep 100\necho never\n").deadline(30);
    assert_eq!(Marked::start(steps).over().exited(124).stdout, "");
}
