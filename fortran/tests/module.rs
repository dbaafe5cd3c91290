//! `lapi.f90`, and what docs/fortran.md says of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The page names what the compiler does not check, and nothing else.
#[test]
fn the_page_names_the_arguments_of_any_type_and_the_calls_without_an_interface() {
    let (module, page) = (read("lapi.f90"), read("../docs/fortran.md"));
    let rests = |text: &'static str| module.lines().filter_map(move |line| line.trim().strip_prefix(text));
    let arguments: BTreeSet<&str> = rests("type(*), dimension(*) :: ").collect();
    let calls: BTreeSet<&str> = rests("external :: ").flat_map(|names| names.split(", ")).collect();
    assert!(arguments.len() > 5 && calls.len() > 2, "{arguments:?}, {calls:?}");

    let (_, section) = page.split_once("Look at these yourself:").expect("the list");
    let (of_any_type, rest) = section.split_once("- calls without an interface: ").expect("the calls");
    let named: BTreeSet<&str> = of_any_type.split('`').skip(1).step_by(2).collect();
    assert_eq!(named, arguments);
    let (named, _) = rest.split_once('.').expect("a sentence");
    assert_eq!(named.split(", ").collect::<BTreeSet<_>>(), calls);
}
