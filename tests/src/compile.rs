//! Compiles the C programs of the tests, each once.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{build_dir, lock, stage, workspace};

/// Compiles a LAPI program with the staged `mpcc_r` and returns the path of the executable.
///
/// `sources` are relative to the top of the source tree. The result is kept under the build folder
/// and used again as long as the sources, the headers beside them and below the folders of `-I`,
/// the flags and the staged library are the same.
pub fn compile(name: &str, sources: &[&str], flags: &[&str]) -> PathBuf {
    compile_with(&stage().join("bin/mpcc_r"), name, sources, flags)
}

/// Compiles a program that does not use LAPI with the system's `cc`.
pub fn compile_plain(name: &str, sources: &[&str], flags: &[&str]) -> PathBuf {
    compile_with(Path::new("cc"), name, sources, flags)
}

/// Compiles with any compiler that takes `cc`'s arguments; otherwise as [`compile`]. One that is no
/// wrapper gets the flags of `TEST_CFLAGS` first: wrappers have those of `MP_COMPILER`.
pub fn compile_with(compiler: &Path, name: &str, sources: &[&str], flags: &[&str]) -> PathBuf {
    let more = if compiler.is_absolute() { None } else { std::env::var("TEST_CFLAGS").ok() };
    let more = more.unwrap_or_default();
    let flags = &more.split_whitespace().chain(flags.iter().copied()).collect::<Vec<_>>();
    let dir = build_dir().join("tests");
    let program = dir.join(format!("{name}-{:016x}", fingerprint(compiler, sources, flags)));
    let _lock = lock(&dir.join(format!("{name}.lock")));
    if program.exists() {
        return program;
    }
    let fresh = program.with_extension("new");
    let made = Command::new(compiler)
        .args(["-O1", "-g", "-Wall", "-o"])
        .arg(&fresh)
        .args(sources)
        .args(flags)
        .current_dir(workspace())
        .output()
        .unwrap_or_else(|error| panic!("{} cannot be run: {error}", compiler.display()));
    assert!(
        made.status.success(),
        "{} {sources:?} failed:\n{}{}",
        compiler.display(),
        String::from_utf8_lossy(&made.stdout),
        String::from_utf8_lossy(&made.stderr)
    );
    fs::rename(&fresh, &program).expect("the program can be put in place");
    program
}

/// A number that changes whenever the resulting program changes.
fn fingerprint(compiler: &Path, sources: &[&str], flags: &[&str]) -> u64 {
    let mut hash = DefaultHasher::new();
    compiler.hash(&mut hash);
    flags.hash(&mut hash);
    for source in sources {
        let path = workspace().join(source);
        hash_file(&path, &mut hash);
        for header in headers_beside(&path) {
            hash_file(&header, &mut hash);
        }
    }
    for folder in flags.iter().filter_map(|flag| flag.strip_prefix("-I")) {
        for header in headers_below(&workspace().join(folder)) {
            hash_file(&header, &mut hash);
        }
    }
    if compiler.is_absolute() {
        let prefix =
            compiler.parent().and_then(Path::parent).expect("an installed wrapper lies in PREFIX/bin");
        hash_file(compiler, &mut hash);
        for header in headers_beside(&prefix.join("include/lapi.h")) {
            hash_file(&header, &mut hash);
        }
        // The library is bound at run time, but whether a program links at all depends on it.
        if let Ok(built) = fs::metadata(prefix.join("lib/liblapi_r.so")).and_then(|file| file.modified()) {
            built.hash(&mut hash);
        }
    }
    hash.finish()
}

fn hash_file(path: &Path, hash: &mut DefaultHasher) {
    path.hash(hash);
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).hash(hash);
}

/// The files in a folder of headers, and in its folders.
fn headers_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    let files = |path: PathBuf| if path.is_dir() { headers_below(&path) } else { vec![path] };
    entries.into_iter().flat_map(files).collect()
}

/// The headers in the folder of `source`, and in the folder above it.
fn headers_beside(source: &Path) -> Vec<PathBuf> {
    let mut headers: Vec<PathBuf> = source
        .ancestors()
        .skip(1)
        .take(2)
        .filter_map(|dir| fs::read_dir(dir).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "h" || extension == "f90"))
        .collect();
    headers.sort();
    headers
}
