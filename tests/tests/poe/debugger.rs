//! A task under gdb (-gdb): by commands from a pipe, and on a terminal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openlapi_tests::{Terminal, build_dir, compile_plain, stage};

use crate::{file, job};

#[test]
fn gdb_stops_at_the_first_instruction_and_lets_the_task_end() {
    let commands = "run\ninfo inferiors\nbreak main\ncontinue\ninfo symbol $pc\ncontinue\n";
    let outcome = job(2, &["args", "x"]).poe_arg("-gdb").poe_arg("1").stdin(commands).run();
    let text = &outcome.ok().stdout;
    assert!(text.contains("exec'd") && text.contains("Breakpoint 2, "), "{outcome}");
    assert!(text.contains("main + ") || text.contains("main in section"), "{outcome}");
    assert!(text.contains("exited normally"), "{outcome}");
    assert_eq!(text.matches("x\n").count(), 2, "{outcome}");
    assert!(text.contains("The task runs already, at its first instruction: type continue\n"), "{outcome}");
}

#[test]
fn a_task_that_gdb_leaves_goes_on() {
    let outcome = job(2, &["args", "x"]).poe_arg("-gdb").poe_arg("0").stdin("quit\n").run();
    assert!(outcome.ok().stdout.contains("detached"), "{outcome}");
    assert_eq!(outcome.stdout.matches("x\n").count(), 2, "{outcome}");
}

#[test]
fn a_task_that_gdb_cannot_attach_to_goes_on() {
    let gdb = file("gdb_that_fails/gdb", "#!/bin/sh\necho \"gdb: $*\"\nexit 1\n");
    fs::set_permissions(&gdb, fs::Permissions::from_mode(0o755)).expect("it becomes a program");
    let path = format!("{}:/usr/bin:/bin", gdb.parent().expect("a folder").display());
    // gdb may end before the task waits for it: seen on a busy machine only.
    for _ in 0..10 {
        let outcome = job(2, &["args", "x"]).poe_arg("-gdb").poe_arg("1").env("PATH", &path).run();
        assert!(outcome.ok().stdout.contains("gdb: -q -p "), "{outcome}");
        assert_eq!(outcome.stdout.matches("x\n").count(), 2, "{outcome}");
    }
}

#[test]
fn what_cannot_be_debugged_is_refused() {
    let refused = |job: openlapi_tests::Job, text: &str| {
        let outcome = job.run();
        assert!(matches!(outcome.status, Some(1 | 2)) && outcome.stdout.is_empty(), "{outcome}");
        outcome.says(text);
    };
    let asked = |task: &str| job(2, &["args", "x"]).poe_arg("-gdb").poe_arg(task);
    refused(asked("2"), "poe: -gdb 2: the highest task number is 1");
    refused(asked("one"), "poe: -gdb: \"one\" is not a number from 0 to ");
    refused(asked("1").env("PATH", stage().join("share")), "poe: -gdb 1: gdb is not installed");
    let hosts = file("gdb_hosts", "one.invalid:1\ntwo.invalid:1\n");
    refused(
        asked("1").env("MP_HOSTFILE", hosts),
        "poe: -gdb 1: the task runs on two.invalid, and gdb would run here; -attach 1",
    );
    let waiting = |tasks: &str| job(2, &["args", "x"]).poe_arg("-attach").poe_arg(tasks);
    refused(waiting("0,2"), "poe: -attach 2: the highest task number is 1");
    refused(waiting("2").poe_arg("-dry_run"), "poe: -attach 2: the highest task number is 1");
    let missing =
        openlapi_tests::Job::new("/nonexistent/program").procs(1).poe_arg("-gdb").poe_arg("0").run();
    missing.exited(127).says("poe: /nonexistent/program: No such file or directory");
}

#[test]
fn keys_on_a_terminal_are_for_gdb() {
    let mut on = start("");
    on.expect("(gdb) ");
    on.types("continue\n");
    on.expect("Continuing.");
    on.expect("it runs");
    on.types("\x03");
    on.expect("received signal SIGINT");
    on.expect("(gdb) ");
    // Neither ends the job at the prompt, nor leaves it stopped.
    on.types("\x03");
    on.expect("(gdb) ");
    on.types("\x1a");
    on.types("set var stop = 1\n");
    on.types("continue\n");
    on.expect("exited normally");
    on.types("quit\n");
    assert_eq!(on.status(), Some(0), "{}", on.seen);
}

#[test]
fn a_signal_ends_gdb_and_the_job() {
    let mut on = start("");
    on.expect("(gdb) ");
    kill(Pid::from_raw(on.pid()), Signal::SIGTERM).expect("poe runs");
    assert_eq!(on.status(), Some(128 + 15), "{}", on.seen);
}

#[test]
fn a_task_in_gdb_is_not_killed_when_another_dies() {
    let sign = build_dir().join("tests/poe_debugger_dies");
    let _ = fs::remove_file(&sign);
    let mut on = start(sign.to_str().expect("a name"));
    on.expect("(gdb) ");
    file("poe_debugger_dies", "");
    on.expect("was ended by signal 9");
    // More than the time after which poe kills what is left.
    thread::sleep(Duration::from_secs(6));
    on.types("info inferiors\n");
    on.expect("process ");
    on.types("kill\n");
    on.types("y\n");
    on.types("quit\n");
    assert_eq!(on.status(), Some(128 + 9), "{}", on.seen);
}

/// A job of two tasks on a terminal of its own, task 1 under gdb.
fn start(what: &str) -> Terminal {
    let program = compile_plain("poe_debugged", &["tests/c/poe/debugged.c"], &["-g"]);
    let mut poe = Command::new(stage().join("bin/poe"));
    poe.arg(program).args([what, "-procs", "2", "-gdb", "1"]);
    Terminal::start(poe)
}
