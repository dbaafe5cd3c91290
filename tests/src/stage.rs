//! The staged installation that the tests run against.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use nix::fcntl::{Flock, FlockArg};

/// The top folder of the source tree.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a member of the workspace")
}

/// Where cargo builds: `CARGO_TARGET_DIR`, or `target` in the source tree.
pub fn build_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => workspace().join(dir),
        None => workspace().join("target"),
    }
}

/// The prefix under which the library, the headers, `poe` and the wrappers are installed.
///
/// That is `LAPI_STAGE` when it is set (as `make test` does). Otherwise `make stage` is run
/// once per test process, under a file lock, so that several test processes do not build into
/// the same folder.
pub fn stage() -> &'static Path {
    static STAGE: OnceLock<PathBuf> = OnceLock::new();
    STAGE.get_or_init(|| match std::env::var_os("LAPI_STAGE") {
        Some(dir) => workspace().join(dir),
        None => make_stage(),
    })
}

fn make_stage() -> PathBuf {
    let build = build_dir();
    let stage = build.join("stage");
    let _lock = lock(&build.join("stage.lock"));
    let made = Command::new("make")
        .arg("stage")
        .arg(format!("STAGE={}", stage.display()))
        .current_dir(workspace())
        .output()
        .expect("make can be run");
    assert!(
        made.status.success(),
        "make stage failed:\n{}{}",
        String::from_utf8_lossy(&made.stdout),
        String::from_utf8_lossy(&made.stderr)
    );
    stage
}

/// Takes the lock that `path` names, and holds it until the returned value is dropped.
pub(crate) fn lock(path: &Path) -> Flock<File> {
    fs::create_dir_all(path.parent().expect("a lock lies in a folder"))
        .expect("the build folder can be made");
    let file = File::create(path).expect("a lock file can be made");
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| errno).expect("a file can be locked")
}
