//! The names of the calls, and the profiling interface of the manual's chapter 9.

use crate::{compilers, program};
use openlapi_tests::{Job, compile_with, stage};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// Every call of `lapi.h` has its eight names for Fortran, and no other call has any.
#[test]
fn every_call_has_its_names() {
    let header = fs::read_to_string(stage().join("include/lapi.h")).expect("it is installed");
    let in_c: Vec<&str> = header
        .lines()
        .filter_map(|line| line.strip_prefix("int ")?.split_once('('))
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("LAPI_") || name.starts_with("PLAPI_"))
        .collect();
    assert!(in_c.len() >= 62, "{} calls in lapi.h", in_c.len());
    let expected: BTreeSet<String> = in_c
        .iter()
        .flat_map(|name| [name.to_lowercase(), name.to_uppercase()])
        .flat_map(|name| [format!("{name}_"), name])
        .collect();
    let nm = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(stage().join("lib/liblapi_r.so.1"))
        .output()
        .expect("nm can be run");
    let text = String::from_utf8_lossy(&nm.stdout);
    let functions = text.lines().filter_map(|line| line.split_once(" T ")).map(|(_, name)| name);
    let found: BTreeSet<String> = functions
        .filter(|name| {
            name.to_lowercase().trim_start_matches('p').starts_with("lapi_") && !in_c.contains(name)
        })
        .map(str::to_owned)
        .collect();
    assert_eq!(found, expected);
}

/// A Fortran program goes through wrappers in C and in Fortran, and through each only once.
#[test]
fn wrappers_in_c_and_in_fortran_are_met() {
    let c = compile_with(&stage().join("bin/mpcc_r"), "f-profiler.o", &["tests/f/profiler.c"], &["-c"]);
    let c = c.to_str().expect("an ordinary name");
    for compiler in compilers() {
        let program = program(&compiler, "profiled.f", &["tests/f/profiler.f90", c]);
        let outcome = Job::new(program).run();
        outcome.ok();
        // LAPI_INIT has wrappers of both kinds: the one for Fortran calls PLAPI_INIT, which
        // has no wrapper.
        let expected = "init 0 1, senv 1, fence 1, gfence 0 1, probe 1\n";
        assert_eq!(outcome.stdout, expected, "{outcome}");
    }
}
