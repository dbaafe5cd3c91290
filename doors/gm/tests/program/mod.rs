//! How the tests compile programs of GM, and start them.

pub mod places;

use openlapi_tests::{Job, compile_with, workspace};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The folder of libgm.so as cargo builds it for the tests: that of their own programs.
pub fn libraries() -> PathBuf {
    let own = std::env::current_exe().expect("a program");
    own.ancestors().nth(1).expect("a folder of the build").to_owned()
}

/// Compiles a program of `tests/c` as C or, by `c++`, as C++ and links it with libgm.so.
#[allow(dead_code, reason = "not every test compiles programs")]
pub fn compile(name: &str, compiler: &str, sources: &[&str], flags: &[&str]) -> PathBuf {
    compile_by(Path::new(compiler), name, sources, flags)
}

/// As [`compile`], by any compiler that takes the arguments of `cc`.
#[allow(dead_code, reason = "not every test compiles programs")]
pub fn compile_by(compiler: &Path, name: &str, sources: &[&str], flags: &[&str]) -> PathBuf {
    let folder = libraries();
    let paths: Vec<String> = sources.iter().map(|source| format!("doors/gm/tests/c/{source}")).collect();
    let sources: Vec<&str> = paths.iter().map(String::as_str).collect();
    let link = [format!("-L{}", folder.display()), format!("-Wl,-rpath,{}", folder.display())];
    // A program is compiled again when a header changes.
    let mut hash = DefaultHasher::new();
    for header in ["include/gm.h", "tests/c/desk.h", "tests/c/cases.h"] {
        fs::read(workspace().join("doors/gm").join(header)).expect("a header").hash(&mut hash);
    }
    let header = format!("-DHEADER={}", hash.finish());
    let mut all = vec!["-Idoors/gm/include", &link[0], &link[1], &header];
    all.extend(flags);
    all.push("-lgm");
    compile_with(compiler, name, &sources, &all)
}

/// A case of the conformance program, as it lists them.
#[allow(dead_code, reason = "not every test runs the cases")]
pub struct Case {
    /// The name.
    pub name: String,
    /// How many tasks there are.
    pub tasks: usize,
    /// LAPI_GM_TIMEOUT: short where the case awaits that the time passes.
    pub timeout: String,
}

/// The conformance program, as C or as C++.
#[allow(dead_code, reason = "not every test runs the cases")]
pub fn conformance(compiler: &str) -> PathBuf {
    let sources = ["conformance", "desk", "messages", "failures", "memory", "ports"];
    let sources = sources.map(|name| format!("{name}.c"));
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    compile(&format!("gm_{compiler}"), compiler, &sources, &["-pthread"])
}

/// The cases that run as tasks of a job, or as processes of a map.
#[allow(dead_code, reason = "not every test runs the cases")]
pub fn cases(program: &Path) -> Vec<Case> {
    let outcome = Job::direct(program).run();
    let lines = outcome.ok().stdout.lines().map(|line| {
        let mut words = line.split(' ').map(str::to_owned);
        let mut next = || words.next().expect("a name and two numbers");
        Case { name: next(), tasks: next().parse().expect("a number"), timeout: next() }
    });
    let cases: Vec<Case> = lines.filter(|case| case.tasks != 0).collect();
    assert!(cases.len() > 20, "hardly a case was listed");
    cases
}

/// A job of that many tasks.
#[allow(dead_code, reason = "not every test starts jobs")]
pub fn poe(program: &Path, tasks: usize) -> Job {
    Job::new(program).procs(tasks)
}
