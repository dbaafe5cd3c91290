//! Options of xlc, xlC and xlf in the makefiles of real programs, and the names of their drivers.
//!
//! `table`: `packaging/compat/xl-options`, the wrappers, and the page. `results`: programs whose
//! results an option changes. `builds`: make and configure scripts. `lapif`: what Fortran programs
//! and lapif.h expect of each other.

mod builds;
mod lapif;
mod results;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use openlapi_tests::{build_dir, stage, workspace};

/// A command with the installed wrappers in front of all else, and no variable that
/// chooses a compiler.
fn command(program: &str, dir: &Path) -> Command {
    let path = std::env::var("PATH").expect("there is a PATH");
    let mut command = Command::new(program);
    for chooser in ["CC", "CXX", "FC", "F77", "MP_COMPILER", "MP_MSG_API", "MAKEFLAGS", "MFLAGS"] {
        command.env_remove(chooser);
    }
    command.env("PATH", format!("{}:{path}", stage().join("bin").display())).current_dir(dir);
    command
}

/// A wrapper with arguments that are split at blanks.
fn wrapper(name: &str, dir: &Path, args: &str) -> Output {
    let name = stage().join("bin").join(name);
    let mut command = command(name.to_str().expect("an ordinary name"), dir);
    command.args(args.split_whitespace()).output().expect("the wrapper can be run")
}

/// What a command has printed; it must have succeeded.
#[track_caller]
fn ok(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// What a command has said that must have been refused as wrong usage.
#[track_caller]
fn refused(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{}{said}", String::from_utf8_lossy(&output.stdout));
    said
}

/// A fresh folder.
fn folder(name: &str) -> PathBuf {
    let dir = build_dir().join("tests").join(format!("makefiles-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("the folder can be made");
    dir
}

/// The path of a program of these tests.
fn source(name: &str) -> String {
    workspace().join("tests/field/makefiles").join(name).display().to_string()
}
