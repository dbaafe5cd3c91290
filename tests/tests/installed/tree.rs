//! The files, the links between them, and that no file remains.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Installation, is_there, output, workspace};

/// The names that users, Makefiles and build systems rely on: they must exist.
const PROMISED: &[&str] = &[
    "bin/cc_r -> mpcc_r",
    "bin/lapi_info",
    "bin/lapi_perf",
    "bin/lapi_prof",
    "bin/lapi_top",
    "bin/mpCC -> mpcc_r",
    "bin/mpCC_r -> mpcc_r",
    "bin/mpcc -> mpcc_r",
    "bin/mpcc_r",
    "bin/mpfort -> mpcc_r",
    "bin/mpxlf -> mpcc_r",
    "bin/mpxlf90 -> mpcc_r",
    "bin/mpxlf90_r -> mpcc_r",
    "bin/mpxlf_r -> mpcc_r",
    "bin/poe",
    "bin/xlf_r -> mpcc_r",
    "include/32/lapif.h",
    "include/css_shared.h",
    "include/lapi.f90",
    "include/lapi.h",
    "include/lapi_checkpoint.h",
    "include/lapif.h",
    "include/sys/atomic_op.h",
    "share/openlapi/xl-options",
    "lib/cmake/lapi/lapi-config-version.cmake",
    "lib/cmake/lapi/lapi-config.cmake",
    "lib/libaixcompat.a",
    "lib/liblapi.so -> liblapi_r.so.1",
    "lib/liblapi_r.so -> liblapi_r.so.1",
    "lib/liblapiprof.so -> liblapiprof.so.1",
    "lib/libmpi_ibm.a",
    "lib/libpoe.a",
    "lib/pkgconfig/lapi_r.pc",
];

/// The other names of mpcc_r, of the table that the wrappers read.
fn drivers() -> Vec<String> {
    let table = fs::read_to_string(workspace().join("packaging/compat/xl-options")).expect("the table");
    let rows = table.lines().filter_map(|line| line.strip_prefix("driver | ")?.split('|').next());
    let names = rows.filter(|names| !names.starts_with('-')).flat_map(str::split_whitespace);
    names.filter(|name| *name != "mpcc_r").map(str::to_owned).collect()
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[test]
fn everything_promised_is_installed() {
    let installation = Installation::new("promised", "/opt/lapi");
    installation.make("install");
    let tree = installation.tree();
    for promised in PROMISED {
        assert!(tree.contains(&format!("opt/lapi/{promised}")), "{promised} is not in {tree:#?}");
    }
    for soname in ["liblapi_r.so.1", "liblapiprof.so.1"] {
        let real = format!("{soname}.{}", version());
        assert!(tree.contains(&format!("opt/lapi/lib/{soname} -> {real}")), "{tree:#?}");
        assert!(tree.contains(&format!("opt/lapi/lib/{real}")), "{tree:#?}");
    }
    // The launcher, the tools and the wrappers, and no intermediate files.
    assert!(!tree.iter().any(|name| name.ends_with(".new") || name.ends_with('~')), "{tree:#?}");

    let pc =
        fs::read_to_string(installation.path().join("lib/pkgconfig/lapi_r.pc")).expect("it was installed");
    assert!(pc.starts_with("prefix=/opt/lapi\n") && pc.contains(&format!("Version: {}", version())), "{pc}");
    for file in tree.iter().filter(|name| name.ends_with(".cmake") || name.ends_with(".pc")) {
        let text = fs::read_to_string(installation.root.join(file)).expect("it was installed");
        assert!(!text.contains("@VERSION@") && !text.contains("@PREFIX@"), "{file}: {text}");
    }
    // A second installation changes nothing.
    installation.make("install");
    assert_eq!(installation.tree(), tree);
}

/// Every page, and the other names that some have; programs have one each.
#[test]
fn man_pages_are_installed_under_all_their_names() {
    let installation = Installation::new("man", "/opt/lapi");
    installation.make("install");
    let man = "opt/lapi/share/man";
    let mut pages = Vec::new();
    for section in ["1", "3", "7"] {
        for page in
            fs::read_dir(workspace().join(format!("packaging/man/man{section}"))).expect("there are pages")
        {
            let page = page.expect("the folder can be read").file_name().into_string().expect("a plain name");
            if section == "3" {
                pages.push(format!("{man}/man3/P{page} -> {page}"));
            }
            pages.push(format!("{man}/man{section}/{page}"));
        }
    }
    assert!(pages.len() > 60, "{pages:?}");
    for link in drivers() {
        pages.push(format!("{man}/man1/{link}.1 -> mpcc_r.1"));
    }
    pages.sort();
    let tree = installation.tree();
    let installed: Vec<&String> =
        tree.iter().filter(|name| name.starts_with(man) && !name.ends_with('/')).collect();
    assert_eq!(installed, pages.iter().collect::<Vec<_>>());
    let programs: Vec<&str> = tree
        .iter()
        .filter_map(|name| name.strip_prefix("opt/lapi/bin/"))
        .filter(|name| !name.is_empty())
        .collect();
    assert!(programs.len() >= 10, "{programs:?}");
    for program in programs {
        let program = program.split(' ').next().expect("a name");
        assert!(installation.path().join(format!("share/man/man1/{program}.1")).exists(), "{program}");
    }
    for (link, name) in [("man3/PLAPI_Put.3", "LAPI_Put"), ("man1/mpCC_r.1", "mpcc_r")] {
        let shown = fs::read_to_string(installation.root.join(man).join(link)).expect("a link to a page");
        assert!(shown.contains(&format!(".Nm {name}")), "{shown}");
    }
}

#[test]
fn catalogues_are_installed_for_every_language_that_there_is() {
    if !is_there("gencat") {
        return;
    }
    let installation = Installation::new("catalogues", "/usr");
    installation.make("install");
    let tree = installation.tree();
    for file in fs::read_dir(workspace().join("packaging/catalogs")).expect("the sources") {
        let name = file.expect("the sources").file_name().into_string().expect("ASCII");
        let language = name.strip_suffix(".msg").expect("they are sources of catalogues");
        let place = format!("usr/share/locale/{language}/LC_MESSAGES/liblapi.cat");
        assert_eq!(tree.contains(&place), language != "en", "{place} in {tree:#?}");
    }
}

#[test]
fn the_soname_is_the_name_of_a_link() {
    if !is_there("readelf") {
        return;
    }
    let installation = Installation::new("soname", "/usr");
    installation.make("install");
    let library = installation.path().join("lib/liblapi_r.so");
    let dynamic = output(Command::new("readelf").arg("-d").arg(&library));
    let soname = dynamic.lines().find(|line| line.contains("SONAME")).expect("it has one");
    assert!(soname.contains("[liblapi_r.so.1]"), "{soname}");
    let needed: Vec<&str> = dynamic.lines().filter(|line| line.contains("NEEDED")).collect();
    for library in needed {
        let usual = ["libc.so.6", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0"];
        // The loader, which each machine names in its own way: x86-64, aarch64, powerpc64le.
        let loaders = ["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld64.so.2"];
        let usual = [&usual[..], &loaders].concat();
        assert!(usual.iter().any(|name| library.contains(name)), "the library needs {library}");
    }
    assert!(
        !dynamic.contains("RPATH") && !dynamic.contains("RUNPATH") && !dynamic.contains("TEXTREL"),
        "{dynamic}"
    );
}

/// Folders that existed before still exist afterwards, with their former contents only.
#[test]
fn uninstall_leaves_what_was_there_before() {
    for others in [
        &[][..],
        &["lib/libother.so", "bin/other", "lib/cmake/other/other-config.cmake", "include/sys/other.h"],
    ] {
        let installation = Installation::new(&format!("uninstall-{}", others.len()), "/usr/local");
        for folder in ["bin", "lib", "include", "share/man"] {
            fs::create_dir_all(installation.path().join(folder)).expect("the folder can be made");
        }
        for other in others {
            let path = installation.path().join(other);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder can be made");
            fs::write(path, "another's").expect("the file can be written");
        }
        let before = installation.tree();
        installation.make("install");
        assert!(installation.tree().len() > before.len() + PROMISED.len());
        installation.make("uninstall");
        assert_eq!(installation.tree(), before);
    }
}

/// A prefix of its own is gone afterwards; what another program has put there is not.
#[test]
fn uninstall_removes_a_prefix_of_its_own() {
    for other in [None, Some("lib/libother.so")] {
        let installation = Installation::in_place(&format!("own-{}", other.is_some()));
        if let Some(other) = other {
            let path = installation.path().join(other);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder can be made");
            fs::write(path, "another's").expect("the file can be written");
        }
        let said = installation.make("install");
        let bin = installation.path().join("bin");
        assert!(said.contains(&format!("for this shell: PATH=\"{}:$PATH\"", bin.display())), "{said}");
        installation.make("uninstall");
        let left: Vec<String> =
            installation.tree().into_iter().filter(|line| line.contains("own/")).collect();
        assert_eq!(left.len(), other.map_or(0, |_| 3), "{left:?}");
    }
}

/// What is linked with the library looks for it there.
#[test]
fn a_relative_prefix_is_refused() {
    let mut installation = Installation::new("relative", "/usr");
    (installation.prefix, installation.destination) = ("some/folder".to_owned(), String::new());
    let refused = installation.try_make("install");
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("PREFIX=some/folder is not an absolute path"), "{said}");
    assert!(!workspace().join("some").exists());
}

/// Both names of the library, and an older version that an update leaves: the loader's link leads
/// to the new one.
#[test]
fn an_update_takes_over_the_links() {
    let installation = Installation::new("update", "/usr");
    let lib = installation.path().join("lib");
    fs::create_dir_all(&lib).expect("the folder can be made");
    fs::write(lib.join("liblapi_r.so.1"), "a library of the time when this was a file").expect("a file");
    installation.make("install");
    let real = fs::canonicalize(lib.join("liblapi_r.so.1")).expect("it leads somewhere");
    assert!(real.ends_with(Path::new(&format!("liblapi_r.so.1.{}", version()))), "{real:?}");
    let header = fs::read(real).expect("the library");
    assert_eq!(header[..4], *b"\x7fELF");
}

/// What root installs is for all, and where the variables of the program say, not others of the
/// environment.
#[test]
fn the_environment_changes_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let (usual, closed) = (Installation::new("open", "/opt/lapi"), Installation::new("closed", "/opt/lapi"));
    usual.make("install");
    let script =
        format!("umask 077 && exec make -s install PREFIX={} DESTDIR={}", closed.prefix, closed.destination);
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("LIBDIR", "/usr/lib64").current_dir(workspace());
    output(shell.env_remove("MAKEFLAGS").env_remove("MAKELEVEL"));
    assert_eq!(closed.tree(), usual.tree());
    for line in closed.tree().iter().filter(|line| line.contains("lapi/") && !line.contains(" -> ")) {
        let mode =
            fs::metadata(closed.root.join(line.trim_end_matches('/'))).expect("a file").permissions().mode();
        assert_eq!(mode & 0o444, 0o444, "{line}");
    }
}

/// A program of another package is named, and nothing is installed.
#[test]
fn a_program_of_another_package_stays() {
    let installation = Installation::new("foreign", "/usr/local");
    let program = installation.path().join("bin/poe");
    fs::create_dir_all(program.parent().expect("a folder")).expect("a folder");
    fs::write(&program, "another's").expect("a file");
    let before = installation.tree();
    for target in ["install", "uninstall"] {
        let outcome = installation.try_make(target);
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert_eq!(outcome.status.success(), target == "uninstall", "{said}");
        assert_eq!(said.contains(&program.display().to_string()), target == "install", "{said}");
        assert_eq!(installation.tree(), before);
    }
}

/// A newer version leaves no file of the older one.
#[test]
fn an_update_and_an_uninstall_leave_nothing_of_the_version_before() {
    let installation = Installation::new("versions", "/opt/lapi");
    installation.make("install");
    let former = installation.path().join("share/modulefiles/openlapi/0.0.9");
    let record = installation.path().join("share/openlapi/files");
    let files = fs::read_to_string(&record).expect("a record");
    fs::write(&record, format!("share/modulefiles/openlapi/0.0.9\n{files}")).expect("a record");
    fs::write(&former, "of the version before").expect("a file");
    installation.make("install");
    assert!(!former.exists() && fs::read_to_string(&record).expect("a record") == files);
    installation.make("uninstall");
    let left: Vec<String> = installation.tree().into_iter().filter(|name| !name.ends_with('/')).collect();
    assert!(left.is_empty(), "{left:#?}");
}

/// Blanks, and letters that mean something to the programs that fill the prefix in.
#[test]
fn a_prefix_of_any_letters_is_named_as_it_is() {
    let installation = Installation::new("letters", "/opt/R&D its own");
    installation.make("install");
    let folder = installation.path().join("lib/pkgconfig");
    let text = fs::read_to_string(folder.join("lapi_r.pc")).expect("a file");
    assert!(text.starts_with("prefix=/opt/R&D its own\n"), "{text}");
    if is_there("pkg-config") {
        let flags =
            output(Command::new("pkg-config").args(["--cflags", "lapi_r"]).env("PKG_CONFIG_PATH", folder));
        let words = output(Command::new("sh").args(["-c", &format!("printf '%s\\n' {}", flags.trim())]));
        assert!(words.contains("-I/opt/R&D its own/include\n"), "{flags}{words}");
    }
}

/// What make would run.
#[test]
fn one_build_makes_all_that_is_installed() {
    let nothing = std::env::temp_dir().join(format!("openlapi-nothing-{}", std::process::id()));
    for (word, builds) in [("LIB32=no", 1), ("LIB32=yes", 2)] {
        let mut make = Command::new("make");
        make.args(["-n", "-j4", "install", word, "PREFIX=/opt/lapi"]).env("CARGO_TARGET_DIR", &nothing);
        let said = output(make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").current_dir(workspace()));
        assert_eq!(said.matches("== build: the library").count(), builds, "{said}");
    }
}
