//! Sessions between two hosts, which are network namespaces: over libfabric and over UDP.

use openlapi_tests::{Hosts, Job, Layout, Marked, has_fabric, skipped};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const PORT: u16 = 4711;
/// A lost peer is reported within 2 s, as silence.rs has it of looks that come in time, and by the
/// kernel alone after 5 s. What is left is for the programs of this test, which end then.
const REPORTED: Duration = Duration::from_millis(4500);

/// Time as a process gets it that sleeps and wakes: on a busy machine a step takes longer, as
/// everything does that has to happen meanwhile.
struct Steps {
    gone: Arc<AtomicU32>,
}

impl Steps {
    const STEP: Duration = Duration::from_millis(10);

    /// From now on.
    fn begin() -> Self {
        let gone = Arc::new(AtomicU32::new(0));
        let counter = Arc::downgrade(&gone);
        std::thread::spawn(move || {
            while let Some(gone) = counter.upgrade() {
                gone.fetch_add(1, Ordering::Relaxed);
                drop(gone);
                std::thread::sleep(Self::STEP);
            }
        });
        Self { gone }
    }

    fn gone(&self) -> Duration {
        Self::STEP * self.gone.load(Ordering::Relaxed)
    }
}

fn hosts(what: &str) -> Option<Hosts> {
    Hosts::with(Layout { hosts: 2, rails: 1, own_tmp: false }).map_err(|why| skipped(what, &why)).ok()
}

fn key(hosts: &Hosts) -> String {
    let path = hosts.folder().join("key");
    fs::write(&path, "7".repeat(32)).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
    path.to_string_lossy().into_owned()
}

fn peer(words: &[&str]) -> Job {
    words
        .iter()
        .fold(Job::direct(env!("CARGO_BIN_EXE_session_peer")).without_launchers(), |job, word| job.arg(word))
}

#[test]
fn over_each_network() {
    let Some(hosts) = hosts("sessions between two hosts") else { return };
    let key = key(&hosts);
    // 7: the best way, which between hosts is libfabric where there is one.
    let ways = [("4", "UDP"), ("7", if has_fabric() { "libfabric" } else { "UDP" })];
    for (port, (routes, name)) in (PORT..).zip(ways) {
        let channel = format!("tcp:{}:{port}@{key}", hosts.address(0, 0));
        let mut server = Marked::start(hosts.inside(0, peer(&["serve", &channel, routes, "talk"])));
        assert!(server.running().lines(1)[0].starts_with("listens"));
        let caller = hosts.inside(1, peer(&["call", &channel, routes, "talk"])).run();
        let said = &caller.ok().stdout;
        assert!(said.contains(&format!("open: {name}\nover: talk")), "{said}");
        server.over().ok();
    }
}

#[test]
fn a_peer_that_is_killed_on_another_host_is_lost() {
    let Some(hosts) = hosts("the death of a peer on another host") else { return };
    let key = key(&hosts);
    for (port, routes) in (PORT..).zip(if has_fabric() { &["4", "2"][..] } else { &["4"] }) {
        let channel = format!("tcp:{}:{port}@{key}", hosts.address(0, 0));
        let mut server = Marked::start(hosts.inside(0, peer(&["serve", &channel, routes, "idle"])));
        assert!(server.running().lines(1)[0].starts_with("listens"));
        let mut caller = Marked::start(hosts.inside(1, peer(&["call", &channel, routes, "idle"])));
        assert!(caller.running().lines(2)[1].starts_with("idle"));
        drop(caller);
        let steps = Steps::begin();
        let over = server.over();
        assert!(steps.gone() <= REPORTED, "{routes}: the death was reported after {:?}", steps.gone());
        assert!(over.stdout.contains("error: the peer is lost"), "{}", over.stdout);
    }
}

#[test]
fn a_host_that_vanishes_is_lost() {
    let Some(hosts) = hosts("a host that vanishes") else { return };
    let key = key(&hosts);
    let channel = format!("tcp:{}:{PORT}@{key}", hosts.address(0, 0));
    let mut server = Marked::start(hosts.inside(0, peer(&["serve", &channel, "4", "idle"])));
    assert!(server.running().lines(1)[0].starts_with("listens"));
    let mut caller = Marked::start(hosts.inside(1, peer(&["call", &channel, "4", "idle"])));
    assert!(caller.running().lines(2)[1].starts_with("idle"));
    hosts.set_link(1, 0, false);
    let steps = Steps::begin();
    // Each finds the other one gone.
    for mut side in [server, caller] {
        let over = side.over();
        assert!(steps.gone() <= REPORTED, "the loss was reported after {:?}", steps.gone());
        assert!(over.stdout.contains("error: the peer is lost"), "{}", over.stdout);
    }
}
