//! The environment of this process, and the files of settings beside it.

use openlapi::config::files::Files;
use openlapi::config::{self, Config, Setting};
use openlapi::error::Result;
use std::fs;
use std::sync::OnceLock;

/// What a process may have put into its own environment: an MPI library that finds no launcher
/// makes itself a PMIx server, which describes no job.
const PMIX: [&str; 2] = ["PMIX_RANK", "PMIX_NAMESPACE"];

/// The value of a variable for this process: in its environment, or else in a file of settings.
/// Variables of PMIx count only as the process was started with them.
pub fn process_env(name: &str) -> Option<String> {
    let first = || fs::read("/proc/self/environ").ok();
    let own = environment(name).filter(|value| !PMIX.contains(&name) || is_first(name, value, first()));
    own.or_else(|| {
        let may_have_it = name.starts_with("LAPI_") || name.starts_with("MP_");
        may_have_it.then(|| Some(files().for_library(name)?.value.clone()))?
    })
}

/// The value of a variable in the environment of this process.
fn environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Whether a process that has started with this environment had this variable with this value then,
/// as far as can be known.
fn is_first(name: &str, value: &str, first: Option<Vec<u8>>) -> bool {
    let entry = format!("{name}={value}");
    first.is_none_or(|first| first.split(|byte| *byte == 0).any(|known| known == entry.as_bytes()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_library_has_set_since_the_start_is_not_the_first_value() {
        let first = || Some(b"A=1\0PMIX_RANK=3\0PMIX_NAMESPACE=job=7\0".to_vec());
        assert!(is_first("PMIX_RANK", "3", first()) && is_first("PMIX_NAMESPACE", "job=7", first()));
        assert!(!is_first("PMIX_RANK", "0", first()) && !is_first("PMIX_NAMESPACE", "job", first()));
        assert!(!is_first("PMIX_RANK", "0", Some(Vec::new())));
        assert!(is_first("PMIX_RANK", "0", None), "a system that does not say");
    }

    #[test]
    fn variables_are_those_of_the_process() {
        assert_eq!(process_env("PATH"), std::env::var("PATH").ok());
        assert_eq!(process_env("LAPI_NO_SUCH_VARIABLE"), None);
    }
}
