//! The build's identity, for `LAPI_Init`'s banner and `lapi_info`: commit, date and features. The
//! version is cargo's own.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where git archive writes the commit and its date.
const EXPORTED: &str = "packaging/commit";

fn main() {
    let commit = commit().unwrap_or_default();
    println!("cargo:rustc-env=OPENLAPI_COMMIT={}", commit.name);
    println!("cargo:rustc-env=OPENLAPI_DATE={}", date(seconds(&commit)));
    println!("cargo:rustc-env=OPENLAPI_FEATURES={}", features());
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    // A new commit or a changed source is a new build.
    for path in ["build.rs", "src", ".git/HEAD", ".git/index", EXPORTED] {
        if Path::new(path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}

/// What the sources are made of.
#[derive(Default)]
struct Commit {
    /// Its first twelve digits, with `-dirty` after them when sources differ from it; empty when it
    /// is not known.
    name: String,
    /// Its date, in seconds since 1970, when the sources are those of the commit.
    seconds: Option<u64>,
}

/// From git, or from the source tarball; `None` outside of a git repository of our own, as in
/// unpacked sources below another one, and in the crate.
fn commit() -> Option<Commit> {
    if !Path::new(".git").exists() {
        return Commit::new(&fs::read_to_string(EXPORTED).ok()?);
    }
    let commit = Commit::new(&git(&["log", "-1", "--format=%H %ct"])?)?;
    let is_dirty = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if is_dirty { Commit { name: format!("{}-dirty", commit.name), seconds: None } } else { commit })
}

impl Commit {
    /// From all its digits and its date, as git writes them; `None` where it has not.
    fn new(text: &str) -> Option<Self> {
        let (name, seconds) = text.trim().split_once(' ')?;
        let seconds = seconds.parse().ok()?;
        Some(Self { name: name.get(..12)?.to_owned(), seconds: Some(seconds) })
    }
}

/// What git prints. It must not write its index: cargo would build everything again.
fn git(arguments: &[&str]) -> Option<String> {
    let said = Command::new("git").arg("--no-optional-locks").args(arguments).output().ok()?;
    said.status.success().then(|| String::from_utf8(said.stdout).ok())?.map(|text| text.trim().to_owned())
}

/// What SOURCE_DATE_EPOCH says, or the date of the commit, so that the same sources make the same
/// library; now for sources of no commit. In seconds since 1970.
fn seconds(commit: &Commit) -> u64 {
    let given = env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.trim().parse().ok());
    given
        .or(commit.seconds)
        .unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// `2026-11-22T03:04:05Z`, in the Gregorian calendar.
fn date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March, so that the day that may be missing is the last one. An era
    // has 400 of them.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) =
        if month < 10 { (era * 400 + year, month + 3) } else { (era * 400 + year + 1, month - 9) };
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// Cargo's features of this build, by commas; empty without any.
fn features() -> String {
    let mut features: Vec<String> = env::vars()
        .filter_map(|(name, _)| Some(name.strip_prefix("CARGO_FEATURE_")?.to_ascii_lowercase()))
        .filter(|feature| feature != "default")
        .collect();
    features.sort_unstable();
    features.join(",")
}
