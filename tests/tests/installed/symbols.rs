//! What the library exports: the names of `tests/symbols.txt`, no more and no fewer.
//!
//! After an intended change,
//! `UPDATE_SYMBOLS=1 cargo test -p openlapi-tests --test installed symbols` regenerates the list. A
//! released name is never removed under the same soname.

use std::fs;
use std::process::Command;

use super::{output, stage, workspace};

#[test]
fn exported_symbols_are_those_of_the_list() {
    let library = stage().join("lib/liblapi_r.so");
    let listed = output(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library));
    let mut exported: Vec<String> = listed
        .lines()
        .map(|line| {
            let mut words = line.split(' ');
            let (name, kind) = (words.next().expect("a name"), words.next().expect("a kind"));
            let kind = match kind {
                "T" => "function",
                "D" | "B" | "R" | "V" | "G" | "S" => "object",
                "W" => "weak",
                "A" => "version",
                other => panic!("a symbol of an unexpected kind: {other} {name}"),
            };
            format!("{name} {kind}")
        })
        .collect();
    exported.sort_unstable();
    let path = workspace().join("tests/symbols.txt");
    if std::env::var_os("UPDATE_SYMBOLS").is_some() {
        fs::write(&path, exported.join("\n") + "\n").expect("the list can be written");
    }
    let list = fs::read_to_string(&path).expect("tests/symbols.txt");
    let list: Vec<&str> = list.lines().collect();
    let missing: Vec<_> = list.iter().filter(|name| !exported.iter().any(|it| it == *name)).collect();
    let new: Vec<_> = exported.iter().filter(|name| !list.contains(&name.as_str())).collect();
    assert!(
        missing.is_empty() && new.is_empty(),
        "no longer exported: {missing:?}\nnot in tests/symbols.txt: {new:?}\nregenerate it with \
         UPDATE_SYMBOLS=1 cargo test -p openlapi-tests --test installed symbols"
    );
    assert!(list.is_sorted(), "tests/symbols.txt is not the list that this test writes");

    // Every call also has its name for profiling.
    let calls: Vec<&str> =
        list.iter().filter_map(|line| line.strip_prefix("LAPI_")?.strip_suffix(" function")).collect();
    assert!(calls.len() > 30, "{calls:?}");
    for call in calls {
        assert!(list.contains(&format!("PLAPI_{call} function").as_str()), "there is no PLAPI_{call}");
    }
}
