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
pub(in crate::job) const PLACE: &str = ".openlapi/key";

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
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A home directory that is removed at the end.
    struct Home(PathBuf);

    impl Home {
        fn new() -> Self {
            let name = format!("openlapi-key-{:032x}", u128::from_ne_bytes(random()));
            let home = std::env::temp_dir().join(name);
            fs::create_dir(&home).expect("a folder");
            Self(home)
        }

        fn key(&self) -> PathBuf {
            self.0.join(PLACE)
        }

        fn write(&self, text: &str, mode: u32) {
            fs::create_dir_all(self.0.join(".openlapi")).expect("a folder");
            fs::write(self.key(), text).expect("a file");
            fs::set_permissions(self.key(), fs::Permissions::from_mode(mode)).expect("a mode");
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const DIGITS: &str = "00112233445566778899aabbccddeeff";

    #[test]
    fn a_key_is_read_as_the_user_has_made_it() {
        let home = Home::new();
        assert_eq!(read(&home.key()), Ok(None));
        for (text, mode) in [(DIGITS.to_owned(), 0o600), (format!("{}\n", DIGITS.to_uppercase()), 0o400)] {
            home.write(&text, mode);
            let found = read(&home.key()).expect("sound").expect("a key");
            assert_eq!((found[0], found[15]), (0, 0xff));
        }
    }

    #[test]
    fn what_others_may_know_is_refused() {
        let home = Home::new();
        for (text, mode, why) in [
            (DIGITS, 0o640, "others may use it (mode 0640)"),
            (DIGITS, 0o602, "others may use it"),
            ("0011", 0o600, "32 hexadecimal digits"),
            ("", 0o600, "32 hexadecimal digits"),
            (&DIGITS.replace('0', "x"), 0o600, "32 hexadecimal digits"),
            (&DIGITS.repeat(3), 0o600, "32 hexadecimal digits"),
        ] {
            home.write(text, mode);
            let error = read(&home.key()).expect_err(why);
            assert_eq!(error.code, LAPI_ERR_NO_ENV_VAR);
            assert!(error.detail.contains(why) && !error.detail.contains(DIGITS), "{}", error.detail);
            assert!(
                error.detail.contains("lapi_info --make-key") && error.detail.contains("LAPI_JOB_SECRET")
            );
        }
        home.write(DIGITS, 0o600);
        if geteuid().is_root() {
            std::os::unix::fs::chown(home.key(), Some(65_534), None).expect("root gives files away");
            let error = read(&home.key()).expect_err("the file of another user");
            assert!(error.detail.contains("it belongs to user 65534"), "{}", error.detail);
            std::os::unix::fs::chown(&home.0, Some(65_534), None).expect("root gives folders away");
            let error = make(&home.key()).expect_err("the home of another user");
            assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        }
        fs::remove_file(home.key()).expect("removed");
        fs::create_dir(home.key()).expect("a folder");
        assert!(read(&home.key()).expect_err("a folder").detail.contains("no regular file"));
    }

    #[test]
    fn many_that_make_a_key_make_one() {
        let home = Home::new();
        let path = home.key();
        let keys: Vec<_> = std::thread::scope(|scope| {
            let maker = || {
                make(&path).expect("made");
                read(&path).expect("sound").expect("a key")
            };
            let makers: Vec<_> = (0..8).map(|_| scope.spawn(maker)).collect();
            makers.into_iter().map(|maker| maker.join().expect("a maker")).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        let modes = [path.as_path(), path.parent().expect("a folder")]
            .map(|at| fs::metadata(at).expect("it is there").mode() & 0o777);
        assert_eq!(modes, [0o600, 0o700]);
        assert_eq!(fs::read_dir(path.parent().expect("a folder")).expect("readable").count(), 1);
    }
}
