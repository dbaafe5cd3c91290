//! The names of the calls, and the profiling interface of the manual's chapter 9.

use crate::{compilers, passed, program};
use openlapi_tests::{Job, build_dir, compile_with, stage, workspace};
use serde_json::Value;
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

/// The profile has a row for each line of a Fortran program that calls, by whichever name of the
/// call, preloaded and linked.
#[test]
fn a_profile_has_the_lines_of_the_program() {
    let c = compile_with(&stage().join("bin/mpcc_r"), "f-places.o", &["tests/f/places.c"], &["-c"]);
    let c = c.to_str().expect("an ordinary name");
    for compiler in compilers() {
        for more in [&[c][..], &[c, "-llapiprof"]] {
            let program = program(&compiler, "places.f90", more);
            let folder = build_dir().join(format!("tests/f-places-{compiler}-{}", more.len()));
            let _ = fs::remove_dir_all(&folder);
            let job = Job::new(program).procs(2);
            let job = match more.len() {
                1 => job.poe_arg("-profile").poe_arg(&folder),
                _ => job.env("LAPIPROF_OUT", &folder),
            };
            passed(&job.run(), 2);
            let report = fs::read(folder.join("report.json")).expect("the report");
            let report: Value = serde_json::from_slice(&report).expect("JSON");
            let rows = report["sites"].as_array().expect("a list");
            let found: BTreeSet<(&str, &str, u64)> = rows
                .iter()
                .filter(|row| row["line"].as_str().is_some_and(|line| line.starts_with("places.")))
                .map(|row| {
                    let text = |name: &str| row[name].as_str().expect("a text");
                    (text("call"), text("line"), row["count"].as_u64().expect("a number"))
                })
                .collect();
            let fortran = |text| format!("places.f90:{}", line("tests/f/places.f90", text));
            let first = line("tests/f/places.c", "    lapi_fence_(");
            let fences: Vec<String> = (first..first + 4).map(|line| format!("places.c:{line}")).collect();
            let (thrice, once, all) = (fortran("! thrice"), fortran("! once"), fortran("! all"));
            let (own, init) = (fortran("call LAPI_ADDRESS("), fortran("call LAPI_ADDRESS_INIT"));
            let mut expected = BTreeSet::from([
                ("LAPI_Address", own.as_str(), 2),
                ("LAPI_Address_init", init.as_str(), 2),
                ("LAPI_Put", thrice.as_str(), 6),
                ("LAPI_Put", once.as_str(), 2),
                ("LAPI_Gfence", all.as_str(), 2),
            ]);
            expected.extend(fences.iter().map(|line| ("LAPI_Fence", line.as_str(), 2)));
            assert_eq!(found, expected, "{compiler} {more:?}");
        }
    }
}

/// The number of the first line of a source that has this text.
fn line(source: &str, text: &str) -> usize {
    let source = fs::read_to_string(workspace().join(source)).expect("the source");
    1 + source.lines().position(|line| line.contains(text)).expect("the text")
}
