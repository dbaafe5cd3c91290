//! The installation that the tests run against, and the libraries of doors.

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

/// The folder with the libraries and the daemon of a door, from what cargo has built for its tests:
/// the archive beside the test's own program, which the door's link.sh makes libraries of.
pub fn door(name: &str, daemon: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a program");
    let beside = own.parent().expect("a folder of the build");
    let begin = format!("lib{name}-");
    let archives = fs::read_dir(beside).expect("the build can be read").filter_map(|entry| {
        let path = entry.expect("the build can be read").path();
        let file = path.file_name()?.to_str()?;
        let is_archive = file.starts_with(&begin) && file.ends_with(".a");
        let built = is_archive.then(|| fs::metadata(&path).and_then(|file| file.modified()))?;
        Some((built.expect("a file of the build"), path))
    });
    let (_, archive) = archives.max().expect("cargo has built the archive of the door");
    let folder = beside.join("doors").join(archive.file_stem().expect("a name"));
    let _lock = lock(&folder.join("lock"));
    let program = Path::new(daemon).file_name().expect("a name");
    for (place, target) in
        [(format!("lib{name}.a").as_ref(), archive.as_path()), (program, Path::new(daemon))]
    {
        let place = folder.join(place);
        if fs::read_link(&place).ok().as_deref() != Some(target) {
            let _ = fs::remove_file(&place);
            std::os::unix::fs::symlink(target, &place).expect("a link in the build folder");
        }
    }
    let script = workspace().join("doors").join(name).join("link.sh");
    let linked = Command::new(script).env("RELEASE", &folder).output().expect("link.sh can be run");
    assert!(linked.status.success(), "link.sh has failed:\n{}", String::from_utf8_lossy(&linked.stderr));
    folder
}

/// Takes the lock that `path` names, and holds it until the returned value is dropped.
pub(crate) fn lock(path: &Path) -> Flock<File> {
    fs::create_dir_all(path.parent().expect("a lock lies in a folder"))
        .expect("the build folder can be made");
    let file = File::create(path).expect("a lock file can be made");
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| errno).expect("a file can be locked")
}
