//! `rpmemd --remove`.

use crate::files::{self, Files, read_set, sync_folders};
use rpmem::{Failure, Result};
use std::fs;
use std::io;
use std::path::Path;

/// Removes the part files of a set. `force`: also of one that is damaged, or not whole. `pool_set`:
/// and the set file.
///
/// # Errors
/// EBUSY: the pool is in use. ENOTSUP: a part is a folder or a device. ENOENT, EINVAL: it is not
/// whole, without `force`. EINVAL: the set file is malformed.
pub fn remove(folder: &Path, name: &str, force: bool, pool_set: bool) -> Result<()> {
    let (path, set) = read_set(folder, name)?;
    // Locked until they are removed.
    let _locked = if force {
        let found: Result<Vec<_>> = set.parts.iter().map(|part| files::open(&part.path)).collect();
        found?.into_iter().flatten().collect()
    } else {
        let mut files = Files::open(set.clone())?;
        files.headers()?;
        std::mem::take(&mut files.parts)
    };
    let mut removed = Vec::new();
    for part in &set.parts {
        match fs::remove_file(&part.path) {
            Err(error) if force && error.kind() == io::ErrorKind::NotFound => {}
            done => {
                done.map_err(Failure::system(&part.path))?;
                removed.push(Path::new(&part.path));
            }
        }
    }
    if pool_set {
        fs::remove_file(&path).map_err(Failure::system(path.display()))?;
        removed.push(&path);
    }
    sync_folders(removed.into_iter())
}
