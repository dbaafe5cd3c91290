//! The Python package: the wheel is built, installed into an environment of its own, and tested
//! by python/tests.

use openlapi_tests::{is_installed, skipped, stage, workspace};
use std::process::Command;

#[test]
fn the_wheel_passes_its_tests() {
    if !is_installed("python3") {
        skipped("the Python package", "there is no python3; ci/deps.sh python installs it");
        return;
    }
    // pip may wait for a network that does not reply.
    let tested = Command::new("timeout")
        .arg("1200")
        .arg(workspace().join("ci/python.sh"))
        .env("LAPI_STAGE", stage())
        .output()
        .expect("ci/python.sh starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&tested.stdout), text(&tested.stderr));
    assert!(tested.status.success(), "{out}\n{err}");
    // pytest says how many have passed; one that collects nothing has another status.
    assert!(out.contains(" passed"), "{out}\n{err}");
    assert!(!out.contains(" skipped"), "{out}\n{err}");
}
