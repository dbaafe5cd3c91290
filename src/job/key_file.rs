//! The user's key file, `~/.openlapi/key`: a secret that tasks find without a variable, on every
//! host that has the user's home directory.
//!
//! It has 32 hexadecimal digits. A file that another user may have read or written is refused.

use crate::abi::LAPI_ERR_NO_ENV_VAR;
use crate::base::random::random;
use crate::config::{self, Env};
use crate::error::{Error, Result};
use nix::unistd::{Uid, User};
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where the key stands in the home directory.
const PLACE: &str = ".openlapi/key";

/// Bytes that are read of it: the digits, and the end of the line.
const LONGEST: u64 = 64;

/// Where the key file of this user is: below HOME, or without that in the user's home directory.
/// `None`: the user has none.
pub fn path(env: &Env<'_>) -> Option<PathBuf> {
    let home = env("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let listed = || User::from_uid(Uid::effective()).ok().flatten().map(|user| user.dir);
    home.or_else(listed).filter(|home| home.is_absolute()).map(|home| home.join(PLACE))
}

/// The secret in the file; `None` when there is no such file.
///
/// # Errors
/// `LAPI_ERR_NO_ENV_VAR`: it may be known to others, or is no key file; the detail says what to do.
pub fn read(path: &Path) -> Result<Option<[u8; 16]>> {
    let refused = |why: String| {
        let advice =
            "remove it, and make another one (lapi_info --make-key), or set LAPI_JOB_SECRET in all tasks";
        Error::new(LAPI_ERR_NO_ENV_VAR, format!("the key file {}: {why}; {advice}", path.display()))
    };
    // Not a device or pipe that would be waited for.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(refused(error.to_string())),
    };
    let about = file.metadata().map_err(|error| refused(error.to_string()))?;
    let (user, mode) = (geteuid().as_raw(), about.mode() & 0o7777);
    if !about.is_file() {
        return Err(refused("it is no regular file".to_owned()));
    }
    if about.uid() != user {
        return Err(refused(format!("it belongs to user {}, and this is user {user}", about.uid())));
    }
    if mode & 0o077 != 0 {
        return Err(refused(format!("others may use it (mode {mode:04o}), and it must have mode 0600")));
    }
    let mut text = String::new();
    let digits = file.take(LONGEST).read_to_string(&mut text).ok().and_then(|_| config::secret(text.trim()));
    digits.map(Some).ok_or_else(|| refused("it does not have 32 hexadecimal digits".to_owned()))
}

/// Makes the file with a new key, unless there is one: then nothing changes. Two processes that do
/// this at the same time make one.
///
/// # Errors
/// The system's, or `PermissionDenied`: the home directory belongs to another user.
pub fn make(path: &Path) -> io::Result<()> {
    let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
    let home = folder.parent().ok_or(ErrorKind::InvalidInput)?;
    if fs::metadata(home)?.uid() != geteuid().as_raw() {
        // A folder there would be in that user's way.
        let why = format!("{} belongs to another user", home.display());
        return Err(io::Error::new(ErrorKind::PermissionDenied, why));
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let own = folder.join(format!("key.{:032x}", u128::from_ne_bytes(random())));
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own)?;
    let key = format!("{:032x}\n", u128::from_ne_bytes(random()));
    // The file gets its name when it is whole.
    let made = file.write_all(key.as_bytes()).and_then(|()| file.sync_all());
    let named = made.and_then(|()| match fs::hard_link(&own, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        done => done,
    });
    let removed = fs::remove_file(&own);
    named.and(removed)
}

#[cfg(test)]
#[path = "key_file_tests.rs"]
mod tests;
