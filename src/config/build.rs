//! The build's identity: what `build.rs` has found out.

/// The library's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit, with `-dirty` after it when sources differed from it; empty when there was none.
pub const COMMIT: &str = env!("OPENLAPI_COMMIT");
/// The value of SOURCE_DATE_EPOCH at the build, or the date of the commit, or, for sources that are
/// no commit's, when it was built: as `2026-11-22T03:04:05Z`.
pub const DATE: &str = env!("OPENLAPI_DATE");
/// Cargo's features that were on, by commas; empty without any.
pub const FEATURES: &str = env!("OPENLAPI_FEATURES");

/// `0.1.0 (commit 1a2b3c4d5e6f, built 2026-11-22T03:04:05Z)`.
pub fn identity() -> String {
    let commit = if COMMIT.is_empty() { String::new() } else { format!("commit {COMMIT}, ") };
    let features = if FEATURES.is_empty() { String::new() } else { format!(", with {FEATURES}") };
    format!("{VERSION} ({commit}built {DATE}{features})")
}
