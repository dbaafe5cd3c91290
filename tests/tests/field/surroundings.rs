//! Other software in the process of a task: debuggers, checkers, run-time systems, loaders.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use openlapi_tests::{
    Job, build_dir, compile, compile_plain, compile_with, has_fabric, is_installed, on_network, skipped,
    stage, workspace,
};

/// The variables that choose each transport, on one machine.
const TRANSPORTS: [(&str, [(&str, &str); 2]); 3] = [
    ("shm", [("MP_EUILIB", "us"), ("LAPI_USE_SHM", "only")]),
    ("us", [("MP_EUILIB", "us"), ("LAPI_USE_SHM", "no")]),
    ("ip", [("MP_EUILIB", "ip"), ("LAPI_USE_SHM", "no")]),
];

/// Calls `test` with a job over each transport that this machine has.
fn over_each_transport(what: &str, job: &Job, test: impl Fn(&str, Job)) {
    if on_network(what, "it chooses the transports itself") {
        return;
    }
    for (transport, variables) in TRANSPORTS {
        if transport == "us" && !has_fabric() {
            skipped(&format!("{what} over us"), "libfabric is not installed");
            continue;
        }
        let job = variables.into_iter().fold(job.clone(), |job, (name, value)| job.env(name, value));
        eprintln!("{what}: {transport}");
        test(transport, job);
    }
}

fn program(name: &str, flags: &[&str]) -> PathBuf {
    compile(&format!("field-{name}"), &[&format!("tests/field/{name}.c")], flags)
}

fn library(name: &str) -> PathBuf {
    compile(&format!("libfield-{name}"), &[&format!("tests/field/{name}.c")], &["-fPIC", "-shared", "-lm"])
}

fn opens() -> PathBuf {
    compile_plain("field-opens", &["tests/field/opens.c"], &[])
}

/// LAPI takes no signal for itself.
fn quiet(job: Job) -> Job {
    job.env("LAPI_BACKTRACE", "no").env("LAPI_REPORT_SIGNAL", "none")
}

#[test]
fn nothing_of_the_program_changes() {
    let job = Job::new(program("unchanged", &["-lm"])).procs(2);
    over_each_transport("what LAPI leaves alone", &job, |_, job| {
        job.clone().arg("own").run().ok();
        quiet(job.clone()).arg("own").run().ok();
        quiet(job.clone()).arg("default").run().ok();
        // Of a program that has no handlers LAPI takes the signals that it describes, and that for reports.
        let outcome = job.arg("default").run();
        let changes = outcome.stderr.lines().filter(|line| line.starts_with("after "));
        let signals = [4, 6, 7, 8, 11, 12].map(|signal| format!("\"signal {signal}: (nil)"));
        let ours =
            |line: &str| signals.iter().chain(&["\"stack for".to_owned()]).any(|ours| line.contains(ours));
        let others: Vec<&str> = changes.filter(|line| !ours(line)).collect();
        assert_eq!(others, [""; 0]);
        outcome.says("after LAPI_Init: \"signal 11:");
    });
}

#[test]
fn nothing_changes_in_a_program_that_opens_the_library() {
    let job = Job::new(opens()).arg(library("unchanged")).arg("unchanged").procs(2);
    over_each_transport("what LAPI leaves alone in a library", &job, |_, job| {
        let outcome = quiet(job).run();
        assert_eq!(outcome.ok().stdout, "closed\nclosed\n", "{outcome}");
    });
}

#[test]
fn nothing_changes_in_python() {
    if !is_installed("python3") {
        return skipped("what LAPI leaves alone in Python", "python3 is not installed");
    }
    let calls = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).unchanged())";
    let job = Job::new("python3").arg("-c").arg(calls).arg(library("unchanged")).procs(2);
    over_each_transport("what LAPI leaves alone in Python", &job, |_, job| {
        quiet(job).run().ok();
    });
}

#[test]
fn a_java_machine_keeps_its_handlers() {
    if !is_installed("java") || !is_installed("javac") {
        return skipped("LAPI in a Java machine", "java and javac are not installed");
    }
    let folder = build_dir().join("tests/field-java");
    fs::create_dir_all(&folder).expect("the folder can be made");
    let made = Command::new("javac")
        .arg("-d")
        .args([&folder, &workspace().join("tests/field/Unchanged.java")])
        .output()
        .expect("javac");
    assert!(made.status.success(), "{made:?}");
    let job = Job::new("java").arg("-Xmx64m").arg("-cp").arg(&folder).arg("Unchanged").procs(2);
    over_each_transport("LAPI in a Java machine", &job.arg(library("unchanged")), |_, job| {
        let outcome = quiet(job).run();
        let finds = "0 changes, 50000 null pointers\n";
        assert_eq!(outcome.ok().stdout, finds.repeat(2), "{outcome}");
    });
}

#[test]
fn a_fault_is_described_over_each_transport() {
    let program =
        compile("report-crash", &["tests/c/report/crash.c", "tests/c/common/ltest.c"], &["-pthread"]);
    over_each_transport("what a fault says", &Job::new(program).procs(2), |_, job| {
        let outcome = job.clone().arg("own").run();
        outcome.exited(139).says("LAPI: task 1: signal 11 (SIGSEGV) at address 0x40\n");
        outcome.says("source lines: addr2line -Cfpie ");
        job.clone().arg("abort").run().exited(134).says("LAPI: task 1: signal 6 (SIGABRT)\n");
        // The program's own handler, which exits. Task 0 goes on.
        let mut running = job.arg("handled").start();
        running.until_it_says("exited with status 3");
        running.signal(Signal::SIGTERM);
        let outcome = running.wait();
        assert!(!outcome.stderr.contains("signal 11"), "{outcome}");
    });
}

#[test]
fn a_fault_of_a_fortran_program_is_described_once() {
    if !is_installed("gfortran") {
        return skipped("what a fault in Fortran says", "gfortran is not installed");
    }
    let compiler = stage().join("bin/mpxlf90_r");
    let program = compile_with(&compiler, "field-fault", &["tests/field/fault.f90"], &["-fbacktrace"]);
    over_each_transport("what a fault in Fortran says", &Job::new(program).procs(2), |_, job| {
        let outcome = job.run();
        outcome.exited(139).says("LAPI: task 1: signal 11 (SIGSEGV) at address 0x40\n");
        outcome.says("source lines: addr2line -Cfpie ");
        assert!(!outcome.stderr.contains("Program received signal"), "{outcome}");
    });
}

#[test]
fn a_library_opens_lapi_in_its_constructor_and_closes_it_in_its_destructor() {
    let job = Job::new(opens()).arg(library("constructor")).procs(2);
    over_each_transport("LAPI under the loader's lock", &job, |_, job| {
        let outcome = job.run();
        assert_eq!(outcome.ok().stdout, "closed\nclosed\n", "{outcome}");
    });
}
