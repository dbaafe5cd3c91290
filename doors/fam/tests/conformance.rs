//! The statements about OpenFAM, by a program in C++: one daemon, three daemons, files, memory that
//! is mapped, and two hosts.

mod support;

use openlapi_tests::{Hosts, Job, Layout, Marked, eventually, skipped};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use support::built;
use support::pool::{Kind, PLAIN, Pool, cases, conformance, settings};

/// All cases with this pool.
fn all(pool: &Pool, but: &[&str]) {
    let cases = cases();
    assert!(cases.len() > 20, "{cases:?}");
    for case in cases.iter().filter(|case| !but.contains(&case.as_str())) {
        let outcome = pool.job(&conformance()).arg(case).run();
        assert_eq!(outcome.ok().stdout, format!("OK {case}\n"));
    }
}

#[test]
fn one_daemon() {
    all(&Pool::new("one", PLAIN), &[]);
}

#[test]
fn three_daemons() {
    all(&Pool::new("three", Kind { daemons: 3, block: 1 << 16, ..PLAIN }), &[]);
}

#[test]
fn blocks_smaller_than_elements() {
    let pool = Pool::new("blocks", Kind { daemons: 2, block: 64, ..PLAIN });
    for case in ["gather_and_scatter", "ranges", "of_128_bits", "types"] {
        pool.job(&conformance()).arg(case).run().ok();
    }
}

#[test]
fn memory_that_is_mapped() {
    let pool = Pool::new("mapped", Kind { model: "shared_memory", ..PLAIN });
    pool.job(&conformance()).arg("mapped").run().ok();
}

/// Data goes over the network, and the key is what lets a program in.
#[test]
fn two_hosts() {
    let what = "OpenFAM between two hosts";
    let hosts = Hosts::with(Layout { hosts: 2, rails: 1, own_tmp: false });
    let Ok(hosts) = hosts.map_err(|why| skipped(what, &why)) else { return };
    let folder = hosts.folder().join("fam");
    fs::create_dir_all(folder.join(".openlapi")).expect("a folder");
    let key = folder.join(".openlapi/key");
    fs::write(&key, "7".repeat(32)).expect("a file");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a mode");
    settings(&folder, &[format!("{}:8787", hosts.address(0, 0))], PLAIN);
    let config = folder.join("config");
    let daemon = Job::direct(built().join("openfamd")).without_launchers().env("HOME", &folder);
    let _daemon = Marked::start(hosts.inside(0, daemon.arg("--config").arg(&config)));
    let program = |case: &str| {
        let job = Job::direct(conformance()).arg(case).without_launchers();
        let job = job.env("OPENFAM_ROOT", &folder).env("LD_LIBRARY_PATH", built());
        hosts.inside(1, job.env("HOME", &folder)).run()
    };
    assert!(eventually(|| program("served").stdout.contains("OK served")), "{}", program("served"));
    for case in ["names", "put_and_get", "nonblocking", "gather_and_scatter", "types", "fences", "copies"] {
        program(case).ok();
    }
    fs::write(&key, "8".repeat(32)).expect("a file");
    let refused = program("served");
    assert!(refused.stdout.contains("error 2: "), "another key is FAM_ERR_NOPERM: {refused}");
}
