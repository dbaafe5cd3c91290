//! Two hosts: the keeper is on the first one, another server of memory on the second one, and
//! programs on both.

mod support;

use nix::sys::signal::Signal;
use openlapi_tests::{Hosts, Job, Marked, skipped};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use support::pool::{Kind, PLAIN, cases, conformance, settings};
use support::{built, program};

/// Nobody's number, of user and group.
const OTHER: u32 = 65_534;

/// A pool of two hosts, whose folder another user may read, as their common /tmp.
struct Pair {
    folder: PathBuf,
    _daemons: [Marked; 2],
    hosts: Hosts,
}

impl Pair {
    /// One whose keeper has reached the other server. `None`: there are no hosts here.
    fn new(test: &str) -> Option<Self> {
        let hosts = Hosts::new(2).map_err(|why| skipped("OpenFAM between two hosts", &why)).ok()?;
        let folder = std::env::temp_dir().join(format!("openlapi-fam-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("a mode");
        let key = folder.join("key");
        fs::write(&key, "7".repeat(32)).expect("a file");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a mode");
        let addresses = [0, 1].map(|host| format!("{}:8787", hosts.address(host, 0)));
        settings(&folder, &addresses, Kind { daemons: 2, block: 1 << 16, ..PLAIN });
        let daemon = |host: usize| {
            let job = Job::direct(built().join("openfamd")).without_launchers().env("LAPI_FAM_KEY", &key);
            let job = job.arg("--config").arg(folder.join("config"));
            let job = if host == 0 { job } else { job.arg("--server").arg("1") };
            Marked::start(hosts.inside(host, job.deadline(600)))
        };
        let server = daemon(1);
        let mut keeper = daemon(0);
        keeper.running().until_it_says("server 1 of memory has joined\n");
        Some(Self { folder, _daemons: [keeper, server], hosts })
    }

    /// A program on a host, with this key.
    fn job(&self, host: usize, program: &Path, key: &Path) -> Job {
        let job = Job::direct(program).without_launchers().env("LD_LIBRARY_PATH", built());
        let job = job.env("OPENFAM_ROOT", &self.folder).env("LAPI_FAM_KEY", key);
        self.hosts.inside(host, job)
    }

    /// The file of the pool's key.
    fn key(&self) -> PathBuf {
        self.folder.join("key")
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Items lie on both hosts: data and what a keeper asks go over the network, with the key.
#[test]
fn all_cases() {
    let Some(pair) = Pair::new("abroad") else { return };
    for case in cases() {
        let outcome = pair.job(1, &conformance(), &pair.key()).arg(&case).run();
        assert_eq!(outcome.ok().stdout, format!("OK {case}\n"));
    }
    // From the keeper's host, whose programs reach the other server by the network.
    for case in ["put_and_get", "interleaved", "copies"] {
        pair.job(0, &conformance(), &pair.key()).arg(case).run().ok();
    }
}

/// Who knows the key is the user and the group that it says it is, and has their rights alone.
#[test]
fn another_user_of_another_host() {
    if !rustix::process::geteuid().is_root() {
        return skipped("OpenFAM by two users of two hosts", "only root can be another user");
    }
    let Some(pair) = Pair::new("stranger") else { return };
    let mut owner = Marked::start(pair.job(0, &program("users"), &pair.key()).arg("owner"));
    owner.running().until_it_says("made\n");
    let key = pair.folder.join("key of another user");
    fs::copy(pair.key(), &key).expect("a file");
    chown(&key, Some(OTHER), Some(OTHER)).expect("an owner");
    let stranger = pair.job(1, &program("users"), &key).arg("stranger").run();
    assert_eq!(stranger.ok().stdout, "OK stranger\n");
    let same = pair.job(1, &program("users"), &pair.key()).arg("same_user").run();
    assert_eq!(same.ok().stdout, "OK same_user\n");
    owner.running().signal(Signal::SIGUSR1);
    let outcome = owner.over();
    assert!(outcome.ok().stdout.ends_with("OK owner\n"), "{outcome}");
}

#[test]
fn another_key_or_none() {
    let Some(pair) = Pair::new("keys") else { return };
    let key = pair.folder.join("another key");
    for text in [None, Some("8".repeat(32))] {
        if let Some(text) = text {
            fs::write(&key, text).expect("a file");
            fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a mode");
        }
        let refused = pair.job(1, &conformance(), &key).arg("served").run();
        assert!(refused.stdout.contains("error 2: "), "FAM_ERR_NOPERM: {refused}");
    }
    pair.job(1, &conformance(), &pair.key()).arg("served").run().ok();
}
