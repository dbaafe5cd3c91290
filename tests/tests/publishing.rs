//! What is published is made of the sources alone: the source tarball, the crates, and the files
//! that are installed.

use openlapi_tests::{skipped, stage, workspace};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An empty folder; it is removed with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("openlapi-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the folder can be made");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a command of the shell in a folder, and returns what it prints.
#[track_caller]
fn shell(folder: &Path, command: &str) -> String {
    let ran = Command::new("bash")
        .args(["-euc", command])
        .current_dir(folder)
        .env_remove("SOURCE_DATE_EPOCH")
        .env_remove("VENDOR")
        .output()
        .expect("bash runs");
    let [out, err] = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(ran.status.success(), "{command}: {}\n{out}{err}", ran.status);
    out
}

/// The version of the sources.
const NAME: &str = concat!("openlapi-", env!("CARGO_PKG_VERSION"));

/// Whether git works here: not in unpacked sources, nor in the repository of another user.
fn is_repository() -> bool {
    let log = Command::new("git").args(["log", "-1"]).current_dir(workspace()).output();
    workspace().join(".git").exists() && log.is_ok_and(|ran| ran.status.success())
}

/// The source tarball of these sources, in a folder.
fn tarball(work: &Path) -> PathBuf {
    shell(workspace(), &format!("umask 022; TZ=UTC LC_ALL=C ci/dist.sh {}/first", work.display()));
    work.join(format!("first/{NAME}.tar.gz"))
}

#[track_caller]
fn same(first: &Path, second: &Path) {
    let [bytes, others] = [first, second].map(|file| fs::read(file).expect("the tarball"));
    assert!(bytes.len() > 1 << 20, "{} bytes", bytes.len());
    assert!(bytes == others, "{} and {} differ", first.display(), second.display());
}

/// From another folder, with another umask, time zone, language and settings of git.
#[test]
fn the_source_tarball_is_the_same_bytes_twice() {
    if !is_repository() {
        // Of unpacked sources the next test makes it.
        return skipped("the source tarball of a repository", "git finds none here");
    }
    let work = Folder::new("dist");
    let first = tarball(&work.0);
    let clone = work.0.join("a/longer/name");
    shell(workspace(), &format!("git clone --quiet . {}", clone.display()));
    fs::write(work.0.join("gitconfig"), "[tar]\n\tumask = 0077\n[core]\n\tautocrlf = true\n")
        .expect("settings");
    shell(
        &clone,
        &format!(
            "umask 077; export TZ=Asia/Kathmandu LC_ALL=C.UTF-8 GIT_CONFIG_GLOBAL={0}/gitconfig; ci/dist.sh {0}/second",
            work.0.display()
        ),
    );
    same(&first, &work.0.join(format!("second/{NAME}.tar.gz")));
}

/// The files are those that its list has, with no owner; from them alone it is made again, without
/// what a build or a user has added.
#[test]
fn the_source_tarball_needs_no_git() {
    if !is_repository() && !workspace().join("MANIFEST").exists() {
        return skipped("the source tarball", "these sources have neither a repository nor MANIFEST");
    }
    let work = Folder::new("unpacked");
    let first = tarball(&work.0);
    let listed = shell(&work.0, &format!("tar --numeric-owner -tvzf {}", first.display()));
    for line in listed.lines() {
        assert!(line.contains(" 0/0 "), "{line}");
        let mode = &line[..10];
        let plain = ["drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x"].contains(&mode);
        assert!(plain || mode.starts_with('l'), "{line}");
    }
    assert!(listed.lines().count() > 1000, "{listed}");
    shell(&work.0, &format!("tar -xf {}", first.display()));
    let sources = work.0.join(NAME);
    shell(&sources, "sha256sum --quiet -c MANIFEST; test ! -e .git");
    let commit = fs::read_to_string(sources.join("packaging/commit")).expect("the commit");
    let (name, date) = commit.trim().split_once(' ').expect("its name and its date");
    assert!(name.len() >= 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{commit}");
    assert_eq!(shell(&sources, "packaging/install/date.sh").trim(), date);
    assert_eq!(shell(&sources, "SOURCE_DATE_EPOCH=7 packaging/install/date.sh").trim(), "7");
    shell(&sources, "mkdir target; touch target/built note.txt");
    shell(&sources, &format!("umask 077; ci/dist.sh {}/second", work.0.display()));
    same(&first, &work.0.join(format!("second/{NAME}.tar.gz")));

    fs::remove_file(sources.join("MANIFEST")).expect("its list");
    let refused = Command::new("ci/dist.sh").arg(&work.0).current_dir(&sources).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("neither .git nor MANIFEST"), "{said}");
}

/// The packages that a registry gets.
const CRATES: [&str; 5] =
    ["openlapi", "openlapi-libfabric-sys", "openlapi-runtime", "openlapi-session", "lapi"];

#[test]
fn crates_have_their_licences_and_nothing_that_is_not_needed() {
    for name in CRATES {
        let listed = shell(
            workspace(),
            &format!("cargo package --offline --allow-dirty --list -p {name} 2>/dev/null"),
        );
        let files: Vec<&str> = listed.lines().collect();
        for needed in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"] {
            let here = files.contains(&needed) || needed == "README.md" && files.contains(&"src/README.md");
            assert!(here, "{name} has no {needed}: {files:?}");
        }
        for file in files {
            // Binaries that the manifest of the sessions names.
            let program = file.starts_with("samples/") || file.starts_with("tests/peer/");
            let needed = file.starts_with("src/")
                || name == "openlapi-session" && program
                || file.starts_with("LICENSE-")
                || file.starts_with("Cargo.")
                || ["README.md", "CHANGELOG.md", "build.rs", ".cargo_vcs_info.json"].contains(&file);
            assert!(needed, "{name} has {file}");
        }
    }
}

/// The first build of a program in Rust compiles these. A procedural macro would bring a parser of
/// Rust with it, which takes longer than all of them.
#[test]
fn a_program_in_rust_compiles_few_crates() {
    let listed = shell(
        workspace(),
        "cargo tree --offline --locked -p lapi -e normal,build --prefix none --format {p}",
    );
    let crates: BTreeSet<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(crates.contains("lapi") && crates.contains("openlapi"), "{crates:?}");
    assert!(crates.len() <= 35 && !crates.contains("syn"), "{} crates: {crates:?}", crates.len());
}

#[test]
fn crates_say_what_a_registry_shows() {
    let metadata = shell(workspace(), "cargo metadata --offline --no-deps --format-version 1");
    let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("the packages");
    let mut published = 0;
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        let is_published = package["publish"].is_null();
        assert_eq!(is_published, CRATES.contains(&name), "{name}");
        if !is_published {
            continue;
        }
        published += 1;
        for field in ["description", "license", "rust_version", "readme"] {
            assert!(package[field].as_str().is_some_and(|text| !text.is_empty()), "{name} has no {field}");
        }
        for field in ["keywords", "categories"] {
            let count = package[field].as_array().map_or(0, Vec::len);
            assert!((1..=5).contains(&count), "{name} has {count} {field}");
        }
    }
    assert_eq!(published, CRATES.len());
}

const SETTINGS: &str = "make maps it by packaging/install/paths.sh, unless RUSTFLAGS or CFLAGS are set";

/// What is installed is the same whatever folder it is built in.
#[test]
fn installed_files_name_no_folder_of_the_build() {
    if ["RUSTFLAGS", "CFLAGS"].iter().any(|name| std::env::var_os(name).is_some()) {
        return skipped("the folders in installed files", "RUSTFLAGS or CFLAGS replace the project's");
    }
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| home + "/.cargo"));
    let folders = [format!("{}/", workspace().display()), home.expect("a home") + "/registry"];
    let mut count = 0;
    for place in ["lib", "bin"] {
        for entry in fs::read_dir(stage().join(place)).expect("the installation") {
            let path = entry.expect("an entry").path();
            if !path.is_file()
                || path.is_symlink()
                || fs::read(&path).expect("a file").get(..4) != Some(b"\x7fELF")
            {
                continue;
            }
            count += 1;
            for folder in &folders {
                let grep = Command::new("grep")
                    .args(["-aoF", "-m1", folder])
                    .arg(&path)
                    .output()
                    .expect("grep runs");
                // 1: nothing was found.
                assert_eq!(grep.status.code(), Some(1), "{} names {folder}; {SETTINGS}", path.display());
            }
        }
    }
    assert!(count >= 7, "{count} files");
}
