//! The working directory of the tasks (MP_WDIR).

use std::path::PathBuf;

use nix::errno::Errno;

use super::error::Error;
use super::settings::Settings;

/// The folder that is asked for, else that of `poe`, as an absolute path.
pub(super) fn of(settings: &Settings) -> Result<PathBuf, Error> {
    let own = std::env::current_dir().map_err(|error| Error::system("the working directory", error))?;
    Ok(match settings.text("MP_WDIR")? {
        Some(folder) => own.join(folder),
        None => own,
    })
}

/// The folder on this machine: `None` when the tasks are to have that of `poe`, which may be one
/// that was removed.
pub(super) fn here(settings: &Settings) -> Result<Option<PathBuf>, Error> {
    if settings.text("MP_WDIR")?.is_none() {
        return Ok(None);
    }
    let folder = of(settings)?;
    let named = |error| Error::system(format!("-wdir {}", folder.display()), error);
    if !std::fs::metadata(&folder).map_err(named)?.is_dir() {
        return Err(named(std::io::Error::from(Errno::ENOTDIR)));
    }
    Ok(Some(folder))
}
