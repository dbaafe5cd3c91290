//! What a task writes that a fault ends (LAPI_BACKTRACE), and LAPI_Init that waits for a
//! debugger (MP_ATTACH).

#[expect(dead_code, reason = "every job here is one that fails, or waits")]
mod ltest;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use ltest::{job, passed, program};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use openlapi_tests::{
    Deadline, Job, Outcome, Running, build_dir, copy_program, is_installed, on_network, skipped, stage,
};

fn crash(case: &str) -> Outcome {
    job("report/crash", 2, case).run()
}

/// The status of the job, and what the line about the fault says.
const CASES: &[(&str, i32, &str)] = &[
    (
        "put",
        139,
        "signal 11 (SIGSEGV) at address 0x10, while LAPI stores 8 bytes at 0x10 for LAPI_Put of task 0\n",
    ),
    ("counter", 139, "for LAPI_Put of task 0 (its target counter is at 0x18)\n"),
    ("get", 139, "at address 0x20, while LAPI reads 8 bytes at 0x20 for LAPI_Get of task 0\n"),
    ("rmw", 139, "while LAPI changes the 64-bit variable at 0x28 for LAPI_Rmw of task 0\n"),
    ("handler", 139, "at address 0x30, in a header handler of the program, for a message of task 0\n"),
    ("nowhere", 139, "at address 0x38, while LAPI stores the data of an active message of task 0\n"),
    ("own", 139, "signal 11 (SIGSEGV) at address 0x40\n"),
    ("shorter", 135, "signal 7 (SIGBUS) at address 0x"),
    ("abort", 134, "signal 6 (SIGABRT)\n"),
    ("stack", 139, ", near the end of the stack (ulimit -s)\n"),
    ("kill", 139, "signal 11 (SIGSEGV)\n"),
];

#[test]
fn a_fault_says_what_was_done_and_for_whom() {
    if on_network("what a fault says", "the target may read and write for itself") {
        return;
    }
    for (case, status, says) in CASES {
        let outcome = crash(case);
        outcome.exited(*status).says(says).says("LAPI: task 1:   #0 0x");
        // The addresses are there before anything is read or started that may not end.
        let at = |part| outcome.stderr.find(part).unwrap_or_else(|| panic!("no \"{part}\"\n{outcome}"));
        assert!(at("LAPI: task 1:   stack: ") < at("LAPI: task 1:   #0 0x"), "{outcome}");
        assert_eq!(outcome.stderr.matches("LAPI: task 1: signal").count(), 1, "{outcome}");
        // Task 0 has no fault.
        assert!(!outcome.stderr.contains("LAPI: task 0: signal"), "{outcome}");
    }
}

/// The lines of the report about frames of the program.
fn own_frames(outcome: &Outcome) -> Vec<&str> {
    let frames = outcome.stderr.lines().filter(|line| line.starts_with("LAPI: task 1:   #"));
    frames.filter(|line| line.contains("report-crash")).collect()
}

/// A header handler, the program's own fault, and a call to where no code is.
#[test]
fn a_fault_has_frames_of_the_program() {
    for case in ["handler", "own", "abort", "wild"] {
        let outcome = crash(case);
        assert!(!own_frames(&outcome).is_empty(), "{outcome}");
    }
    // Frames that repeat are one line.
    crash("stack").says(" times\n");
}

#[test]
fn frames_of_the_program_have_source_lines() {
    for case in ["handler", "own", "abort", "wild"] {
        let outcome = crash(case);
        assert!(own_frames(&outcome).iter().any(|line| line.contains(" at crash.c:")), "{outcome}");
        assert!(!outcome.stderr.contains("source lines: "), "{outcome}");
    }
}

/// Other processors than x86 do not trap.
#[test]
fn a_division_by_zero_is_named() {
    crash("divide").exited(136).says("signal 8 (SIGFPE)\n").says("LAPI: task 1:   #0 0x");
}

#[test]
fn a_call_to_where_no_code_is_shows_its_caller() {
    let outcome = crash("wild");
    outcome
        .exited(139)
        .says("LAPI: task 1: signal 11 (SIGSEGV) at address 0x48\n")
        .says("LAPI: task 1:   #0 0x48\n");
    let caller = own_frames(&outcome).into_iter().find(|line| line.contains("#1 0x"));
    assert!(caller.is_some(), "{outcome}");
}

/// Of such an address the kernel tells x86 programs nothing.
#[test]
#[cfg(target_arch = "x86_64")]
fn an_address_that_no_processor_has_is_not_named() {
    crash("far").exited(139).says("LAPI: task 1: signal 11 (SIGSEGV) at a non-canonical address\n");
}

#[test]
fn a_stack_that_cannot_be_read_does_not_change_the_signal() {
    crash("smashed")
        .exited(134)
        .says("signal 6 (SIGABRT)\n")
        .says("LAPI: task 1:   the stack cannot be read\n");
}

#[test]
fn a_standard_error_without_a_reader_does_not_change_the_signal() {
    crash("closed").exited(139).says("was ended by signal 11 (SIGSEGV)");
}

#[test]
fn where_nothing_names_the_source_lines_the_report_has_the_command_that_does() {
    if !is_installed("addr2line") {
        return skipped("the lines of a fault", "addr2line is not installed");
    }
    // The path of the program may have a blank.
    let folder = build_dir().join("tests/crash with a blank");
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let copy = folder.join("crash");
    copy_program(program("report/crash"), &copy);
    // A library without the tool beside it.
    let alone = folder.join("alone/lib");
    std::fs::create_dir_all(&alone).expect("the folder can be made");
    std::fs::copy(stage().join("lib/liblapi_r.so.1"), alone.join("liblapi_r.so.1"))
        .expect("it can be copied");
    let job = Job::new(&copy).arg("own").procs(2).env("LD_LIBRARY_PATH", &alone);
    let outcome = job.env("PATH", "/usr/bin:/bin").run();
    let command = outcome.stderr.lines().find_map(|line| line.split_once("source lines: "));
    let (_, command) = command.unwrap_or_else(|| panic!("no command\n{outcome}"));
    let lines = Command::new("sh").arg("-c").arg(command).output().expect("a shell");
    let lines = String::from_utf8_lossy(&lines.stdout).into_owned();
    assert!(
        lines.lines().next().is_some_and(|line| line.contains("main at ") && line.contains("crash.c:")),
        "{lines}"
    );
}

#[test]
fn a_helper_that_does_not_answer_holds_the_report_up_for_seconds_only() {
    let folder = build_dir().join("tests/crash_silent");
    for part in ["lib", "bin"] {
        std::fs::create_dir_all(folder.join(part)).expect("the folder can be made");
    }
    let library = "lib/liblapi_r.so.1";
    std::fs::copy(stage().join(library), folder.join(library)).expect("it can be copied");
    let helper = folder.join("bin/lapi_prof");
    std::fs::write(&helper, "#!/bin/sh\nexec sleep 1000\n").expect("it can be written");
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let job = job("report/crash", 2, "own").env("LD_LIBRARY_PATH", folder.join("lib"));
    let outcome = job.run();
    outcome.exited(139).says("LAPI: task 1:   stack: ").says("LAPI: task 1:   #0 0x").says("source lines: ");
    assert!(!outcome.stderr.contains(" at crash.c:"), "{outcome}");
}

#[test]
fn a_program_may_have_its_own_handler_or_none() {
    // The job goes on without task 1: its status is below 128.
    let mut running = job("report/crash", 2, "handled").start();
    await_line(&mut running, "exited with status 3");
    running.signal(Signal::SIGTERM);
    let outcome = running.wait();
    assert!(!outcome.stderr.contains("signal 11"), "{outcome}");
    let quiet = job("report/crash", 2, "own").env("LAPI_BACKTRACE", "no").run();
    quiet.exited(139);
    assert!(!quiet.stderr.contains("LAPI: task 1"), "{quiet}");
    job("report/crash", 2, "own").env("LAPI_BACKTRACE", "perhaps").run().says("allowed: yes | no");
}

#[test]
fn a_fault_of_a_job_with_a_profile_is_described_and_profiled() {
    let folder = build_dir().join("tests/crash_profile");
    let _ = std::fs::remove_dir_all(&folder);
    let outcome = job("report/crash", 2, "own").poe_arg("-profile").poe_arg(&folder).run();
    outcome.exited(139).says("LAPI: task 1: signal 11 (SIGSEGV) at address 0x40");
    let merged = Command::new(stage().join("bin/lapi_prof")).arg("merge").arg(&folder).output();
    let merged = merged.expect("lapi_prof");
    assert!(merged.status.success(), "{merged:?}");
    let report = std::fs::read_to_string(folder.join("report.json")).expect("the report");
    assert!(report.contains("SIGSEGV"), "{report}");
}

#[test]
fn init_waits_for_a_debugger() {
    let mut running = job("counters/semantics", 2, "local").poe_arg("-attach").poe_arg("1").start();
    let text = await_line(&mut running, "LAPI: task 1: LAPI_Init waits for a debugger (MP_ATTACH): gdb -p ");
    let pid = text.split("gdb -p ").nth(1).and_then(|rest| rest.split(',').next()).expect("a process");
    let pid = Pid::from_raw(pid.parse().expect("a number"));
    assert_eq!(text.matches("waits for a debugger").count(), 1, "{text}");
    // A debugger that attaches, lets the task go on, and sees its end.
    ptrace::seize(pid, ptrace::Options::empty()).expect("it can be attached to");
    assert_eq!(waitpid(pid, None), Ok(WaitStatus::Exited(pid, 0)));
    passed(&running.wait(), 2);
    let refused = job("counters/semantics", 1, "").poe_arg("-attach").poe_arg("some").run();
    refused.exited(2).says("-attach: \"some\" is not all, or numbers of tasks");
}

/// Waits until standard error has a line with this, and returns all of it.
fn await_line(running: &mut Running, part: &str) -> String {
    let mut last = Deadline::after(Duration::from_secs(30));
    while !last.has_passed() {
        let text = running.stderr_so_far();
        if text.ends_with('\n') && text.contains(part) {
            return text;
        }
        sleep(Duration::from_millis(25));
    }
    panic!("no line with \"{part}\"\n{}", running.stderr_so_far());
}
