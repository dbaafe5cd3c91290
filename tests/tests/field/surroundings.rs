//! Other software in the process of a task: debuggers, checkers, run-time systems, loaders.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::scratch;
use nix::sys::signal::Signal;
use openlapi_tests::{
    Job, Outcome, build_dir, compile, compile_plain, compile_with, eventually, has_fabric, is_installed,
    on_network, skipped, stage, workspace,
};

/// The variables that choose each transport, on one machine.
const TRANSPORTS: [(&str, [(&str, &str); 2]); 3] = [
    ("shm", [("MP_EUILIB", "us"), ("LAPI_USE_SHM", "only")]),
    ("us", [("MP_EUILIB", "us"), ("LAPI_USE_SHM", "no")]),
    ("ip", [("MP_EUILIB", "ip"), ("LAPI_USE_SHM", "no")]),
];

/// Calls `test` with a job over each transport that this machine has, side by side.
pub fn over_each_transport(what: &str, job: &Job, test: impl Fn(&str, Job) + Sync) {
    if on_network(what, "it chooses the transports itself") {
        return;
    }
    thread::scope(|scope| {
        for (transport, variables) in TRANSPORTS {
            if transport == "us" && !has_fabric() {
                skipped(&format!("{what} over us"), "libfabric is not installed");
                continue;
            }
            let job = variables.into_iter().fold(job.clone(), |job, (name, value)| job.env(name, value));
            let test = &test;
            let side = thread::Builder::new().name(format!("{what}: {transport}"));
            side.spawn_scoped(scope, move || test(transport, job)).expect("a thread");
        }
    });
}

fn program(name: &str, flags: &[&str]) -> PathBuf {
    compile(&format!("field-{name}"), &[&format!("tests/field/{name}.c")], flags)
}

pub fn library(name: &str) -> PathBuf {
    compile(&format!("libfield-{name}"), &[&format!("tests/field/{name}.c")], &["-fPIC", "-shared", "-lm"])
}

pub fn opens() -> PathBuf {
    compile_plain("field-opens", &["tests/field/opens.c"], &["-lm"])
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
        takes_free_signals_alone(&job.arg("default").run());
    });
}

/// With the settings that poe gives to users: of signals that have their default action LAPI takes
/// those that it describes, and that for reports. The program has said what has changed.
#[track_caller]
fn takes_free_signals_alone(outcome: &Outcome) {
    let changes = || outcome.stderr.lines().filter(|line| line.starts_with("after "));
    let signals = [4, 6, 7, 8, 11, 12].map(|signal| format!("\"signal {signal}: (nil)"));
    let ours = |line: &str| signals.iter().chain(&["\"stack for".to_owned()]).any(|ours| line.contains(ours));
    let others: Vec<&str> = changes().filter(|line| !ours(line)).collect();
    assert_eq!(others, [""; 0], "{outcome}");
    assert!(changes().any(|line| line.contains("\"signal 6: (nil)")), "{outcome}");
}

#[test]
fn a_program_may_have_closed_its_standard_descriptors() {
    let job = Job::new(program("standard", &[])).procs(2).deadline(30);
    over_each_transport("closed standard descriptors", &job, |transport, job| {
        let said = scratch(&format!("standard-{transport}")).join("said");
        let outcome = job.arg(&said).run();
        for task in 0..2 {
            let said = fs::read_to_string(said.with_extension(task.to_string())).expect("a file of the task");
            assert_eq!(said, "good\n", "{transport}: {outcome}");
        }
        assert!(outcome.ok().stdout.is_empty(), "{outcome}");
    });
}

#[test]
fn nothing_changes_in_a_program_that_opens_the_library() {
    let job = Job::new(opens()).arg(library("unchanged")).arg("unchanged").procs(2);
    over_each_transport("what LAPI leaves alone in a library", &job, |_, job| {
        let outcome = quiet(job.clone()).run();
        assert_eq!(outcome.ok().stdout, "closed\nclosed\n", "{outcome}");
        takes_free_signals_alone(&job.run());
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
        quiet(job.clone()).run().ok();
        takes_free_signals_alone(&job.run());
    });
}

/// Java's packages are large, and ci/deps.sh does not install them.
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
        let outcome = quiet(job.clone()).run();
        let finds = "0 changes, 50000 null pointers\n";
        assert_eq!(outcome.ok().stdout, finds.repeat(2), "{outcome}");
        // The machine has handlers for faults, which stay, and none for SIGABRT.
        let outcome = job.run();
        assert_eq!(outcome.ok().stdout.matches(" changes, 50000 null pointers\n").count(), 2, "{outcome}");
        takes_free_signals_alone(&outcome);
    });
}

#[test]
fn a_fault_is_described_over_each_transport() {
    let program =
        compile("report-crash", &["tests/c/report/crash.c", "tests/c/common/ltest.c"], &["-pthread"]);
    over_each_transport("what a fault says", &Job::new(program).procs(2), |_, job| {
        let outcome = job.clone().arg("own").run();
        outcome.exited(139).says("LAPI: task 1: signal 11 (SIGSEGV) at address 0x40\n");
        outcome.says(" in main at crash.c:");
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
        outcome.says(" at fault.f90:");
        assert!(!outcome.stderr.contains("Program received signal"), "{outcome}");
    });
}

#[test]
fn a_library_opens_lapi_in_its_constructor_and_closes_it_in_its_destructor() {
    let job = Job::new(opens()).arg(library("constructor")).procs(2);
    over_each_transport("LAPI under the loader's lock", &job, |_, job| {
        // Nothing of the program changes either.
        let outcome = quiet(job.clone()).run();
        assert_eq!(outcome.ok().stdout, "closed\nclosed\n", "{outcome}");
        let outcome = job.run();
        assert_eq!(outcome.stdout, "closed\nclosed\n", "{outcome}");
        takes_free_signals_alone(&outcome);
    });
}

/// A job of `exchange`, which a checker starts in each task.
fn checked(checker: &[&str], flags: &[&str], mistake: &str) -> Job {
    let flags = [&["-pthread"], flags].concat();
    let name = format!("field-exchange{}", flags[1..].concat());
    let program = compile(&name, &["tests/field/exchange.c"], &flags);
    let mut words: Vec<PathBuf> = checker.iter().map(PathBuf::from).collect();
    words.push(program);
    let job = words[1..].iter().fold(Job::new(&words[0]).procs(2).deadline(120), Job::arg);
    if mistake.is_empty() { job } else { job.arg(mistake) }
}

fn installed(name: &str) -> String {
    stage().join("share/openlapi").join(name).to_string_lossy().into_owned()
}

/// Whether the C compiler can make such programs, and they start here.
fn has_sanitizer(flag: &str) -> bool {
    let program = build_dir().join(format!("tests/field-has{flag}-{}", std::process::id()));
    let made = Command::new("cc")
        .arg(flag)
        .arg("-o")
        .args([&program, &workspace().join("tests/field/nothing.c")])
        .output()
        .is_ok_and(|made| made.status.success());
    let starts = made && Command::new(&program).output().is_ok_and(|ran| ran.status.success());
    let _ = fs::remove_file(&program);
    starts
}

#[test]
fn memcheck_finds_the_mistakes_of_the_program_alone() {
    if !is_installed("valgrind") {
        return skipped("LAPI under memcheck", "valgrind is not installed");
    }
    let suppressions = format!("--suppressions={}", installed("valgrind.supp"));
    let checker = ["valgrind", "-q", "--leak-check=full", "--error-exitcode=9", &suppressions];
    over_each_transport("LAPI under memcheck", &checked(&checker, &[], ""), |transport, job| {
        let outcome = job.clone().run();
        assert_eq!(outcome.ok().stdout, "good\ngood\n", "{outcome}");
        assert!(!outcome.stderr.contains("LAPI:"), "{outcome}");
        let mistakes: &[_] = if transport == "shm" {
            &[
                ("leak", "definitely lost"),
                ("overflow", "Invalid write of size 1"),
                ("uninitialised", "depends on uninitialised value"),
            ]
        } else {
            &[]
        };
        for (mistake, finding) in mistakes {
            job.clone().arg(mistake).run().exited(9).says(finding).says("make_mistake");
        }
    });
}

#[test]
fn helgrind_finds_races_and_none_in_lapi() {
    finds_races("helgrind", "Possible data race");
}

#[test]
fn drd_finds_races_and_none_in_lapi() {
    finds_races("drd", "Conflicting ");
}

/// The tool of valgrind finds the races of the program, whose reports have this, and no others.
fn finds_races(tool: &str, report: &str) {
    let what = format!("LAPI under {tool}");
    if !is_installed("valgrind") {
        return skipped(&what, "valgrind is not installed");
    }
    let (tool, suppressions) =
        (format!("--tool={tool}"), format!("--suppressions={}", installed("valgrind.supp")));
    let checker = ["valgrind", "-q", &tool, &suppressions];
    over_each_transport(&what, &checked(&checker, &[], "race"), |_, job| {
        let outcome = job.run();
        assert_eq!(outcome.ok().stdout, "good\ngood\n", "{outcome}");
        outcome.says("mistaken_increment");
        // Each line begins with the process. The access that is blamed comes first, and is one
        // of the program.
        let lines = outcome.stderr.lines().filter_map(|line| line.strip_prefix("==")?.split_once("== "));
        let mut of_task: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        lines.for_each(|(process, line)| of_task.entry(process).or_default().push(line));
        for lines in of_task.into_values() {
            for race in lines.split(|line| line.contains(report)).skip(1) {
                let blamed = race.iter().find(|line| line.contains(" at 0x"));
                assert!(blamed.is_some_and(|line| line.contains("exchange.c")), "{blamed:?}\n{outcome}");
            }
        }
    });
}

#[test]
fn address_sanitizer_finds_the_mistakes_of_the_program_alone() {
    const FLAG: &str = "-fsanitize=address";
    if !has_sanitizer(FLAG) {
        return skipped("LAPI with AddressSanitizer", "the compiler has none");
    }
    over_each_transport("LAPI with AddressSanitizer", &checked(&[], &[FLAG], ""), |_, job| {
        let outcome = job.clone().run();
        assert_eq!(outcome.ok().stdout, "good\ngood\n", "{outcome}");
        let overflow = job.clone().arg("overflow").run();
        overflow.says("heap-buffer-overflow").says("make_mistake");
        job.arg("leak").run().says("detected memory leaks").says("7 byte(s) leaked in 1 allocation(s)");
    });
}

#[test]
fn thread_sanitizer_finds_the_mistakes_of_the_program_alone() {
    const FLAG: &str = "-fsanitize=thread";
    if !has_sanitizer(FLAG) {
        return skipped("LAPI with ThreadSanitizer", "the compiler has none");
    }
    let options = format!("suppressions={}", installed("tsan.supp"));
    let job = checked(&[], &[FLAG], "").env("TSAN_OPTIONS", options);
    over_each_transport("LAPI with ThreadSanitizer", &job, |_, job| {
        let outcome = job.clone().run();
        assert_eq!(outcome.ok().stdout, "good\ngood\n", "{outcome}");
        job.arg("race").run().exited(66).says("data race").says("mistaken_increment");
    });
}

/// Whether this command can trace a program here, and says so: containers may forbid ptrace.
fn can_trace(tracer: &str, says: &str) -> bool {
    let words: Vec<&str> = tracer.split(' ').collect();
    let ran = Command::new(words[0]).args(&words[1..]).arg("true").env("DEBUGINFOD_URLS", "").output();
    ran.is_ok_and(|ran| String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).contains(says))
}

#[test]
fn a_debugger_stops_in_a_handler() {
    if !is_installed("gdb") {
        return skipped("a task in a debugger", "gdb is not installed");
    }
    if !can_trace("gdb -q -nx -batch -ex run", "exited normally") {
        return skipped("a task in a debugger", "gdb may not trace programs here");
    }
    let commands = ["-ex", "break on_data", "-ex", "run", "-ex", "bt", "-ex", "continue"];
    let checker = [&["gdb", "-q", "-nx", "-batch"], &commands[..]].concat();
    over_each_transport("a task in a debugger", &checked(&checker, &[], ""), |_, job| {
        let outcome = job.run();
        let stops = outcome.ok().stdout.matches("hit Breakpoint 1, on_data (").count();
        assert_eq!(stops, 2, "{outcome}");
        assert_eq!(outcome.stdout.matches("exited normally").count(), 2, "{outcome}");
    });
}

#[test]
fn system_calls_are_traced() {
    if !is_installed("strace") {
        return skipped("a task under strace", "strace is not installed");
    }
    if !can_trace("strace -f", "+++ exited with 0 +++") {
        return skipped("a task under strace", "strace may not trace programs here");
    }
    over_each_transport("a task under strace", &checked(&["strace", "-f"], &[], ""), |_, job| {
        let outcome = job.run();
        assert_eq!(outcome.ok().stdout, "good\ngood\n", "{outcome}");
        outcome.says("+++ exited with 0 +++");
    });
}

/// By the system's clock: many virtual machines have none of the processor's counters.
#[test]
fn perf_names_the_calls_of_lapi() {
    const RECORD: &str = "perf record -e cpu-clock -c 200000 --call-graph dwarf";
    if !is_installed("perf") {
        return skipped("a task under perf", "perf is not installed");
    }
    if !can_trace(&format!("{RECORD} -o /dev/null"), "[ perf record: Captured") {
        return skipped("a task under perf", "perf may not record programs here");
    }
    let script = format!(r#"exec {RECORD} -o "$OUT.$MP_CHILD" "$0" "$@""#);
    over_each_transport("a task under perf", &checked(&["sh", "-c", &script], &[], ""), |transport, job| {
        let out = scratch(&format!("perf-{transport}"));
        let outcome = job.env("OUT", out.join("data")).run();
        assert_eq!(outcome.ok().stdout, "good\ngood\n", "{outcome}");
        for task in 0..2 {
            let mut script = Command::new("perf");
            script.args(["script", "-F", "ip,sym,dso", "-i"]).arg(out.join(format!("data.{task}")));
            let listed = script.env("DEBUGINFOD_URLS", "").output().expect("perf runs");
            let text = String::from_utf8_lossy(&listed.stdout).into_owned();
            let has = |function: &str, file: &str| {
                text.lines().any(|line| line.contains(function) && line.contains(file))
            };
            // A call that does nothing but go on to what carries it out has no frame of its own.
            let calls = [" LAPI_", " openlapi_capi::calls::"].iter().any(|name| has(name, "/liblapi_r.so"));
            assert!(calls && has(" main ", "/field-exchange"), "{listed:?}");
        }
    });
}

/// One task at a time, over UDP: what others write into shared memory is not recorded.
#[test]
fn rr_records_a_task_and_replays_it() {
    if !is_installed("rr") {
        return skipped("a task under rr", "rr is not installed");
    }
    let out = scratch("rr");
    let can = Command::new("rr").args(["record", "-o"]).arg(out.join("can")).arg("true").output();
    if !can.is_ok_and(|can| can.status.success()) {
        return skipped("a task under rr", "rr finds no counters of the processor that it knows");
    }
    let script = r#"exec rr record -o "$OUT.$MP_CHILD" "$0" "$@""#;
    let job = checked(&["sh", "-c", script], &[], "").env("OUT", out.join("trace"));
    let job = job.env("MP_EUILIB", "ip").env("LAPI_USE_SHM", "no").env("MP_DEBUG_NOTIMEOUT", "yes");
    let outcome = job.run();
    assert_eq!(outcome.ok().stdout, "good\ngood\n", "{outcome}");
    for task in 0..2 {
        let mut replay = Command::new("rr");
        let replayed = replay.args(["replay", "-a"]).arg(out.join(format!("trace.{task}"))).output();
        let replayed = replayed.expect("rr runs");
        assert!(String::from_utf8_lossy(&replayed.stdout).contains("good"), "{replayed:?}");
    }
}

#[test]
fn a_program_with_address_sanitizer_is_profiled() {
    const FLAG: &str = "-fsanitize=address";
    if !has_sanitizer(FLAG) {
        return skipped("the profile of a program with AddressSanitizer", "the compiler has none");
    }
    let folder = build_dir().join("tests/field-profile-asan");
    let _ = fs::remove_dir_all(&folder);
    let job = checked(&[], &[FLAG], "").poe_arg("-profile").poe_arg(&folder);
    // The user's own options, and libraries, stay.
    let job = job.env("ASAN_OPTIONS", "exitcode=7").env("LD_PRELOAD", "libdl.so.2");
    job.clone().run().ok();
    let page = fs::read_to_string(folder.join("report.html")).expect("the report");
    assert!(page.contains("LAPI_Rmw64"), "{page}");
    let outcome = job.arg("overflow").run();
    outcome.says("exited with status 7");
    assert!(outcome.status == Some(7), "{outcome}");
}

#[test]
fn a_profile_of_nothing_says_why() {
    let folder = build_dir().join("tests/field-profile-nothing");
    let _ = fs::remove_dir_all(&folder);
    let source = "tests/field/nothing.c";
    for (name, flags, why) in [
        ("static", &["-static"][..], "is linked statically"),
        ("nothing", &[], "no task has called LAPI_Init of the library liblapi_r.so"),
    ] {
        let program = compile_plain(&format!("field-{name}"), &[source], flags);
        let job = Job::new(&program).procs(2).poe_arg("-profile").poe_arg(&folder);
        job.run().ok().says("no task has left a part in").says(why);
    }
}

/// The system's clock is set again and again while a job runs, for `poe` too: nothing waits too
/// long for it, and nothing gives up too soon.
#[test]
fn the_clock_jumps_by_hours() {
    let jumps = compile_plain("libfield-jumps", &["tests/field/jumps.c"], &["-fPIC", "-shared"]);
    let clock = || {
        let said = Command::new("date").arg("+%s").env("LD_PRELOAD", &jumps).output().expect("date");
        String::from_utf8_lossy(&said.stdout).trim().parse::<i64>().expect("seconds")
    };
    let first = clock();
    assert!(eventually(|| (clock() - first).abs() > 3000), "the clock does not jump");
    let sources = ["tests/c/hostile/victim.c", "tests/c/common/ltest.c"];
    let job = Job::new(compile("field-jumping", &sources, &[])).procs(3).env("LD_PRELOAD", &jumps);
    over_each_transport("a clock that jumps", &job, |transport, job| {
        let stop = build_dir().join(format!("tests/jumps-{}-{transport}", std::process::id()));
        let running = job.arg(&stop).start();
        thread::sleep(Duration::from_secs(3));
        fs::write(&stop, "").expect("a file can be written");
        let outcome = running.wait();
        assert_eq!(outcome.ok().stdout.matches("PASS").count(), 3, "{transport}: {outcome}");
        fs::remove_file(&stop).expect("it was written");
    });
}
