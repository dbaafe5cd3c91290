//! What libgm.so defines: the functions of gm.h, and nothing else.

mod program;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

#[test]
fn the_library_defines_what_stands_in_the_list_and_in_the_header() {
    let root = openlapi_tests::workspace().join("doors/gm");
    let list = fs::read_to_string(root.join("symbols.txt")).expect("the list");
    let listed: BTreeSet<&str> = list.lines().collect();
    let library = program::libraries().join("libgm.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output().expect("nm");
    let text = String::from_utf8(output.stdout).expect("names");
    let defined: BTreeSet<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(defined, listed);
    let header = fs::read_to_string(root.join("include/gm.h")).expect("the header");
    let words: BTreeSet<&str> = header.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
    let missing: Vec<_> = listed.difference(&words).collect();
    assert!(missing.is_empty(), "not in gm.h: {missing:?}");
    // Each function that the header declares, and does not define itself, is there.
    let declared =
        header.lines().filter(|line| ![' ', '#', '/'].contains(&line.chars().next().unwrap_or(' ')));
    let names = declared.filter_map(|line| {
        let (before, _) = line.split_once('(')?;
        let name = before.rsplit([' ', '*']).next()?;
        (name.starts_with("gm_") && !before.contains("static") && !before.contains("typedef")).then_some(name)
    });
    let names: BTreeSet<&str> = names.collect();
    assert!(names.len() > 80, "hardly a function was found");
    let undefined: Vec<_> = names.difference(&defined).collect();
    assert!(undefined.is_empty(), "not in libgm.so: {undefined:?}");
}
