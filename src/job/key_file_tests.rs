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
        assert!(error.detail.contains("lapi_info --make-key") && error.detail.contains("LAPI_JOB_SECRET"));
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
