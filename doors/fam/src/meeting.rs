//! Where a daemon is met: by a Unix socket on its host, and by TCP, with a key, from others.

use crate::error::{FamError, Result};
use openlapi_runtime::environment::process_env;
use openlapi_session::usual_key_file;
use std::path::PathBuf;

/// The abstract name of the Unix socket of the daemon that listens at a port: network namespaces
/// are hosts of their own.
pub fn socket_name(port: u16) -> String {
    format!("openlapi-fam-{port}")
}

/// The file of the key by which hosts trust each other: `LAPI_FAM_KEY`, or `~/.openlapi/key`.
pub fn key_path() -> PathBuf {
    let given = process_env("LAPI_FAM_KEY").filter(|path| !path.is_empty());
    given.map_or_else(usual_key_file, PathBuf::from)
}

/// Whether what listens on this host may be the daemon: a process of root, of this user, or of the
/// user with the number `LAPI_FAM_USER`. Anybody can take a name that is free, and would get what
/// programs put.
///
/// # Errors
/// [`FamError::NoPerm`]: it is another user's. [`FamError::Invalid`]: the variable is no number.
pub fn check_user(user: u32) -> Result<()> {
    let named = process_env("LAPI_FAM_USER").filter(|text| !text.is_empty());
    let named = named.map(|text| text.parse()).transpose();
    let named = named.map_err(|_| FamError::Invalid.because("LAPI_FAM_USER: the number of a user"))?;
    if is_expected(user, rustix::process::geteuid().as_raw(), named) {
        return Ok(());
    }
    let why = format!("what listens there is user {user}'s; if that is right, set LAPI_FAM_USER={user}");
    Err(FamError::NoPerm.because(why))
}

fn is_expected(user: u32, own: u32, named: Option<u32>) -> bool {
    [Some(0), Some(own), named].contains(&Some(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_roots_or_ones_own_or_the_named_users() {
        assert!([0, 1000].iter().all(|user| is_expected(*user, 1000, None)));
        assert!(!is_expected(77, 1000, None) && !is_expected(78, 1000, Some(77)));
        assert!(is_expected(77, 1000, Some(77)));
    }
}
