//! What the tasks of a user prove to each other that they know. Slurm gives its tasks no secret, so it is `LAPI_JOB_SECRET` where that is
//! set, and otherwise the file `.lapi-secret` in the user's home, which the first task that needs it makes: the hosts of a cluster have
//! one home for a user. Who can read the file can act as that user anyway.

use super::super::failed;
use crate::base::random::random;
use crate::config::{Env, given};
use crate::error::{Error, Result};
use rustix::process::geteuid;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FILE: &str = ".lapi-secret";

/// A secret.
pub type Secret = [u8; 16];

/// The key, and where it is from; for messages.
pub struct Key {
    pub secret: Secret,
    pub source: String,
}

/// The key of this task.
///
/// # Errors
/// `LAPI_ERR_CSS_LOAD_FAILED`: there is none, or other users can read the file.
pub fn of_this_task(env: &Env<'_>) -> Result<Key> {
    if let Some(secret) = given(env, "LAPI_JOB_SECRET") {
        let secret = parse(&secret).ok_or_else(|| failed("LAPI_JOB_SECRET is not 32 hexadecimal digits"))?;
        return Ok(Key { secret, source: "LAPI_JOB_SECRET".to_owned() });
    }
    let home = given(env, "HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let home = home.ok_or_else(|| failed("Slurm: set LAPI_JOB_SECRET or HOME: the tasks need a secret"))?;
    let path = home.join(FILE);
    let secret = from_file(&path)?;
    Ok(Key { secret, source: format!("~/{FILE}") })
}

/// Reads the file; makes it when it is missing.
fn from_file(path: &Path) -> Result<Secret> {
    match read(path) {
        Ok(secret) => secret,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(path).map_err(|error| wrong(&format!("cannot be made: {error}")))?;
            read(path).map_err(|error| wrong(&format!("cannot be read: {error}")))?
        }
        Err(error) => Err(wrong(&format!("cannot be read: {error}"))),
    }
}

fn read(path: &Path) -> std::io::Result<Result<Secret>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != geteuid().as_raw() || found.mode() & 0o077 != 0 {
        return Ok(Err(wrong("must be a file of this user, with mode 0600")));
    }
    let mut text = String::new();
    file.take(64).read_to_string(&mut text)?;
    Ok(parse(text.trim()).ok_or_else(|| wrong("has not 32 hexadecimal digits")))
}

/// Makes the file as a whole or not at all: another task may make it at the same time, on another host.
fn make(path: &Path) -> std::io::Result<()> {
    let text: String = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
    let unique: String = random::<8>().iter().map(|byte| format!("{byte:02x}")).collect();
    let fresh = path.with_extension(unique);
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let made = writeln!(file, "{text}").and_then(|()| file.sync_all()).and_then(|()| {
        match fs::hard_link(&fresh, path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    });
    let removed = fs::remove_file(&fresh);
    made.and(removed)
}

fn parse(text: &str) -> Option<Secret> {
    let mut secret = Secret::default();
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    for (at, byte) in secret.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2).filter(|_| is_hex)?, 16).ok()?;
    }
    Some(secret)
}

#[cold]
fn wrong(why: &str) -> Error {
    failed(format!("~/{FILE} {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_users_file() {
        let name: String = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
        let folder = Folder(std::env::temp_dir().join(format!("lapi-key-{name}")));
        fs::create_dir(&folder.0).expect("a folder can be made");
        let home = folder.0.display().to_string();
        let env = |name: &str| (name == "HOME").then(|| home.clone());
        // Tasks at the same time get one key.
        let keys: Vec<Secret> = std::thread::scope(|scope| {
            let tasks: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| of_this_task(&|name| (name == "HOME").then(|| home.clone()))))
                .collect();
            tasks.into_iter().map(|task| task.join().expect("no panic").expect("a key").secret).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0] && *key != Secret::default()));
        let path = folder.0.join(FILE);
        assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 1, "nothing else is left");
        assert_eq!(fs::metadata(&path).expect("the file").mode() & 0o777, 0o600);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("it is ours");
        let error = of_this_task(&env).map(|key| key.source).unwrap_err();
        assert!(error.detail.contains("mode 0600"), "{}", error.detail);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        fs::write(&path, "short\n").expect("it is ours");
        let error = of_this_task(&env).map(|key| key.source).unwrap_err();
        assert!(error.detail.contains("32 hexadecimal digits"), "{}", error.detail);
    }

    #[test]
    fn the_variable_wins() {
        let secret = "000102030405060708090a0b0c0d0e0F";
        let key =
            of_this_task(&|name| (name == "LAPI_JOB_SECRET").then(|| secret.to_owned())).expect("a key");
        assert_eq!(key.secret, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        let bad = of_this_task(&|name| (name == "LAPI_JOB_SECRET").then(|| "+1".repeat(16)));
        assert!(bad.map(|key| key.source).unwrap_err().detail.contains("LAPI_JOB_SECRET"));
        let none = of_this_task(&|_| None).map(|key| key.source).unwrap_err();
        assert!(none.detail.contains("LAPI_JOB_SECRET") && none.detail.contains("HOME"), "{}", none.detail);
    }
}
