//! Standard input and output of the tasks.

use std::fs;

use nix::sys::signal::Signal;
use openlapi_tests::{Job, stage};

use crate::{file, holding_forks, job, refusing, sorted, task};

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
fn the_time_stands_before_every_line() {
    let outcome =
        job(2, &["lines", "10", "5"]).poe_arg("-labelio").poe_arg("yes").poe_arg("-timestamps").run();
    for text in [&outcome.ok().stdout, &outcome.stderr] {
        let mut lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 20, "{outcome}");
        let is_time = |time: &str| {
            let digits = time.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
            digits.eq("0000-00-00 00:00:00.000 ".bytes())
        };
        assert!(lines.iter().all(|line| line.get(..24).is_some_and(is_time)), "{outcome}");
        lines.iter_mut().for_each(|line| *line = &line[24..]);
        lines.sort_unstable();
        assert_eq!(lines, [["  0:aaaa"; 10], ["  1:bbbb"; 10]].concat());
    }
    // The zone is that of poe.
    let hour = |zone: &str| {
        let outcome = job(1, &["lines", "1", "5"]).poe_arg("-timestamps").env("TZ", zone).run();
        outcome.ok().stdout[11..13].parse::<i32>().expect("an hour")
    };
    let apart = (hour("XXX-5") - hour("UTC")).rem_euclid(24);
    assert!((5..=6).contains(&apart), "{apart}");
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
    for terminals in ["yes", "no"] {
        let job = job(4, &["lines", "80000", "100"]).poe_arg("-tty").poe_arg(terminals);
        let outcome = job.env("MP_INFOLEVEL", "0").deadline(120).run();
        for text in [&outcome.ok().stdout, &outcome.stderr] {
            assert_eq!(text.len(), 4 * 80000 * 100);
            for letter in ["a", "b", "c", "d"] {
                let line = letter.repeat(99);
                assert_eq!(text.lines().filter(|found| **found == line).count(), 80000);
            }
        }
    }
}

#[test]
fn a_prompt_is_shown_before_its_input_is_read() {
    let mut asked = job(1, &["ask"]).stdin("Ada\n").start();
    assert_eq!(asked.lines(1), ["name? it is Ada"]);
    asked.wait().ok();
    // No input is sent before the prompt can be read.
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
    assert_eq!(job(3, &["copy"]).stdin(&*text).run().ok().stdout.len(), 3 * text.len());
    assert_eq!(lengths("2", 3), text.len());
    assert_eq!(lengths("all", 3), 3 * text.len());
    assert_eq!(lengths("none", 3), 0);
}

/// A script of the shell with poe as $0, and a file of many lines and this name as $1.
fn with_lines(name: &str, script: &str) -> openlapi_tests::Outcome {
    let lines = file(name, &(1..=150_000).map(|line| format!("{line}\n")).collect::<String>());
    let poe = stage().join("bin/poe");
    Job::direct("sh").arg("-c").arg(script).arg(poe).arg(lines).deadline(120).run()
}

#[test]
fn every_task_reads_all_of_standard_input_by_default() {
    let ends = ["  0:150000", "  1:150000", "  2:150000"];
    for source in [r#""$0" $WHAT < "$1""#, r#"cat "$1" | "$0" $WHAT"#] {
        let what = source.replace("$WHAT", "-procs 3 -labelio yes wc -l");
        let outcome = with_lines("poe_lines_all", &what);
        assert_eq!(sorted(&outcome.ok().stdout), ends, "{source}");
        // Each after the others: none is kept from it by those that do not read yet.
        let turns = "until test -e $OUT$MP_CHILD; do sleep 0.01; done; wc -l; >$OUT$((MP_CHILD - 1))";
        let out = file("poe_turns", "");
        let out = out.display();
        let script = format!("export OUT={out}; rm -f $OUT?; >${{OUT}}2; {source}");
        let outcome = with_lines(
            "poe_lines_all",
            &script.replace("$WHAT", &format!("-procs 3 -labelio yes sh -c '{turns}'")),
        );
        assert_eq!(sorted(&outcome.ok().stdout), ends, "{source}");
    }
}

#[test]
fn a_task_that_does_not_read_keeps_no_input_from_another_one() {
    for source in [r#""$0" $WHAT < "$1""#, r#"cat "$1" | "$0" $WHAT"#] {
        let go = file("poe_only_one_reads", "");
        fs::remove_file(&go).expect("it was there");
        let script =
            "if [ $MP_CHILD = 0 ]; then wc -l; >$GO; else until test -e $GO; do sleep 0.01; done; fi";
        let what = format!("-procs 3 sh -c '{script}'");
        let outcome = with_lines(
            "poe_lines_one",
            &format!("export GO={}; {}", go.display(), source.replace("$WHAT", &what)),
        );
        assert_eq!(outcome.ok().stdout, "150000\n", "{source}");
    }
}

/// A command that leaves most of it takes nothing from those that follow.
#[test]
fn each_command_of_a_file_reads_all_of_standard_input() {
    let commands = file("poe_commands_that_read", "head -n 1\nwc -l\n");
    for source in [r#""$0" $WHAT < "$1""#, r#"cat "$1" | "$0" $WHAT"#] {
        let what = format!("-procs 2 -cmdfile {}", commands.display());
        let outcome = with_lines("poe_lines_commands", &source.replace("$WHAT", &what));
        assert_eq!(outcome.ok().stdout, "1\n1\n150000\n150000\n", "{source}");
    }
}

/// Each task has its own place in the file, and the shell has its own, too.
#[test]
fn a_loop_that_reads_a_file_keeps_its_lines() {
    let script = r#"head -n 3 "$1" | cat >"$1.short"
                    while read -r line; do "$0" -procs 2 head -n 1; done < "$1.short""#;
    assert_eq!(with_lines("poe_lines_loop", script).ok().stdout, "2\n2\n3\n3\n");
}

#[test]
fn a_reader_that_goes_away_ends_the_job() {
    let script = r#""$0" -procs 2 "$1" lines 100000000 100 2>/dev/null | head -n 1"#;
    let outcome = Job::direct("sh").arg("-c").arg(script).arg(stage().join("bin/poe")).arg(task()).run();
    assert_eq!(outcome.ok().stdout.lines().count(), 1);
}

#[test]
fn lines_before_a_crash_are_shown() {
    let outcome = job(2, &["crash"]).run();
    let lines = sorted(&outcome.exited(139).stdout);
    assert!(!lines.is_empty() && lines.iter().all(|line| line.ends_with("reached the solver")), "{outcome}");
    let one = job(1, &["crash"]).run();
    assert_eq!(one.exited(139).stdout, "task 0 reached the solver\n");
    let labelled = job(1, &["crash"]).poe_arg("-labelio").poe_arg("yes").run();
    assert_eq!(labelled.exited(139).stdout, "  0:task 0 reached the solver\n");
}

#[test]
fn a_line_is_shown_when_it_is_printed() {
    for (mode, name) in [("unordered", "step_unordered"), ("ordered", "step_ordered"), ("0", "step_one")] {
        let go = file(name, "");
        fs::remove_file(&go).expect("it was there");
        let mut running =
            job(1, &["step", &go.to_string_lossy()]).poe_arg("-stdoutmode").poe_arg(mode).start();
        // The program continues only when the test has read its first line.
        assert_eq!(running.lines(1), ["first"]);
        fs::write(&go, "").expect("it can be written");
        assert_eq!(running.wait().ok().stdout, "first\nsecond\n");
    }
}

#[test]
fn standard_output_is_a_terminal_unless_the_user_wants_a_pipe() {
    assert_eq!(job(2, &["terminal"]).run().ok().stdout, "1\n1\n");
    assert_eq!(job(2, &["terminal"]).poe_arg("-tty").poe_arg("no").run().ok().stdout, "0\n0\n");
    assert_eq!(job(2, &["terminal"]).env("MP_TTY", "no").run().ok().stdout, "0\n0\n");
    // When the system has no more terminals, pipes are used.
    let outcome = refusing(job(2, &["terminal"]), "terminal").run();
    assert_eq!(outcome.ok().stdout, "0\n0\n");
}

#[test]
fn bytes_of_every_value_pass_unchanged() {
    let script =
        r#""$1" bytes 300001 | cksum; for tty in yes no; do "$0" -tty $tty "$1" bytes 300001 | cksum; done"#;
    let outcome = Job::direct("sh").arg("-c").arg(script).arg(stage().join("bin/poe")).arg(task()).run();
    let sums: Vec<&str> = outcome.ok().stdout.lines().collect();
    assert!(sums.len() == 3 && sums.iter().all(|sum| *sum == sums[0]), "{outcome}");
    assert!(sums[0].ends_with(" 300001"), "{outcome}");
}

#[test]
fn a_task_whose_output_is_not_read_any_more_learns_of_it() {
    for (flood, status) in [("", "SIGPIPE"), ("ignore", "exited with status 90")] {
        let script = r#"{ "$0" -tty yes "$1" flood $2; echo "status $?" >&2; } | head -n 1"#;
        let poe = stage().join("bin/poe");
        let outcome = Job::direct("sh").arg("-c").arg(script).arg(poe).arg(task()).arg(flood).run();
        assert_eq!(outcome.ok().stdout, "more\n");
        outcome.says(status);
    }
}

/// Each task that writes to the closed output has a signal coming, and each ends: more notes than
/// the socket between poe and its supervisor takes, both ways.
#[test]
fn many_tasks_whose_output_is_not_read_any_more_end() {
    let script = r#""$0" -procs 700 echo more | head -n 1"#;
    let outcome = Job::direct("sh").arg("-c").arg(script).arg(stage().join("bin/poe")).deadline(120).run();
    assert_eq!(outcome.ok().stdout, "more\n", "{outcome}");
}

/// A signal is acted on while tasks are being started: the rest of them does not start.
#[test]
fn a_job_ends_while_it_starts() {
    let hold = file("poe_start_is_held", "");
    let job = Job::new("sleep").procs(9).arg("1000").poe_arg("-infolevel").poe_arg("2");
    let mut running = holding_forks(job, &hold).deadline(120).start();
    running.until_it_says("task 0 (sleep) has started");
    running.signal(Signal::SIGTERM);
    running.until_it_says("ended (SIGTERM); ending all tasks");
    // The start of task 1.
    fs::remove_file(&hold).expect("it was there");
    let outcome = running.wait();
    assert_eq!(outcome.exited(143).stderr.matches("has started").count(), 2, "{outcome}");
}

#[test]
fn many_short_outputs_are_not_lost_at_the_end() {
    let outcome = job(64, &["env", "MP_PROCS"]).run();
    assert_eq!(outcome.ok().stdout, "MP_PROCS=64\n".repeat(64));
}

#[test]
fn each_task_has_files_of_its_own() {
    let folder = openlapi_tests::build_dir().join("tests/poe_output/new");
    let _ = std::fs::remove_dir_all(&folder);
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    for mode in ["unordered", "ordered"] {
        let outcome = job(2, &["lines", "1000", "100"]).poe_arg("-output_dir").poe_arg(&folder);
        let outcome = outcome.poe_arg("-labelio").poe_arg("yes").poe_arg("-stdoutmode").poe_arg(mode).run();
        assert_eq!(outcome.ok().stdout.len(), 2 * 1000 * 104);
        for (task, letter) in [(0, "a"), (1, "b")] {
            let expected = format!("{}\n", letter.repeat(99)).repeat(1000);
            assert!(
                text(&format!("task{task}.out")) == expected && text(&format!("task{task}.err")) == expected
            );
        }
    }
    // The jobs of a command file write one after another.
    let steps = Job::poe().env("MP_OUTPUT_DIR", &folder).stdin("echo first\necho second\n").run();
    assert_eq!(steps.ok().stdout, "first\nsecond\n");
    assert_eq!((&*text("task0.out"), &*text("task0.err")), ("first\nsecond\n", ""));
    job(1, &["args"])
        .poe_arg("-output_dir")
        .poe_arg("/dev/null/x")
        .run()
        .exited(1)
        .says("-output_dir: /dev/null/x: ");
    let taken = folder.join("task0.out");
    let is_file = format!("{}: Not a directory", taken.display());
    for flag in ["-output_dir", "-profile"] {
        let outcome = job(1, &["args"]).poe_arg(flag).poe_arg(&taken).run();
        outcome.exited(1).says(&format!("poe: {flag}: {is_file}"));
    }
}
