//! Surroundings in which such libraries have failed their users, one module for each kind. The
//! programs are in `tests/field`.

mod makefiles;
mod peers;
mod processes;
mod profiles;
mod surroundings;
mod tools;
mod top;

use std::fs;
use std::path::PathBuf;

use openlapi_tests::{Job, build_dir, compile};

/// Does this with each of these, in threads: jobs that wait take no longer than one of them.
fn side_by_side<T: Send>(each: impl IntoIterator<Item = T>, test: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for one in each {
            let test = &test;
            scope.spawn(move || test(one));
        }
    });
}

/// A job of `tests/field/NAME.c`, with arguments split at blanks.
fn job(name: &str, procs: usize, args: &str) -> Job {
    let source = format!("tests/field/{name}.c");
    let program = compile(&format!("field-{name}"), &[&source], &[]);
    args.split_whitespace().fold(Job::new(&program).procs(procs), Job::arg)
}

/// A folder of the tests, new and empty.
fn scratch(name: &str) -> PathBuf {
    let folder = build_dir().join(format!("tests/field-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder can be made");
    folder
}
