//! The C and C++ compilers of this machine, and the headers they are shown.

// Each test file uses its own part.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command that runs a program: `TEST_RUNNER` first, words of a command that runs programs of
/// another processor.
pub fn command(program: &Path) -> Command {
    let runner = std::env::var("TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().expect("the program"));
    command.args(words);
    command
}

/// A compiler for C and one for C++ of the same kind.
pub struct Compiler {
    cc: String,
    cxx: String,
}

/// gcc, which must be there, and clang, if it is. For another processor (`make test-cross`) the one
/// whose names begin with `CROSS_COMPILE`.
pub fn compilers() -> Vec<Compiler> {
    let prefix = std::env::var("CROSS_COMPILE").unwrap_or_default();
    let gcc = Compiler { cc: format!("{prefix}gcc"), cxx: format!("{prefix}g++") };
    assert!(gcc.exists(), "{prefix}gcc and {prefix}g++ are needed to test the headers");
    if !prefix.is_empty() {
        return vec![gcc];
    }
    let clang = Compiler { cc: "clang".to_owned(), cxx: "clang++".to_owned() };
    if !clang.exists() {
        println!("skipped with clang: it is not installed");
        return vec![gcc];
    }
    vec![gcc, clang]
}

/// Where `lapi.h` is.
pub fn include_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../include")
}

/// The programs in C that the headers are tried on.
pub fn programs_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/c/headers")
}

impl Compiler {
    /// Compiles and links a program; fails the test on any warning. The name's extension says which
    /// language it is.
    pub fn build(&self, name: &str, standard: &str, program: &str) -> PathBuf {
        let (source, product) = self.write(name, standard, program);
        self.run(&source, standard, &[], &product);
        product
    }

    /// Compiles a program without linking it; fails the test on any warning.
    pub fn check(&self, name: &str, standard: &str, options: &[&str], program: &str) {
        let (source, product) = self.write(name, standard, program);
        self.run(&source, standard, &[&["-c"], options].concat(), &product);
    }

    fn write(&self, name: &str, standard: &str, program: &str) -> (PathBuf, PathBuf) {
        // One directory for each run: tests run at the same time.
        let run = format!("{}{standard}-{name}", self.cc);
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(run);
        std::fs::create_dir_all(&dir).expect("a directory for the program");
        let source = dir.join(name);
        std::fs::write(&source, program).expect("write the program");
        (source, dir.join("product"))
    }

    fn run(&self, source: &Path, standard: &str, options: &[&str], product: &Path) {
        let is_c = source.extension().is_some_and(|extension| extension == "c");
        // These tests themselves may have been built for 32 bits.
        let bits = if cfg!(target_arch = "x86") { "-m32" } else { "-g" };
        let output = Command::new(if is_c { &self.cc } else { &self.cxx })
            .args([bits, standard, "-Wall", "-Werror", "-I"])
            .arg(include_dir())
            .args(options)
            .arg(source)
            .arg("-o")
            .arg(product)
            .output()
            .expect("run the compiler");
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self} {standard} on {}:\n{messages}", source.display());
    }

    fn exists(&self) -> bool {
        [&self.cc, &self.cxx].iter().all(|name| Command::new(name).arg("--version").output().is_ok())
    }
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cc)
    }
}
