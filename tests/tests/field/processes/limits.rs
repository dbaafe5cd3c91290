//! Limits of the system at every value that hurts: the job works, or says which limit it has met.

use std::path::PathBuf;

use openlapi_tests::{Job, Outcome, compile, on_network, stage};

fn program() -> PathBuf {
    compile("field-first_contact", &["tests/field/first_contact.c"], &[])
}

/// The job of two tasks under limits as a shell sets them.
fn limited(limits: &str, flags: &[&str], arguments: &[&str]) -> Job {
    let script = format!(r#"{limits} && exec "$0" "$@""#);
    let job = Job::direct("bash").arg("-c").arg(script).arg(stage().join("bin/poe")).arg("-procs").arg("2");
    let job = flags.iter().fold(job, Job::arg).arg(program());
    arguments.iter().fold(job, Job::arg).env("LAPI_INIT_TIMEOUT", "15").deadline(60)
}

fn works(outcome: &Outcome) -> bool {
    outcome.status == Some(0) && outcome.stdout == "done\n".repeat(2)
}

#[test]
fn a_job_works_or_names_the_limit_that_it_has_met() {
    let limits = [
        ("-f", &["0", "1", "64", "1000", "1000000"][..]),
        ("-n", &["20", "30", "64", "100", "200"]),
        ("-v", &["60000", "200000", "400000", "4000000"]),
        ("-l", &["0", "64"]),
        ("-s", &["64", "200", "8192", "33554432", "unlimited"]),
    ];
    crate::side_by_side(limits, |(flag, values): (&str, &[&str])| {
        let mut worked = 0;
        for value in values {
            // What a shell may not set is no case here: a hard limit may be lower.
            let outcome = limited(
                &format!("ulimit {flag} {value} 2>/dev/null || {{ echo refused; exit 9; }}"),
                &[],
                &[],
            )
            .run();
            if outcome.stdout == "refused\n" {
                continue;
            }
            let named = outcome.stderr.contains(&format!("(ulimit {flag}"))
                || outcome.stderr.contains(&format!("ulimit -H{}", &flag[1..]));
            assert!(works(&outcome) || named && !outcome.timed_out, "ulimit {flag} {value}\n{outcome}");
            worked += usize::from(works(&outcome));
        }
        assert!(worked > 0, "no value of {flag} is enough");
    });
}

#[test]
fn a_full_table_of_descriptors_at_the_first_contact_is_named() {
    if on_network("a full table of descriptors", "a network connects at LAPI_Init") {
        return;
    }
    let with_free = |free: &str| {
        let outcome = limited("ulimit -n 200", &[], &[free]).env("LAPI_INIT_TIMEOUT", "4").run();
        assert!(!outcome.timed_out, "{free} descriptors are free\n{outcome}");
        if !works(&outcome) {
            outcome.says("the open-file limit is 200 (ulimit -n)").says("error ");
        }
    };
    crate::side_by_side(["0", "1", "2", "3", "4", "16"], with_free);
}

#[test]
fn output_that_is_held_back_needs_no_folder() {
    let script = "head -c 3000000 /dev/zero | tr '\\0' x; echo";
    let poe = Job::direct(stage().join("bin/poe")).arg("-procs").arg("3").arg("-stdoutmode").arg("ordered");
    let outcome = poe.arg("sh").arg("-c").arg(script).env("TMPDIR", "/nonexistent").run();
    assert_eq!(outcome.ok().stdout.len(), 3 * 3_000_001);
    outcome.says("poe: warning: no file can be made in /nonexistent (TMPDIR): No such file or directory");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
}

#[test]
fn the_cause_of_lost_output_comes_first() {
    for (redirected, cause) in [
        (
            r#""$0" "$@" >/dev/full"#,
            "poe: output of the tasks was lost: standard output: No space left on device",
        ),
        (
            r#"ulimit -f 8; trap '' XFSZ; "$0" "$@" >"$FILE""#,
            "poe: output of the tasks was lost: standard output: file-size limit reached (ulimit -f)",
        ),
    ] {
        let file = openlapi_tests::build_dir().join("tests/field_lost_output");
        let job = Job::direct("bash").arg("-c").arg(redirected).arg(stage().join("bin/poe"));
        let job = job.arg("-procs").arg("2").arg("sh").arg("-c").arg("yes | head -c 100000; sleep 100");
        let outcome = job.env("FILE", &file).deadline(60).run();
        assert!(!outcome.timed_out && outcome.status != Some(0), "{outcome}");
        assert_eq!(outcome.stderr.lines().next(), Some(cause), "{outcome}");
        assert_eq!(outcome.stderr.matches("was lost").count(), 1, "{outcome}");
        let _ = std::fs::remove_file(file);
    }
}
