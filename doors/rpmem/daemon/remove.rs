//! `rpmemd --remove`.

use crate::files::{Files, read_set};
use rpmem::{Failure, Result};
use std::fs;
use std::io;
use std::path::Path;

/// Removes the part files of a set. `force`: also of one that is damaged, or not whole. `pool_set`:
/// and the set file.
///
/// # Errors
/// EBUSY: the pool is in use. ENOENT, EINVAL: it is not whole, without `force`. EINVAL: the set
/// file is malformed.
pub fn remove(folder: &Path, name: &str, force: bool, pool_set: bool) -> Result<()> {
    let (path, set) = read_set(folder, name)?;
    let paths: Vec<String> = set.parts.iter().map(|part| part.path.clone()).collect();
    // Locked until they are removed.
    let opened = Files::open(set).and_then(|files| files.headers().map(|_| files));
    let _files = match opened {
        Ok(files) => Some(files),
        Err(failure) if force && failure.errno != libc::EBUSY => None,
        Err(failure) => return Err(failure),
    };
    for part in &paths {
        match fs::remove_file(part) {
            Err(error) if force && error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.map_err(Failure::system(part))?,
        }
    }
    if pool_set {
        fs::remove_file(&path).map_err(Failure::system(path.display()))?;
    }
    Ok(())
}
