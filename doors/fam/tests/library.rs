//! The libraries: what they export, who can use the headers, and what needs no daemon.

mod support;

use openlapi_tests::{Job, workspace};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use support::{CONFORMANCE, built, compiled, plain};

/// The symbols that a library defines, as the linker sees them.
fn symbols(library: &str) -> Vec<String> {
    names(&["-D", "--defined-only"], &built().join(library))
}

/// What nm lists of a file.
fn names(words: &[&str], file: &Path) -> Vec<String> {
    let output = Command::new("nm").args(words).arg(file).output();
    let text = String::from_utf8(output.expect("nm runs").stdout).expect("names");
    let mut names: Vec<String> =
        text.lines().filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect();
    names.sort();
    names
}

/// Programs that were linked with another library of this interface find every symbol, without a
/// version.
#[test]
fn exactly_the_symbols_of_the_interface_are_exported() {
    let list = fs::read_to_string(workspace().join("doors/fam/symbols.txt")).expect("the list");
    let list: Vec<&str> = list.lines().collect();
    assert_eq!(symbols("libopenfam.so.3"), list);
    // Names that follow from the interface's signatures, and not from our objects.
    for known in [
        "_ZN7openfam3famC1Ev",
        "_ZN7openfam3fam14fam_initializeEPKcPNS_11Fam_OptionsE",
        "_ZN7openfam3fam16fam_get_blockingEPvPNS_14Fam_DescriptorEmm",
        "_ZN7openfam3fam17fam_create_regionEPKcmjPNS_21Fam_Region_AttributesE",
        "_ZN7openfam3fam8fam_statEPNS_21Fam_Region_DescriptorEPNS_8Fam_StatE",
        "_ZN7openfam13Fam_ExceptionC1ENS_9Fam_ErrorEPKc",
        "_ZTIN7openfam13Fam_ExceptionE",
    ] {
        assert!(list.contains(&known), "{known}");
    }
    // No other call begins with an item and an offset, but fam_copy.
    let is_atomic = |name: &&&str| name.contains("EPNS_14Fam_DescriptorEm") && !name.contains("fam_copy");
    let found: BTreeSet<String> = list.iter().filter(is_atomic).map(|name| (*name).to_owned()).collect();
    assert_eq!(found, atomics());
}

/// The names of all atomics, by the rules of the C++ ABI and the interface's list of types.
fn atomics() -> BTreeSet<String> {
    // int32, int64, uint32, uint64, float, double; int128 is n.
    let numbers = "iljmfd";
    let mut all = BTreeSet::new();
    let mut add = |call: &str, parameters: &str| {
        let name = format!("fam_{call}");
        all.insert(format!("_ZN7openfam3fam{}{name}EPNS_14Fam_DescriptorEm{parameters}", name.len()));
    };
    for number in ["int32", "int64", "int128", "uint32", "uint64", "float", "double"] {
        add(&format!("fetch_{number}"), "");
    }
    add("set", "n");
    for number in numbers.chars().map(String::from) {
        for call in ["set", "swap"] {
            add(call, &number);
        }
        for call in ["add", "subtract", "min", "max"] {
            add(call, &number);
            add(&format!("fetch_{call}"), &number);
        }
    }
    for call in ["and", "or", "xor"] {
        for number in ["j", "m"] {
            add(call, number);
            add(&format!("fetch_{call}"), number);
        }
    }
    for number in ["i", "l", "j", "m", "n"] {
        add("compare_swap", &number.repeat(2));
    }
    all
}

#[test]
fn the_c_library_exports_what_its_header_declares() {
    let header = fs::read_to_string(workspace().join("doors/fam/include/fam/fam_c.h")).expect("the header");
    let declared: BTreeSet<&str> = header
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '('))
        .filter_map(|word| word.split_once('('))
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("c_fam_"))
        .collect();
    let found = symbols("libopenfam_c.so");
    assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), declared);
    assert_eq!(found.len(), 137);
}

/// `tests/c/plain.c`, which conformance.rs runs, leaves none out.
#[test]
fn the_program_in_c_makes_every_call() {
    let mut called = names(&["-u"], &plain());
    called.retain(|name| name.starts_with("c_fam_"));
    assert_eq!(called, symbols("libopenfam_c.so"));
}

/// The calls of the classes, and the getters and setters of descriptors.
#[test]
fn a_page_of_the_manual_names_every_call() {
    let door = workspace().join("doors/fam");
    let mut named = BTreeSet::new();
    for page in fs::read_dir(door.join("man")).expect("a folder") {
        let text = fs::read_to_string(page.expect("an entry").path()).expect("a page");
        let line = text.lines().skip_while(|line| *line != ".SH NAME").nth(1).unwrap_or_default();
        let names = line.split(" \\- ").next().unwrap_or_default();
        named.extend(names.split(", ").map(str::to_owned));
    }
    let header = fs::read_to_string(door.join("include/fam/fam.h")).expect("the header");
    let calls: BTreeSet<String> = header
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '('))
        .filter_map(|word| word.split_once('('))
        .map(|(name, _)| name.to_owned())
        .filter(|name| ["fam_", "get_", "set_"].iter().any(|first| name.starts_with(first)))
        .filter(|name| name != "fam_context")
        .collect();
    assert!(calls.len() > 80, "{calls:?}");
    assert_eq!(calls.difference(&named).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn the_libraries_have_the_names_that_programs_know() {
    for (library, soname) in [("libopenfam.so.3", "libopenfam.so.3"), ("libopenfam_c.so", "libopenfam_c.so")]
    {
        let output = Command::new("readelf").arg("-d").arg(built().join(library)).output().expect("readelf");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(&format!("soname: [{soname}]")), "{text}");
    }
}

#[test]
fn what_needs_no_daemon_holds() {
    let program = compiled("c++", "fam_conformance", CONFORMANCE, "libopenfam.so.3", &["-std=c++14"]);
    let said = Job::direct(program).without_launchers().run().ok().stdout.clone();
    assert_eq!(said.matches("OK ").count(), 6, "{said}");
}

#[test]
fn the_headers_are_those_of_c_and_of_every_cpp() {
    for (compiler, standard) in [("cc", "c99"), ("cc", "c11"), ("c++", "c++14"), ("c++", "c++20")] {
        let name = format!("fam_header_{standard}");
        let standard = format!("-std={standard}");
        let source = if compiler == "cc" { "tests/c/header.c" } else { "tests/c/header.cpp" };
        let libraries = if compiler == "cc" { "libopenfam_c.so" } else { "libopenfam_c.so libopenfam.so.3" };
        let program = compiled(compiler, &name, &[source], libraries, &[&standard]);
        Job::direct(program).without_launchers().run().ok();
    }
}

/// A file of settings must be there, where OPENFAM_ROOT says so, and be right.
#[test]
fn openfam_root_must_have_the_file_of_settings() {
    let program = compiled("c++", "fam_conformance", CONFORMANCE, "libopenfam.so.3", &["-std=c++14"]);
    let root = std::env::temp_dir().join(format!("openlapi-fam-root-{}", std::process::id()));
    let file = root.join("config/fam_pe_config.yaml");
    let run = || Job::direct(&program).arg("served").env("OPENFAM_ROOT", &root).without_launchers().run();
    assert!(run().stdout.contains("error 4: "), "it is missing");
    fs::create_dir_all(root.join("config")).expect("a folder");
    fs::write(&file, "runtime: MPI\n").expect("a file");
    assert!(run().stdout.contains("error 4: runtime is \"MPI\"; valid: PMIX, PMI2, NONE"));
    fs::write(&file, "fam_client_interface_service_address: 127.0.0.1:1\nruntime: NONE\nodd: 1\n")
        .expect("a file");
    let outcome = run();
    assert!(outcome.stdout.contains("error 19: the daemon at 127.0.0.1:1: "), "{outcome}");
    assert!(outcome.stderr.contains("fam_pe_config.yaml: odd has no meaning here"), "{outcome}");
    let _ = fs::remove_dir_all(&root);
}

/// The package for Debian says of every symbol since when it is there.
#[test]
fn the_package_knows_every_symbol() {
    let path = workspace().join("doors/fam/packaging/libopenlapi-fam3.symbols");
    let text = fs::read_to_string(path).expect("the list of the package");
    let known: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix(' ')?.strip_suffix("@Base 0.1.0")).collect();
    assert_eq!(known, [symbols("libopenfam.so.3"), symbols("libopenfam_c.so")].concat());
}
