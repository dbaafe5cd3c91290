//! The C and C++ compilers of this machine, and the headers they are shown.

// Each test file uses its own part.
#![allow(dead_code)]

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiler for C and one for C++ of the same kind.
pub struct Compiler {
    cc: &'static str,
    cxx: &'static str,
}

/// gcc, which must be there, and clang, if it is.
pub fn compilers() -> Vec<Compiler> {
    let gcc = Compiler { cc: "gcc", cxx: "g++" };
    assert!(gcc.exists(), "gcc and g++ are needed to test the headers");
    let clang = Compiler { cc: "clang", cxx: "clang++" };
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
        let output = Command::new(if is_c { self.cc } else { self.cxx })
            // These tests themselves may have been built for 32 bits.
            .arg(if cfg!(target_pointer_width = "32") { "-m32" } else { "-m64" })
            .args([standard, "-Wall", "-Werror", "-I"])
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
        [self.cc, self.cxx].iter().all(|name| Command::new(name).arg("--version").output().is_ok())
    }
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.cc)
    }
}
