//! The files that `make install` installs, that they suffice for programs, and that
//! `make uninstall` removes them.

mod build;
mod doors;
mod headers;
mod sites;
mod symbols;
mod tree;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use openlapi_tests::{stage, workspace};

/// An installation of its own in a folder of its own outside the source tree; it is removed
/// with this value.
struct Installation {
    root: PathBuf,
    prefix: String,
    /// The value of DESTDIR.
    destination: String,
}

impl Installation {
    /// Installs below an empty folder.
    fn new(name: &str, prefix: &str) -> Self {
        // What is installed was built for the stage.
        stage();
        let root = std::env::temp_dir().join(format!("openlapi-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).expect("the folder can be made");
        let destination = root.display().to_string();
        Self { root, prefix: prefix.to_owned(), destination }
    }

    /// Installs into a folder below an empty one, as for a user's own folder: without DESTDIR.
    fn in_place(name: &str) -> Self {
        let mut installation = Self::new(name, "");
        installation.prefix = installation.root.join("his/own").display().to_string();
        installation.destination.clear();
        installation
    }

    /// Runs `make TARGET` with PREFIX and DESTDIR, and returns its output.
    fn make(&self, target: &str) -> String {
        let output = self.try_make(target);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn try_make(&self, target: &str) -> Output {
        Command::new("make")
            .args([target, &format!("PREFIX={}", self.prefix), &format!("DESTDIR={}", self.destination)])
            .env_remove("MAKEFLAGS")
            .env_remove("MAKELEVEL")
            .current_dir(workspace())
            .output()
            .expect("make can be run")
    }

    /// Where the programs and the library are.
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("{}{}", self.destination, self.prefix))
    }

    /// Every file, link (with where it leads to) and folder below the root, sorted.
    fn tree(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(&self.root, &self.root, &mut found);
        found.sort();
        found
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn walk(root: &Path, dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).expect("a folder can be read") {
        let path = entry.expect("a folder can be read").path();
        let name = path.strip_prefix(root).expect("it is below the root").display().to_string();
        if path.is_symlink() {
            let target = fs::read_link(&path).expect("a link can be read");
            found.push(format!("{name} -> {}", target.display()));
        } else if path.is_dir() {
            found.push(format!("{name}/"));
            walk(root, &path, found);
        } else {
            found.push(name);
        }
    }
}

/// Whether there is such a program; prints a message if not, because its tests are then skipped.
fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        // Not through the test harness, which hides the output of tests that pass.
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: what needs {program}: it is not installed");
    }
    there
}

/// Runs a command to its end, and returns its standard output.
#[track_caller]
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{command:?}: {}\n{stdout}{stderr}", output.status);
    stdout
}
