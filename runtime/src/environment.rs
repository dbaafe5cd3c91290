//! The environment of this process, and the files of settings beside it.

use openlapi::config::files::Files;
use openlapi::config::{self, Config, Setting};
use openlapi::error::Result;
use std::sync::OnceLock;

/// The value of a variable for this process: in its environment, or else in a file of settings.
pub fn process_env(name: &str) -> Option<String> {
    environment(name).or_else(|| {
        let may_have_it = name.starts_with("LAPI_") || name.starts_with("MP_");
        may_have_it.then(|| Some(files().for_library(name)?.value.clone()))?
    })
}

/// The value of a variable in the environment of this process.
fn environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// The settings of the files for this process.
pub fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| Files::find(&environment, is_secure()))
}

/// Whether this program has rights that its user lacks (setuid, setgid, capabilities), so that the
/// user's files do not count.
fn is_secure() -> bool {
    // SAFETY: reads a word that the kernel has given to the process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Reads and checks what the environment of this process and the files of settings ask for.
///
/// # Errors
/// The errors of [`Config::from_env`]; of a value in a file the sentence begins with file and line.
pub fn config() -> Result<Config> {
    files().check(&environment)?;
    Config::from_env(&process_env)
}

/// Every variable with its current value for this process, wrong values included.
pub fn settings() -> Vec<Setting> {
    config::settings(&environment, files())
}

/// Whether LAPI_VERIFY_DGSP asks for verification right now: a program may change its mind between
/// two registrations.
pub fn verifies_dgsp() -> bool {
    config::verify_dgsp(&process_env)
}

/// How many messages to write while there is no context (`MP_INFOLEVEL`); 1 when the value is not
/// valid, so that the error that names it is seen.
pub fn info_level() -> i32 {
    config::info_level(&process_env).map_or(1, |level| level as i32)
}

/// The names of all variables in the environment.
pub(crate) fn names() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
}
