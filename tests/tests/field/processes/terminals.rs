//! A job on a terminal that it shares with a shell.

use std::process::Command;

use openlapi_tests::{Terminal, stage};

#[test]
fn a_job_in_the_background_leaves_what_is_typed_to_the_shell() {
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env("PS1", "ready> ").env("POE", stage().join("bin/poe"));
    let mut on = Terminal::start(shell);
    on.expect("ready> ");
    on.types("\"$POE\" -procs 2 cat | sed -u s/^/task:/\n");
    on.types("first\n");
    on.expect("task:first");
    for line in ["echo shell-$((1+1))\n", "echo shell-$((2+3))\n"] {
        on.types("\x1a");
        on.expect("Stopped");
        on.expect("ready> ");
        on.types("bg\n");
        on.expect("ready> ");
        on.types(line);
        on.expect(if line.contains("1+1") { "shell-2" } else { "shell-5" });
        on.expect("ready> ");
        on.types("fg\n");
        on.types("again\n");
        on.expect("task:again");
    }
    on.types("\x04");
    on.expect("ready> ");
    on.types("exit\n");
    assert_eq!(on.status(), Some(0), "{}", on.seen);
    assert!(!on.seen.contains("task:echo") && !on.seen.contains("task:fg"), "{}", on.seen);
}
