//! What `make install-doors` installs of a door, which may have the names of another package.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{Installation, workspace};

/// A folder of doors that has one, and an installation without files.
struct Try {
    doors: PathBuf,
    installation: Installation,
}

impl Try {
    fn new(name: &str) -> Self {
        let installation = Installation::new(&format!("door-{name}"), "/opt/lapi");
        let doors = std::env::temp_dir().join(format!("openlapi-doors-{name}-{}", std::process::id()));
        let packaging = doors.join("other/packaging");
        fs::create_dir_all(&packaging).expect("a folder");
        fs::create_dir_all(doors.join("crate")).expect("a folder");
        fs::write(packaging.join("other.pc.in"), "prefix=@PREFIX@\nVersion: @VERSION@\n").expect("a file");
        let this = Self { doors, installation };
        this.lists(&["include/other.h", "lib/libother.so.1"]);
        this
    }

    /// The manifest of the door from now on: these files, a link and a file for pkg-config.
    fn lists(&self, files: &[&str]) {
        let packaging = self.doors.join("other/packaging");
        let mut manifest = String::from("# a comment\n\nlibother-dev link libother.so.1 lib/libother.so\n");
        manifest +=
            &format!("libother-dev fill {}/other.pc.in lib/pkgconfig/other.pc\n", packaging.display());
        for file in files {
            let source = packaging.join(file.replace('/', "-"));
            fs::write(&source, file).expect("a file");
            manifest += &format!("libother1 644 {} {file}\n", source.display());
        }
        fs::write(packaging.join("manifest"), manifest).expect("a file");
    }

    /// Runs `make TARGET` for the doors; whether that went well, and all that it said.
    fn make(&self, target: &str, doors: &str) -> (bool, String) {
        let output = Command::new("make")
            .args(["-s", target, &format!("DOORS={doors}"), &format!("PREFIX={}", self.installation.prefix)])
            .arg(format!("DESTDIR={}", self.installation.destination))
            .env_remove("MAKEFLAGS")
            .env_remove("MAKELEVEL")
            .env("DOORS_FOLDER", &self.doors)
            .current_dir(workspace())
            .output()
            .expect("make can be run");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }
}

impl Drop for Try {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.doors);
    }
}

#[test]
fn a_door_is_installed_and_removed_by_its_folder_alone() {
    let this = Try::new("whole");
    let (ok, said) = this.make("install-doors", "crate other");
    assert!(ok && said.contains("crate: a Rust crate") && said.contains("other: 4 files"), "{said}");
    let tree = this.installation.tree();
    for file in ["include/other.h", "lib/libother.so.1", "lib/libother.so -> libother.so.1"] {
        assert!(tree.contains(&format!("opt/lapi/{file}")), "{file} in {tree:#?}");
    }
    let pc = fs::read_to_string(this.installation.path().join("lib/pkgconfig/other.pc")).expect("a file");
    assert_eq!(pc, format!("prefix=/opt/lapi\nVersion: {}\n", env!("CARGO_PKG_VERSION")));
    // Once more is no conflict; what the door has no longer is removed.
    this.lists(&["include/other.h"]);
    let (ok, said) = this.make("install-doors", "other");
    assert!(ok && said.contains("other: 3 files"), "{said}");
    assert!(!this.installation.path().join("lib/libother.so.1").exists());
    let (ok, said) = this.make("uninstall-doors", "crate other");
    assert!(ok, "{said}");
    let left: Vec<String> =
        this.installation.tree().into_iter().filter(|name| !name.ends_with('/')).collect();
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn files_of_another_package_are_named_and_stay() {
    let this = Try::new("foreign");
    let library = this.installation.path().join("lib/libother.so.1");
    fs::create_dir_all(library.parent().expect("a folder")).expect("a folder");
    fs::write(&library, "another's").expect("a file");
    // A link that leads nowhere is a file, too.
    let link = this.installation.path().join("lib/libother.so");
    std::os::unix::fs::symlink("nowhere", &link).expect("a link");
    let before = this.installation.tree();
    let (ok, said) = this.make("install-doors", "other");
    assert!(!ok, "{said}");
    for file in [&library, &link] {
        assert!(said.contains(&*file.to_string_lossy()), "{} in {said}", file.display());
    }
    assert!(!said.contains("other.h"), "{said}");
    assert_eq!(this.installation.tree(), before);
    // Nothing of the door is installed, so nothing is removed.
    let (ok, said) = this.make("uninstall-doors", "other");
    assert!(ok, "{said}");
    assert_eq!(fs::read_to_string(&library).expect("it stays"), "another's");
    assert_eq!(this.installation.tree(), before);
}

#[test]
fn a_door_that_is_missing_or_was_not_built_is_named() {
    let this = Try::new("missing");
    let (ok, said) = this.make("install-doors", "nowhere");
    assert!(!ok && said.contains("there is no door nowhere"), "{said}");
    fs::remove_file(this.doors.join("other/packaging/include-other.h")).expect("a file");
    let (ok, said) = this.make("install-doors", "other");
    assert!(!ok && said.contains("include-other.h was not built: make doors"), "{said}");
    let tree = this.installation.tree();
    assert!(tree.is_empty(), "{tree:#?}");
}
