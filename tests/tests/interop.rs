//! Programs of 32 bits, alone and in one job with those of 64. They need the library for 32 bits in
//! the staged installation (`make stage LIB32=yes`); with `NEED_LIB32` in the environment it is an
//! error when that is missing.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use openlapi_tests::{Job, Outcome, build_dir, compile, stage};

/// Whether there is a library for 32 bits.
fn is_there() -> bool {
    let there = stage().join("lib32/liblapi_r.so").exists();
    assert!(there || std::env::var_os("NEED_LIB32").is_none(), "there is no library for 32 bits");
    if !there {
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: programs of 32 bits: make stage LIB32=yes");
    }
    there
}

/// Compiles `tests/c/NAME.c` or a sample for this number of bits.
fn program(source: &str, bits: u32) -> PathBuf {
    let name = format!("bits{bits}-{}", source.replace('/', "-"));
    let flag = format!("-q{bits}");
    let built = if source.starts_with("samples/") {
        compile(&name, &[&format!("{source}.c")], &["-std=gnu99", &flag])
    } else {
        compile(&name, &[&format!("tests/c/{source}.c"), "tests/c/common/ltest.c"], &[&flag])
    };
    let elf = fs::read(&built).expect("it was built");
    assert_eq!(u32::from(elf[4]), bits / 32, "the class in the header of {}", built.display());
    built
}

/// Fails unless every task has printed PASS.
#[track_caller]
fn passed(outcome: &Outcome, tasks: usize) {
    outcome.ok();
    assert_eq!(outcome.stdout.lines().filter(|line| line.contains("PASS")).count(), tasks, "{outcome}");
}

#[test]
fn programs_of_32_bits_among_themselves() {
    if !is_there() {
        return;
    }
    for (source, tasks, args) in [
        ("data/sizes", 2, "put 1048576"),
        ("data/sizes", 2, "get 1048576"),
        ("data/sizes", 3, "am 262144"),
        ("data/rmw", 2, "values"),
        ("data/rmw", 3, "storm"),
        ("handlers/header", 2, "ways"),
        ("handlers/completion", 2, "replies"),
        ("counters/semantics", 3, "many"),
        ("stress/storm", 3, "11 5000 1000 1 16384"),
        ("env/messages", 1, ""),
    ] {
        for bulk in ["pipeline", "attach"] {
            let job = Job::new(program(source, 32)).procs(tasks).env("LAPI_SHM_BULK", bulk);
            passed(&args.split_whitespace().fold(job, Job::arg).run(), tasks);
        }
    }
}

/// A job of these programs, one for each task.
fn mixed(name: &str, programs: &[PathBuf]) -> Job {
    let list = build_dir().join(format!("tests/interop-{name}-{}.cmd", std::process::id()));
    let lines: Vec<String> = programs.iter().map(|program| program.display().to_string()).collect();
    fs::write(&list, lines.join("\n") + "\n").expect("the list can be written");
    ["-pgmmodel", "mpmd", "-cmdfile"]
        .into_iter()
        .fold(Job::poe().procs(programs.len()), Job::poe_arg)
        .poe_arg(list)
}

/// Puts and gets of a million bytes, to and from addresses that the other side could not name by a
/// pointer, in all pairs.
#[test]
fn puts_and_gets_between_32_and_64_bits() {
    if !is_there() {
        return;
    }
    let sample = |bits| program("samples/interop/Interop", bits);
    for (at, bits) in [[64, 32, 32, 64], [64, 64, 32, 32], [32, 64, 64, 32]].into_iter().enumerate() {
        for attach in ["yes", "deny"] {
            let programs = bits.map(sample);
            let outcome =
                mixed(&format!("puts-{at}-{attach}"), &programs).env("LAPI_SHM_ATTACH", attach).run();
            outcome.ok();
            for me in 0..4 {
                let other = me ^ 1;
                let said = format!(
                    "task {me}: addresses have {} bits here, and {} in task {other}",
                    bits[me], bits[other]
                );
                assert!(outcome.stdout.lines().any(|line| line == said), "{said}\n{outcome}");
                let end = if me % 2 == 0 {
                    format!("task {me}: has put 131072 numbers into task {other}")
                } else {
                    format!("task {me}: what was put and what was got back is the same")
                };
                assert!(outcome.stdout.lines().any(|line| line == end), "{end}\n{outcome}");
            }
        }
    }
}

/// Active messages by index of the handler, with a completion counter, in both directions.
#[test]
fn active_messages_between_32_and_64_bits() {
    if !is_there() {
        return;
    }
    let sample = |bits| program("samples/xfer/Am_xfer", bits);
    for (at, bits) in [[64, 32, 32, 64], [32, 64, 64, 32]].into_iter().enumerate() {
        let outcome = mixed(&format!("am-{at}"), &bits.map(sample)).run();
        outcome.ok();
        for me in [1, 3] {
            let said = format!("task {me}: the greeting is as it was sent");
            assert!(outcome.stdout.lines().any(|line| line == said), "{outcome}");
        }
    }
}
