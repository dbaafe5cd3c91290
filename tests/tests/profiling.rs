//! The name-shifted interface (the manual's chapter 9): wrappers of a user, in the three
//! possible places.

use openlapi_tests::{Job, Outcome, compile_with, stage};
use std::path::PathBuf;

/// The wrapper of a language and the ending of its sources.
const LANGUAGES: [(&str, &str); 2] = [("mpcc_r", "c"), ("mpCC_r", "cpp")];

fn compiled(language: (&str, &str), name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (compiler, ending) = language;
    let source = format!("tests/c/profiling/{source}.{ending}");
    compile_with(
        &stage().join("bin").join(compiler),
        &format!("profiling-{name}-{ending}"),
        &[&source],
        flags,
    )
}

/// The wrappers as a library that reports its place.
fn library(language: (&str, &str), place: &str) -> String {
    let place_flag = format!("-DWHERE=\"{place}\"");
    let path = compiled(language, &format!("lib{place}"), "library", &["-shared", "-fPIC", &place_flag]);
    path.to_str().expect("the build folder has a name in UTF-8").to_owned()
}

/// Every task has passed, and the wrappers in this place, and no others, have counted its calls.
#[track_caller]
fn seen(outcome: &Outcome, tasks: usize, place: Option<&str>) {
    outcome.ok();
    let mut said: Vec<&str> = outcome.stdout.lines().filter(|line| line.contains(" puts, ")).collect();
    said.sort_unstable();
    let expected: Vec<String> = (0..tasks)
        .filter_map(|task| place.map(|place| format!("{place}: task {task}: 3 puts, 120 bytes, 2 fences")))
        .collect();
    assert_eq!(said, expected, "{outcome}");
    assert_eq!(outcome.stdout.lines().filter(|line| line.starts_with("PASS")).count(), tasks, "{outcome}");
}

#[test]
fn wrappers_in_the_executable() {
    for language in LANGUAGES {
        let program = compiled(language, "own", "program", &["-DOWN_WRAPPERS"]);
        for tasks in [1, 3] {
            seen(&Job::new(&program).procs(tasks).run(), tasks, Some("executable"));
        }
    }
}

#[test]
fn wrappers_in_a_library_linked_first() {
    for language in LANGUAGES {
        let program = compiled(language, "linked", "program", &[&library(language, "linked")]);
        for tasks in [1, 3] {
            seen(&Job::new(&program).procs(tasks).run(), tasks, Some("linked"));
        }
    }
}

#[test]
fn wrappers_in_a_preloaded_library() {
    for language in LANGUAGES {
        let program = compiled(language, "plain", "program", &[]);
        seen(&Job::new(&program).procs(2).run(), 2, None);
        for tasks in [1, 3] {
            let job = Job::new(&program).procs(tasks).env("LD_PRELOAD", library(language, "preloaded"));
            seen(&job.run(), tasks, Some("preloaded"));
        }
    }
}
