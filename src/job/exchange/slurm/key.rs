//! What the tasks of a user prove to each other that they know. Slurm gives its tasks no secret, so
//! it is `LAPI_JOB_SECRET` where that is set, and otherwise the user's [`key_file`], which the
//! first task that needs it makes: the hosts of a cluster have one home for a user. Who can read
//! the file can act as that user anyway.

use super::super::failed;
use crate::config::{self, Env, given};
use crate::error::Result;
use crate::job::key_file;
use std::path::PathBuf;

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
        let secret =
            config::secret(&secret).ok_or_else(|| failed("LAPI_JOB_SECRET is not 32 hexadecimal digits"))?;
        return Ok(Key { secret, source: "LAPI_JOB_SECRET".to_owned() });
    }
    let home = given(env, "HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let home = home.ok_or_else(|| failed("Slurm: set LAPI_JOB_SECRET or HOME: the tasks need a secret"))?;
    let path = home.join(key_file::PLACE);
    let read = || key_file::read(&path).map_err(|error| failed(error.detail));
    let secret = match read()? {
        Some(secret) => secret,
        None => {
            key_file::make(&path)
                .map_err(|error| failed(format!("{} cannot be made: {error}", path.display())))?;
            read()?.ok_or_else(|| failed(format!("{} was made, and is not there", path.display())))?
        }
    };
    Ok(Key { secret, source: format!("~/{}", key_file::PLACE) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::random;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

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
        let path = folder.0.join(key_file::PLACE);
        let beside = path.parent().expect("a folder");
        assert_eq!(fs::read_dir(beside).expect("a folder").count(), 1, "nothing else is left");
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
