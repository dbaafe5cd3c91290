//! The man pages: that they are complete, agree with the header, the tables of the sources and the
//! tools, that their examples compile and run, and that the formatters report no errors.

mod page;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use openlapi_tests::{Job, build_dir, compile, stage, workspace};
use page::{Page, page, pages};

fn source(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).expect("it is part of the source tree")
}

/// A C type and its name in one spelling: the header has `unsigned int` where pages have `uint`,
/// and names unions.
fn plain(declaration: &str) -> String {
    let words: Vec<&str> =
        declaration.split_whitespace().filter(|word| !matches!(*word, "struct" | "union")).collect();
    words.join(" ").replace("unsigned int", "uint").replace("unsigned long", "ulong")
}

/// The name that a declaration ends with.
fn name_of(declaration: &str) -> &str {
    let start = declaration.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    &declaration[start..]
}

/// The calls of `lapi.h` under their usual names, with their parameters.
fn calls() -> BTreeMap<String, Vec<String>> {
    let header = source("include/lapi.h");
    let calls: BTreeMap<_, _> = header
        .split(';')
        .filter_map(|text| text[text.rfind("\nint LAPI_")? + "\nint ".len()..].strip_suffix(')'))
        .filter_map(|call| call.split_once('('))
        .map(|(name, parameters)| (name.to_owned(), parameters.split(',').map(plain).collect()))
        .collect();
    assert!(calls.len() >= 31, "the header was understood: {:?}", calls.keys());
    calls
}

fn names(parameters: &[String]) -> Vec<&str> {
    parameters.iter().map(|parameter| name_of(parameter)).collect()
}

#[test]
fn every_call_has_a_page_and_every_page_a_call() {
    let pages: Vec<String> = pages("3").into_iter().map(|page| page.name).collect();
    let calls: Vec<String> = calls().into_keys().collect();
    assert_eq!(pages, calls);
}

#[test]
fn prototypes_are_those_of_the_header() {
    let calls = calls();
    for page in pages("3") {
        let (returns, parameters) = page.prototype();
        assert_eq!((&*returns, &parameters), ("int", &calls[&page.name]), "{}", page.name);
    }
}

#[test]
fn every_parameter_is_described_in_its_place() {
    let calls = calls();
    for page in pages("3") {
        let described: Vec<&str> = page
            .section("PARAMETERS")
            .iter()
            .filter_map(|line| line.strip_prefix(".It Fa ")?.split_once(" Pq "))
            .map(|(name, way)| {
                assert!(["in", "out", "in/out", "out, Fortran only"].contains(&way), "{}: {way}", page.name);
                name
            })
            .collect();
        let mut expected = names(&calls[&page.name]);
        expected.push("ierror");
        assert_eq!(described, expected, "{}", page.name);
    }
}

#[test]
fn fortran_has_the_same_parameters_and_declares_each() {
    let calls = calls();
    for page in pages("3") {
        let shown = page.shown("FORTRAN SYNTAX").concat().replace("&\n", "");
        let (call, declarations) = shown
            .split_once("call ")
            .and_then(|(_, rest)| rest.split_once(")\n"))
            .unwrap_or_else(|| panic!("{}: no call in {shown}", page.name));
        let (name, parameters) = call.split_once('(').expect("a call has parameters");
        let parameters: Vec<&str> = parameters.split(',').map(str::trim).collect();
        let mut expected = names(&calls[&page.name]);
        expected.push("ierror");
        assert_eq!((name, &parameters), (&*page.name.to_uppercase(), &expected));
        for parameter in parameters {
            let declared = declarations
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .filter(|word| *word == parameter)
                .count();
            assert_eq!(declared, 1, "{}: {parameter} is declared", page.name);
        }
    }
}

/// As subroutines that make the call with their own arguments.
#[test]
fn fortran_syntax_compiles() {
    let mut program = String::new();
    for page in pages("3") {
        let shown = page.shown("FORTRAN SYNTAX").concat();
        let shown = [("any", "integer"), ("request", "LAPI_UTIL_T"), ("transfer", "LAPI_XFER_T")]
            .iter()
            .fold(shown, |text, (what, name)| text.replace(&format!("<{what} type>"), name));
        let (call, declarations) =
            shown.split_once("call ").and_then(|(_, rest)| rest.split_once(")\n")).expect("a call");
        let (name, parameters) = call.split_once('(').expect("a call has parameters");
        let parts = [
            format!("subroutine of_{name}({parameters})\nimplicit none\ninclude 'lapif.h'\n"),
            format!("{declarations}\ncall {name}({parameters})\nend subroutine\n"),
        ];
        program.extend(parts);
    }
    let file = build_dir().join("tests/man-syntax.f90");
    fs::write(&file, program).expect("the file can be written");
    let made = Command::new(stage().join("bin/mpfort"))
        .args(["-compiler", "gfortran", "-fsyntax-only"])
        .arg(&file)
        .output()
        .expect("the wrapper can be run");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn pages_have_the_same_sections_in_the_same_order() {
    for page in pages("3") {
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".Sh ")).collect();
        let all = [
            "NAME",
            "LIBRARY",
            "SYNOPSIS",
            "FORTRAN SYNTAX",
            "PARAMETERS",
            "DESCRIPTION",
            "RETURN VALUES",
            "EXAMPLES",
            "NOTES",
            "SEE ALSO",
        ];
        let expected: Vec<&str> =
            all.into_iter().filter(|title| *title != "NOTES" || sections.contains(title)).collect();
        assert_eq!(sections, expected, "{}", page.name);
        assert_eq!(page.arguments("Nm")[..2], [page.name.clone(), format!("P{}", page.name)]);
    }
}

#[test]
fn error_codes_exist() {
    let table = source("src/abi/error_codes.rs");
    let mut named = 0;
    for page in pages("137") {
        for line in page.lines() {
            for word in line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                if word.starts_with("LAPI_ERR_") || word.starts_with("LAPI_WARN_") {
                    let stands = |after| table.contains(&format!(" {word}{after}"));
                    assert!(stands(" \"") || stands(": c_int"), "{}: {word}", page.name);
                    named += 1;
                }
            }
        }
    }
    assert!(named > 200, "the pages name error codes: {named}");
}

#[test]
fn return_values_begin_with_success_and_name_each_code_once() {
    for page in pages("3") {
        let section = page.section("RETURN VALUES");
        let mut codes: Vec<&str> = section.iter().filter_map(|line| line.strip_prefix(".It Dv ")).collect();
        assert_eq!(codes.first(), Some(&"LAPI_SUCCESS"), "{}", page.name);
        let all = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), all, "{}", page.name);
    }
}

#[test]
fn constants_and_types_stand_in_the_headers() {
    let headers = source("include/lapi.h") + &source("include/css_shared.h");
    let known: std::collections::HashSet<&str> =
        headers.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    for page in pages("137") {
        for constant in page.arguments("Dv").into_iter().chain(page.arguments("Va")) {
            assert!(known.contains(constant) || constant == "CLOCK_REALTIME", "{}: {constant}", page.name);
        }
        for word in page.arguments("Vt").into_iter().filter(|word| word.ends_with("_t")) {
            assert!(known.contains(word), "{}: {word}", page.name);
        }
    }
}

/// The fields of each structure and union that a text declares.
fn structures(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for declared in text.split("typedef ").skip(1) {
        let Some(rest) = ["struct ", "union "].iter().find_map(|kind| declared.strip_prefix(kind)) else {
            continue;
        };
        let Some((name, rest)) = rest.split_once(" {\n") else { continue };
        let Some((body, _)) = rest.split_once(&format!("\n}} {name};")) else { continue };
        let lines = body.lines().map(str::trim).filter(|line| line.ends_with(';') && !line.starts_with('}'));
        found.insert(name.to_owned(), lines.map(|line| plain(line.trim_end_matches(';'))).collect());
    }
    found
}

/// A text without what stands in comments.
fn without_comments(text: &str) -> String {
    let parts = text.split("/*").enumerate();
    parts
        .map(|(at, part)| if at == 0 { part } else { part.split_once("*/").map_or("", |(_, rest)| rest) })
        .collect()
}

#[test]
fn structures_are_those_of_the_header() {
    let header = structures(&without_comments(&source("include/lapi.h")));
    let mut count = 0;
    for page in ["LAPI_Xfer", "LAPI_Util"] {
        let text = source(&format!("packaging/man/man3/{page}.3"));
        // Another name of a field stands in a comment behind it.
        let trimmed: String =
            without_comments(&text).lines().map(|line| line.trim_end().to_owned() + "\n").collect();
        let shown = structures(&trimmed);
        for (name, fields) in &shown {
            let known = header.get(name).unwrap_or_else(|| panic!("{page}: the header has no {name}"));
            let others = text.lines().filter_map(|line| line.split_once("/* or ")?.1.split_once(" */"));
            let others: Vec<&str> = others.map(|(name, _)| name).collect();
            let known: Vec<&String> = known
                .iter()
                .filter(|field| fields.contains(field) || !others.contains(&name_of(field)))
                .collect();
            assert_eq!(fields.iter().collect::<Vec<_>>(), known, "{page}: {name}");
            count += 1;
        }
        // What a request or a transfer may be is shown, if it is built.
        let union = if page == "LAPI_Xfer" { "lapi_xfer_t" } else { "lapi_util_t" };
        let unbuilt = ["lapi_amx_t"];
        for member in &shown[union][1..] {
            let (kind, _) = member.split_once(' ').expect("a type and a name");
            assert!(shown.contains_key(kind) || unbuilt.contains(&kind), "{page} does not show {kind}");
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn references_lead_to_pages() {
    let pages = pages("137");
    for page in &pages {
        let references: Vec<&str> = page
            .lines()
            .filter_map(|line| {
                line.strip_prefix(".Xr ").or_else(|| line.split_once(" Xr ").map(|(_, it)| it))
            })
            .collect();
        assert!(!references.is_empty(), "{} refers to others", page.name);
        for reference in references {
            let mut words = reference.split(' ').filter(|word| !matches!(*word, "(" | "["));
            let (name, section) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let there = pages.iter().any(|page| page.name == name && section == page.section.to_string());
            assert!(there, "{}: {reference}", page.name);
        }
    }
}

/// The example of a page, written to a file.
fn example(page: &Page) -> (String, String) {
    let code = page.shown("EXAMPLES");
    assert_eq!(code.len(), 1, "{} has one example", page.name);
    let dir = build_dir().join("tests/man");
    fs::create_dir_all(&dir).expect("the folder can be made");
    let file = dir.join(format!("{}.c", page.name));
    // Two tests write the same file: never a part of it.
    let fresh = dir.join(format!("{}.c.{:?}", page.name, std::thread::current().id()));
    fs::write(&fresh, &code[0]).and_then(|()| fs::rename(&fresh, &file)).expect("the file can be written");
    (file.to_string_lossy().into_owned(), code[0].clone())
}

#[test]
fn examples_compile() {
    for page in pages("3") {
        let (file, code) = example(&page);
        assert!(code.contains(&format!("{}(", page.name)), "{}: the example calls it", page.name);
        let widest = code.lines().map(str::len).max();
        assert!(widest <= Some(75), "{}: the example has a line of {widest:?} characters", page.name);
        let made = Command::new(stage().join("bin/mpcc_r"))
            .args(["-fsyntax-only", "-std=c99", "-Wall", "-Wextra", "-Werror", &file])
            .output()
            .expect("the wrapper can be run");
        assert!(made.status.success(), "{}: {}", page.name, String::from_utf8_lossy(&made.stderr));
    }
}

/// Examples that are complete programs check their data and return status 0 if it is correct.
#[test]
fn whole_programs_run() {
    let mut programs = 0;
    for page in pages("3") {
        let (file, code) = example(&page);
        if code.contains("int main(void)") {
            programs += 1;
            Job::new(compile(&format!("man-{}", page.name), &[&file], &[])).procs(2).run().ok();
        }
    }
    assert!(programs >= 5, "{programs} examples are programs");
}

/// The strings of an entry of the table of variables, in their order. Parts of a long
/// one are joined.
fn strings(entry: &str) -> Vec<String> {
    let mut strings = Vec::new();
    let mut rest = entry;
    while let Some((_, from)) = rest.split_once('"') {
        let Some((text, behind)) = from.split_once('"') else { break };
        strings.push(text.to_owned());
        rest = behind;
    }
    strings
}

/// Every environment variable of the library with its default, which launchers'
/// variables do not have.
fn variables() -> Vec<(String, String)> {
    let table = source("src/config/table.rs");
    let entries = table
        .split_once("pub const VARIABLES")
        .and_then(|(_, rest)| rest.split_once("\n];"))
        .map(|(entries, _)| entries.replace("launcher(", "var(launcher "))
        .expect("the table is there");
    let mut variables = Vec::new();
    for entry in entries.split("var(").skip(1) {
        let strings = strings(entry);
        let default = if entry.starts_with("launcher ") { String::new() } else { strings[2].clone() };
        variables.push((strings[0].clone(), default));
    }
    assert!(variables.len() >= 40, "the table was understood: {variables:?}");
    variables
}

#[test]
fn every_variable_of_the_library_stands_in_the_overview() {
    let overview = page("lapi", '7');
    let section = overview.section("ENVIRONMENT");
    let described: Vec<&str> = overview.arguments("Ev");
    for (name, default) in variables() {
        assert!(described.contains(&&*name), "lapi(7) does not have {name}");
        if !default.is_empty() {
            let item = format!(".It Ev {name} Pq Li {default}");
            assert!(section.contains(&&*item), "lapi(7) does not have \"{item}\"");
        }
    }
    // And no others.
    let known: Vec<String> = variables().into_iter().map(|(name, _)| name).collect();
    for name in section.iter().filter_map(|line| line.strip_prefix(".It Ev ")?.split(' ').next()) {
        assert!(known.iter().any(|variable| variable == name), "lapi(7) has {name}, the library does not");
    }
}

#[test]
fn the_page_of_poe_has_what_its_help_has() {
    let page = page("poe", '1');
    let help = Command::new(stage().join("bin/poe")).arg("-h").arg("all").output().expect("poe can be run");
    let help = String::from_utf8(help.stdout).expect("the help is text");
    let mut settings = 0;
    for line in help.lines().filter(|line| line.starts_with("  ") && line.ends_with(']')) {
        let (flags, variable) = line[2..line.len() - 1].rsplit_once("  [").expect("flags and a variable");
        settings += 1;
        let item = page
            .lines()
            .find(|line| line.starts_with(".It ") && line.ends_with(&format!("Ev {variable}")))
            .unwrap_or_else(|| panic!("poe(1) does not have {variable}"));
        for flag in flags.split(", ").filter_map(|flag| flag.strip_prefix('-')?.split(' ').next()) {
            assert!(item.contains(&format!("Fl {flag} ")), "poe(1) does not have -{flag}: {item}");
        }
    }
    assert!(settings > 30, "the help was understood: {help}");
    let items = page.lines().filter(|line| line.starts_with(".It ") && line.contains("Ev ")).count();
    assert_eq!(items, settings, "poe(1) has no other settings than poe");
}

fn skipped(what: &str) {
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {what} is not installed: ci/deps.sh test");
}

/// The messages of a formatter for a page; none if it is not installed.
fn complaints(command: &mut Command, page: &Path) -> Option<String> {
    match command.arg(page).env("LC_ALL", "C.UTF-8").env_remove("MANROFFOPT").output() {
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            Some(format!(
                "{}{}",
                String::from_utf8_lossy(&text),
                if output.status.success() { "" } else { "failed" }
            ))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{}: {error}", page.display()),
    }
}

#[test]
fn mandoc_has_no_complaint() {
    for page in pages("137") {
        match complaints(Command::new("mandoc").args(["-T", "lint", "-W", "warning"]), &page.path) {
            Some(text) => assert_eq!(text, "", "{}", page.path.display()),
            None => return skipped("mandoc"),
        }
    }
}

#[test]
fn groff_has_no_complaint() {
    for page in pages("137") {
        match complaints(Command::new("groff").args(["-mandoc", "-ww", "-Tutf8", "-z"]), &page.path) {
            Some(text) => assert_eq!(text, "", "{}", page.path.display()),
            None => return skipped("groff"),
        }
    }
}

/// `Op` would take the rest of the line into its brackets.
#[test]
fn a_value_that_may_be_left_out_ends_before_the_variable() {
    for page in pages("137") {
        for line in page.lines().filter(|line| line.starts_with(".It ")) {
            let inside = line.split_once(" Op ").map_or("", |(_, inside)| inside);
            assert!(!inside.contains(" Pq "), "{}: {line}", page.path.display());
        }
    }
}

/// As `man` shows it: the string is set where groff's macros are loaded already, by .Dd, and not
/// yet used, by .Dt.
#[test]
fn the_head_of_a_page_names_the_product() {
    for page in pages("137") {
        let Some(text) = complaints(Command::new("groff").args(["-mandoc", "-Tutf8", "-P-c"]), &page.path)
        else {
            return skipped("groff");
        };
        let head = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        assert!(head.contains(" OpenLAPI "), "{}: {head}", page.path.display());
    }
}

#[test]
fn every_variable_of_the_profiler_is_described() {
    let settings = source("prof/src/settings.rs");
    let (_, names) = settings.split_once("const NAMES:").expect("the names are in one list");
    let (_, names) = names.split_once('=').and_then(|(_, list)| list.split_once('[')).expect("a list");
    let (names, _) = names.split_once(']').expect("its end");
    let mut names: Vec<&str> = names.split(',').map(|name| name.trim().trim_matches('"')).collect();
    let page = page("lapiprof", '7');
    let section = page.section("ENVIRONMENT");
    let names_of = section.iter().filter_map(|line| line.strip_prefix(".It Ev ")?.split(' ').next());
    let mut described: Vec<&str> = names_of.collect();
    names.sort_unstable();
    described.sort_unstable();
    assert_eq!(described, names);
}
