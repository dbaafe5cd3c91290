//! What the tests of the library share: the libraries, and programs in C and
//! C++. Each test program uses some of it.
#![allow(dead_code)]

pub mod pool;

use openlapi_tests::{compile_with, door, workspace};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The folder with the libraries and the daemon.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| door("fam", env!("CARGO_BIN_EXE_openfamd")))
}

/// A program of sources in `doors/fam`, with our headers and the libraries of these names.
pub fn compiled(compiler: &str, name: &str, sources: &[&str], library: &str, flags: &[&str]) -> PathBuf {
    let sources: Vec<String> = sources.iter().map(|source| format!("doors/fam/{source}")).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let built = built();
    let include = format!("-I{}", workspace().join("doors/fam/include").display());
    let path = format!("-Wl,--disable-new-dtags,-rpath,{0},-rpath-link,{0}", built.display());
    let libraries: Vec<String> =
        library.split(' ').map(|one| built.join(one).display().to_string()).collect();
    let common = ["-Wextra", "-Wpedantic", "-Werror", "-pthread", &include, &path];
    let libraries: Vec<&str> = libraries.iter().map(String::as_str).collect();
    compile_with(Path::new(compiler), name, &sources, &[&common[..], &libraries, flags].concat())
}

/// A program of one source in C++.
pub fn program(name: &str) -> PathBuf {
    let sources = [&format!("tests/c/{name}.cpp")[..]];
    compiled("c++", &format!("fam_{name}"), &sources, "libopenfam.so.3", &["-std=c++14"])
}

/// The program that makes every call in C.
pub fn plain() -> PathBuf {
    let sources = ["tests/c/plain.c", "tests/c/plain_data.c", "tests/c/plain_atomics.c"];
    compiled("cc", "fam_plain", &sources, "libopenfam_c.so", &["-std=c99"])
}

/// The sources of the conformance program.
pub const CONFORMANCE: &[&str] = &[
    "tests/c/main.cpp",
    "tests/c/start.cpp",
    "tests/c/regions.cpp",
    "tests/c/data.cpp",
    "tests/c/atomics.cpp",
    "tests/c/contexts.cpp",
    "tests/c/copies.cpp",
];
