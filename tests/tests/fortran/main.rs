//! LAPI for Fortran: programs of `tests/f`, by every installed compiler.
//!
//! `headers`: `lapif.h` against `lapi.h`. `profiling`: the names of the calls, and their wrappers.

mod headers;
mod profiling;

use openlapi_tests::{Job, Outcome, build_dir, compile_plain, compile_with, skipped, stage};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What flang is called, by itself and by version.
const FLANGS: [&str; 7] =
    ["flang", "flang-new", "flang-22", "flang-21", "flang-20", "flang-new-20", "flang-new-19"];

/// gfortran, or, for another processor (`make test-cross`), the one whose name begins with
/// `CROSS_COMPILE`.
fn gfortran() -> String {
    format!("{}gfortran", std::env::var("CROSS_COMPILE").unwrap_or_default())
}

/// The compilers that are installed; gfortran must be.
fn compilers() -> Vec<String> {
    let there = |name: &str| {
        Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    let gfortran = gfortran();
    assert!(there(&gfortran), "{gfortran} is needed: ci/deps.sh test installs it");
    if gfortran != "gfortran" {
        return vec![gfortran];
    }
    let mut found = vec![gfortran];
    match FLANGS.iter().find(|name| there(name)) {
        Some(flang) => found.push((*flang).to_owned()),
        None => skipped("the Fortran programs with flang", "it is not installed"),
    }
    found
}

/// Compiles a program of `tests/f`, and more files, with more flags.
fn program(compiler: &str, file: &str, more: &[&str]) -> PathBuf {
    let (name, _) = file.rsplit_once('.').expect("the name of a source");
    let source = format!("tests/f/{file}");
    let (flags, files): (Vec<&str>, Vec<&str>) = more.iter().partition(|more| more.starts_with('-'));
    let sources = [&[source.as_str(), "tests/f/common/ftest.f90"], files.as_slice()].concat();
    // Modules of two programs may have the same name.
    let modules = build_dir().join(format!("tests/f-modules/{name}-{compiler}{}", flags.concat()));
    fs::create_dir_all(&modules).expect("the folder can be made");
    let modules = modules.to_str().expect("an ordinary name");
    let flags = [&["-compiler", compiler, "-J", modules], flags.as_slice()].concat();
    compile_with(&stage().join("bin/mpfort"), &format!("f-{name}-{compiler}"), &sources, &flags)
}

/// Fails unless the job succeeded and each of its tasks printed PASS.
#[track_caller]
fn passed(outcome: &Outcome, procs: usize) {
    outcome.ok();
    let said = outcome.stdout.lines().filter(|line| line.contains("PASS")).count();
    assert_eq!(said, procs, "every task prints one PASS\n{outcome}");
}

/// Runs a program by each compiler with each number of tasks, and expects it to pass.
#[track_caller]
fn run(file: &str, tasks: &[usize]) {
    for compiler in compilers() {
        let program = program(&compiler, file, &[]);
        for &procs in tasks {
            passed(&Job::new(&program).procs(procs).run(), procs);
        }
    }
}

#[test]
fn contexts_attributes_texts_and_addresses() {
    run("environment.f", &[1, 2, 3]);
}

#[test]
fn puts_gets_counters_and_read_modify_writes() {
    run("transfer.f", &[1, 2, 3]);
}

#[test]
fn handlers_of_every_kind() {
    run("handlers.f90", &[1, 2, 3]);
}

/// Constants in the code segment, and position-independent code together with a library with a copy
/// of `lapif.h`'s variables.
#[test]
fn handlers_however_the_program_is_linked() {
    for compiler in compilers() {
        let packed = program(&compiler, "handlers.f90", &["-Wl,-z,noseparate-code"]);
        passed(&Job::new(packed).procs(2).run(), 2);
    }
    let gfortran = gfortran();
    let flags = ["-fPIC", "-shared", "-compiler", &gfortran];
    let library =
        compile_with(&stage().join("bin/mpfort"), "f-library.so", &["tests/f/common/ftest.f90"], &flags);
    let beside = format!("-Wl,-rpath,{}", library.parent().expect("it lies in a folder").display());
    let library = library.to_str().expect("an ordinary name");
    let modules = build_dir().join("tests/f-modules/pie");
    fs::create_dir_all(&modules).expect("the folder can be made");
    let modules = modules.to_str().expect("an ordinary name");
    let flags = ["-compiler", &gfortran, "-fPIE", "-pie", "-J", modules, library, &beside];
    let program =
        compile_with(&stage().join("bin/mpfort"), "f-handlers-pie", &["tests/f/handlers.f90"], &flags);
    passed(&Job::new(program).procs(2).run(), 2);
}

/// Each has the variables of `lapif.h` for itself, and the library is given those of the first.
#[test]
fn shared_objects_that_are_opened_apart() {
    let gfortran = gfortran();
    let flags = ["-fPIC", "-shared", "-compiler", &gfortran];
    let plugin = |name| compile_with(&stage().join("bin/mpfort"), name, &["tests/f/plugin.f90"], &flags);
    let program = compile_plain("f-plugins", &["tests/f/plugins.c"], &["-ldl"]);
    let mut objects = ["f-plugin-one.so", "f-plugin-two.so"].map(plugin).to_vec();
    passed(&objects.iter().fold(Job::new(&program), Job::arg).run(), 1);
    // The second object comes later, but the library is there for all.
    objects.push(stage().join("lib/liblapi_r.so"));
    passed(&objects.iter().fold(Job::new(&program), Job::arg).run(), 1);
}

#[test]
fn vectors_both_ways() {
    run("vectors.f90", &[1, 2]);
}

#[test]
fn every_structure_of_xfer() {
    run("xfer.f90", &[1, 2, 3]);
}

#[test]
fn rdma_transfers() {
    for compiler in compilers() {
        let program = program(&compiler, "rdma.f90", &[]);
        for procs in [2, 3] {
            passed(&Job::new(&program).procs(procs).env("MP_RDMA_COUNT", "1").run(), procs);
        }
    }
}

#[test]
fn gather_and_scatter_programs() {
    run("dgsp.f90", &[1, 2]);
}

#[test]
fn the_module_from_its_source() {
    run("module.f90", &[1, 2]);
}
