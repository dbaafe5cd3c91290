//! Where a daemon is met: by a Unix socket on its host, and by TCP, with a key, from others.

use openlapi_runtime::environment::process_env;
use std::path::PathBuf;

/// The abstract name of the Unix socket of the daemon that listens at a port: network namespaces
/// are hosts of their own.
pub fn socket_name(port: u16) -> String {
    format!("openlapi-fam-{port}")
}

/// The file of the key by which hosts trust each other: `LAPI_FAM_KEY`, or `~/.openlapi/key`.
pub fn key_path() -> PathBuf {
    let given = process_env("LAPI_FAM_KEY").filter(|path| !path.is_empty());
    let usual = || PathBuf::from(process_env("HOME").unwrap_or_default()).join(".openlapi/key");
    given.map_or_else(usual, PathBuf::from)
}
