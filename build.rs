//! The build's identity, for `LAPI_Init`'s banner and `lapi_info`: commit, date and features. The
//! version is cargo's own.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    println!("cargo:rustc-env=OPENLAPI_COMMIT={}", commit().unwrap_or_default());
    println!("cargo:rustc-env=OPENLAPI_DATE={}", date(seconds()));
    println!("cargo:rustc-env=OPENLAPI_FEATURES={}", features());
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    // A new commit or a changed source is a new build.
    for path in ["build.rs", "src", ".git/HEAD", ".git/index"] {
        if Path::new(path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}

/// The commit, with `-dirty` after it when sources differ from it; `None` outside of a git
/// repository of our own, as in unpacked sources below another one.
fn commit() -> Option<String> {
    if !Path::new(".git").exists() {
        return None;
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_dirty = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if is_dirty { format!("{commit}-dirty") } else { commit })
}

/// What git prints. It must not write its index: cargo would build everything again.
fn git(arguments: &[&str]) -> Option<String> {
    let said = Command::new("git").arg("--no-optional-locks").args(arguments).output().ok()?;
    said.status.success().then(|| String::from_utf8(said.stdout).ok())?.map(|text| text.trim().to_owned())
}

/// When the library was built, or what SOURCE_DATE_EPOCH says, in seconds since 1970.
fn seconds() -> u64 {
    let given = env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.trim().parse().ok());
    given.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
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
