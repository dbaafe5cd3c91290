//! Two doors and LAPI in one process: librpmem, netio3 and liblapi_r, each with a core of its own,
//! linked together, and opened in several orders.

mod support;

use openlapi_tests::{Job, compile_with, stage, workspace};
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use support::{Host, built};

/// The files of librpmem, netio3 and LAPI. In the first one's folder are the doors by their
/// sonames.
fn libraries() -> &'static [PathBuf; 3] {
    static LIBRARIES: OnceLock<[PathBuf; 3]> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let own = std::env::current_exe().expect("this program");
        // Cargo has built it for these tests.
        let netio3 = own.with_file_name("libopenlapi_netio3.so");
        match symlink(&netio3, built().join("libopenlapi_netio3.so.0")) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => panic!("a link: {error}"),
            _ => {}
        }
        [built().join("librpmem.so.1"), netio3, stage().join("lib/liblapi_r.so.1")]
    })
}

/// The program, with more flags.
fn program(compiler: &Path, name: &str, more: &[&str]) -> PathBuf {
    let folder = |door: &str| format!("-I{}", workspace().join(door).display());
    let (rpmem, netio3) = (folder("doors/rpmem/include"), folder("doors/netio3/include"));
    let flags = ["-std=c++17", "-pthread", "-Wextra", "-Werror", &rpmem, &netio3];
    compile_with(compiler, name, &["doors/rpmem/tests/c/beside.cpp"], &[&flags, more].concat())
}

/// Runs it as two tasks, which both come to their end.
fn runs(program: &Path, lapi_ends: &str, opened: &[&Path], change: impl FnOnce(Job) -> Job) {
    let host = Host::new("beside");
    for set in ["pool0", "pool1"] {
        host.set(set, "", 1);
    }
    let job = Job::new(program).procs(2).arg(lapi_ends).arg("host").arg("pool").arg(host.path("socket"));
    let job = opened.iter().fold(job, |job, library| job.arg(library));
    let outcome = change(host.reached_by(job)).run();
    let said = outcome.ok().stdout.matches(": all of it\n").count();
    assert_eq!(said, 2, "LAPI ends {lapi_ends}, {opened:?}\n{outcome}");
}

#[test]
fn linked_together() {
    let [rpmem, netio3, _] = libraries().each_ref().map(|path| path.display().to_string());
    let program = program(&stage().join("bin/mpCC_r"), "rpmem_beside", &[&rpmem, &netio3]);
    for lapi_ends in ["first", "last"] {
        runs(&program, lapi_ends, &[], |job| job);
        runs(&program, lapi_ends, &[], |job| job.env("LAPI_USE_SHM", "no").env("MP_EUILIB", "ip"));
    }
}

#[test]
fn opened_in_other_orders() {
    let include = format!("-I{}", stage().join("include").display());
    let program = program(Path::new("g++"), "rpmem_beside_opened", &["-DOPENED", &include, "-ldl"]);
    let [rpmem, netio3, lapi] = libraries().each_ref().map(PathBuf::as_path);
    runs(&program, "last", &[netio3, lapi, rpmem], |job| job);
    runs(&program, "first", &[lapi, rpmem, netio3], |job| job);
    runs(&program, "first", &[rpmem, netio3, lapi], |job| job);
}
