//! What `poe` says.

use openlapi_tests::{Job, stage};

fn poe(arguments: &[&str]) -> Job {
    arguments.iter().fold(Job::direct(stage().join("bin/poe")), Job::arg).deadline(30)
}

#[test]
fn wrong_usage_has_a_status_of_its_own() {
    for (arguments, says) in [
        (&["-nonsense", "true"][..], "poe: unknown flag -nonsense; see poe -h\n"),
        (&["-procs", "x", "true"], "-procs: \"x\" is not a number"),
        (&["true", "-procs"], "-procs needs a value"),
        (&["-host", "a,b", "true"], "poe: unknown flag -host; poe's flag is -hostfile FILE\n"),
        (&["-machinefile", "f", "true"], "poe's flag is -hostfile FILE"),
        (&["-N", "2", "true"], "poe's flag is -nodes N, and -tasks_per_node N"),
        (&["--oversubscribe", "true"], "tasks may share processors"),
        (&["-genv", "A", "1", "true"], "poe's flag is -x VAR=VALUE"),
        (&["-labelo", "yes", "true"], "did you mean -labelio?"),
    ] {
        poe(arguments).run().exited(2).says(says);
    }
    // What cannot be done is another matter.
    poe(&["-hostfile", "/nonexistent", "true"]).run().exited(1);
}

#[test]
fn flags_that_are_almost_poes_are_noticed_behind_the_program() {
    for (word, flag) in [("-timout", "-timeout"), ("-labelo", "-labelio"), ("-profil", "-profile")] {
        let outcome = poe(&["true", word, "5"]).run();
        outcome
            .ok()
            .says(&format!("poe: hint: \"{word}\" was passed to true; did you mean poe's flag {flag}?\n"));
    }
    assert_eq!(poe(&["true", "-size", "-verbose"]).run().ok().stderr, "");
}

#[test]
fn the_stacks_of_two_tasks_are_not_mixed() {
    // Equal but for one line: each is shown whole, or not at all.
    let script = r#"printf "LAPI: task $MP_CHILD: signal 11\nLAPI: task $MP_CHILD: #0 f$((MP_CHILD % 2))\nLAPI: task $MP_CHILD: #1 main\n" >&2"#;
    let outcome = poe(&["-procs", "4", "sh", "-c", script]).run();
    let lines: Vec<&str> = outcome.ok().stderr.lines().filter(|line| line.starts_with("LAPI: ")).collect();
    assert_eq!(lines.len(), 6, "{outcome}");
    for stack in lines.chunks(3) {
        let task = &stack[0][..13];
        assert!(stack.iter().all(|line| line.starts_with(task)), "{outcome}");
    }
}
