//! How the tests compile programs of GM, and start them.

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
    let folder = libraries();
    let paths: Vec<String> = sources.iter().map(|source| format!("doors/gm/tests/c/{source}")).collect();
    let sources: Vec<&str> = paths.iter().map(String::as_str).collect();
    let link = [format!("-L{}", folder.display()), format!("-Wl,-rpath,{}", folder.display())];
    // A program is compiled again when the header changes.
    let mut hash = DefaultHasher::new();
    fs::read(workspace().join("doors/gm/include/gm.h")).expect("the header").hash(&mut hash);
    let header = format!("-DHEADER={}", hash.finish());
    let mut all = vec!["-Idoors/gm/include", &link[0], &link[1], &header];
    all.extend(flags);
    all.push("-lgm");
    compile_with(Path::new(compiler), name, &sources, &all)
}

/// A job of that many tasks.
#[allow(dead_code, reason = "not every test starts jobs")]
pub fn poe(program: &Path, tasks: usize) -> Job {
    Job::new(program).procs(tasks)
}
