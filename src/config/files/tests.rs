use super::*;
use crate::abi::{LAPI_ERR_SHM_SETUP, LAPI_ERR_UNKNOWN};
use crate::config::{Origin, settings};

fn parsed(text: &str) -> Files {
    let mut files = Files::default();
    files.parse(Owner::User, "u", text.as_bytes());
    files
}

fn value(files: &Files, name: &str) -> Option<String> {
    files.line(name).map(|line| line.value.clone())
}

#[test]
fn lines_comments_and_quotes() {
    let files = parsed(
        "# a comment\n\n  LAPI_SPIN = 17   # polite\nMP_EUIDEVICE=\"eth0 # 1\" # quoted\n\
         LAPI_FABRIC_PROVIDER='tcp;ofi_rxm'\r\nMP_LABELIO=\nLAPI_FABRIC_DOMAIN=a#b\nMP_HOSTFILE=#\n",
    );
    assert_eq!(files.faults, Vec::<String>::new());
    for (name, expected) in [
        ("LAPI_SPIN", "17"),
        ("MP_EUIDEVICE", "eth0 # 1"),
        ("LAPI_FABRIC_PROVIDER", "tcp;ofi_rxm"),
        ("MP_LABELIO", ""),
        ("LAPI_FABRIC_DOMAIN", "a#b"),
        ("MP_HOSTFILE", ""),
    ] {
        assert_eq!(value(&files, name).as_deref(), Some(expected), "{name}");
    }
    assert_eq!(files.line("LAPI_SPIN").expect("a line").place.to_string(), "u:3");
}

#[test]
fn a_text_may_begin_with_a_mark_and_is_utf_8() {
    let mut files = Files::default();
    let text = b"\xef\xbb\xbfLAPI_SPIN=17\n# Gr\xfc\xdfe\nMP_EUIDEVICE=Gr\xfcn\nMP_INFOLEVEL=2 # Gr\xfcn\nMP_HOSTFILE=Gr\xc3\xbcn\n";
    files.parse(Owner::User, "u", text);
    assert_eq!(files.faults, ["u:3: not UTF-8", "u:4: not UTF-8"]);
    let values = ["LAPI_SPIN", "MP_EUIDEVICE", "MP_INFOLEVEL", "MP_HOSTFILE"].map(|name| value(&files, name));
    assert_eq!(values, [Some("17".to_owned()), None, None, Some("Grün".to_owned())]);
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_the_rest_counts() {
    let files = parsed(
        "LAPI_SPIN\nLAPI_SIPN=1\nPATH=/bin\nMP_CHILD=1\nLAPI_USE_SHM=\"no\nLAPI_USE_SHM='no' way\n\
         LAPI_CONFIG=x\nMP_INFOLEVEL=2\nMP_INFOLEVEL=3\nMP_OF_OTHERS=1\nMP_PROCS=4\n",
    );
    assert_eq!(
        files.faults,
        [
            "u:1: not NAME=VALUE",
            "u:2: LAPI_SIPN is not a variable of LAPI; did you mean LAPI_SPIN?",
            "u:3: PATH is not a variable of LAPI",
            "u:4: MP_CHILD has an effect in the environment only",
            "u:5: the quotation mark has no end",
            "u:6: text follows the quotation mark",
            "u:7: LAPI_CONFIG has an effect in the environment only",
            "u:9: MP_INFOLEVEL stands in line 8 too, which has no effect",
        ]
    );
    assert_eq!(value(&files, "MP_INFOLEVEL").as_deref(), Some("3"));
    assert_eq!(value(&files, "MP_PROCS").as_deref(), Some("4"));
    // How many tasks a job has, only its launcher says.
    let nothing = |_: &str| None;
    assert_eq!(files.beside(&nothing)("MP_PROCS"), None);
    assert_eq!(files.beside(&nothing)("MP_CHILD"), None);
    let many = parsed(&"nonsense\n".repeat(1000));
    assert_eq!(many.faults.len(), MOST_FAULTS + 1);
}

#[test]
fn the_environment_wins_then_the_first_file_and_nothing_means_the_default() {
    let mut files = parsed("LAPI_SPIN=1\nLAPI_STALL_SECONDS=\n");
    files.parse(Owner::Site, "s", b"LAPI_SPIN=2\nLAPI_STALL_SECONDS=7\nLAPI_USE_SHM=no\nLAPI_COALESCE=no\n");
    let environment = |name: &str| (name == "LAPI_COALESCE").then(|| "yes".to_owned());
    let found = settings(&environment, &files);
    let of = |name: &str| {
        let setting = found.iter().find(|setting| setting.name == name).expect("a variable");
        let origin = match &setting.origin {
            Origin::File(place) => place.to_string(),
            other => format!("{other:?}"),
        };
        (setting.value.clone(), origin)
    };
    for (name, value, origin) in [
        ("LAPI_SPIN", "1", "u:1"),
        ("LAPI_STALL_SECONDS", "300", "Default"),
        ("LAPI_USE_SHM", "no", "s:3"),
        ("LAPI_COALESCE", "yes", "Environment"),
        ("MP_INFOLEVEL", "1", "Default"),
    ] {
        assert_eq!(of(name), (value.to_owned(), origin.to_owned()), "{name}");
    }
    // What poe has read is the same for the tasks.
    let mut tasks = Files::default();
    tasks.unpack(&files.pack());
    assert_eq!(settings(&environment, &tasks), found);
    assert_eq!(tasks.lines().collect::<Vec<_>>(), files.lines().collect::<Vec<_>>());
}

#[test]
fn a_wrong_value_is_an_error_only_where_it_counts() {
    let mut files = parsed("LAPI_SPIN=never\n");
    files.parse(Owner::Site, "s", b"LAPI_SPIN=nor here\nLAPI_USE_SHM=perhaps\n");
    let set =
        |names: &'static [&'static str]| move |name: &str| names.contains(&name).then(|| "no".to_owned());
    let error = files.check(&set(&[])).expect_err("a wrong value");
    assert_eq!(error.code, LAPI_ERR_UNKNOWN);
    assert!(error.detail.starts_with("u:1: LAPI_SPIN is \"never\"; allowed: "), "{}", error.detail);
    let error = files.check(&set(&["LAPI_SPIN"])).expect_err("a wrong value");
    assert_eq!(error.code, LAPI_ERR_SHM_SETUP);
    assert!(error.detail.starts_with("s:2: LAPI_USE_SHM"), "{}", error.detail);
    assert_eq!(files.check(&set(&["LAPI_SPIN", "LAPI_USE_SHM"])), Ok(()));
}

/// The files that an environment leads to.
fn looked_for(variables: &[(&str, &str)], secure: bool) -> Vec<String> {
    let environment =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Files::find(&environment, secure).looked_for.into_iter().map(|(_, path, _)| path).collect()
}

#[test]
fn where_files_are() {
    let (home, xdg) = (("HOME", "/nowhere"), ("XDG_CONFIG_HOME", "/no/config"));
    assert_eq!(looked_for(&[home], false), ["/nowhere/.config/openlapi.conf", OF_SITE]);
    assert_eq!(looked_for(&[home, xdg], false), ["/no/config/openlapi.conf", OF_SITE]);
    assert_eq!(looked_for(&[home, ("XDG_CONFIG_HOME", "x")], false)[0], "/nowhere/.config/openlapi.conf");
    assert_eq!(looked_for(&[], false), [OF_SITE]);
    assert_eq!(looked_for(&[home, (LIST, "/a:/b")], false), ["/a", "/b"]);
    assert_eq!(looked_for(&[home, (LIST, NO_FILE)], false), [""; 0]);
    assert_eq!(looked_for(&[home, (READ, "")], false), [""; 0]);
    for variables in [[home, (LIST, "/a")], [xdg, (READ, "")]] {
        assert_eq!(looked_for(&variables, true), [OF_SITE]);
    }
}

#[test]
fn only_short_regular_files_are_read() {
    let folder = std::env::temp_dir().join(format!("openlapi-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let long = folder.join("long");
    std::fs::write(&long, "#".repeat(LARGEST as usize + 1)).expect("a file");
    let pipe = folder.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("a program of every system").success());
    for (path, words) in [
        (long.to_str().expect("a name"), "it has more than 65536 bytes"),
        (pipe.to_str().expect("a name"), "it is not a regular file"),
        ("/dev/zero", "it is not a regular file"),
        (folder.to_str().expect("a name"), "it is not a regular file"),
        ("/nowhere/at/all", "there is no such file"),
    ] {
        let mut files = Files::default();
        files.take(Owner::Named, path);
        assert!(files.faults[0].starts_with(path) && files.faults[0].contains(words), "{:?}", files.faults);
        assert_eq!(files.lines, []);
    }
    std::fs::remove_dir_all(&folder).expect("it can be removed");
}
