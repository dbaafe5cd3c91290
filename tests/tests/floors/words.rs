//! The words of the project: how a documentation comment begins, how wide a comment is, and words
//! that say nothing to a reader who knows the field.

use crate::tokens::{line_comments, tokens};
use openlapi_tests::workspace;
use std::fs;

/// Where the project's own files are.
const FOLDERS: &[&str] = &[
    "benches",
    "capi",
    "cdylib",
    "ci",
    "docs",
    "doors",
    "fortran",
    "fuzz",
    "include",
    "lapi",
    "libfabric-sys",
    "packaging",
    "prof",
    "python",
    "runtime",
    "samples",
    "src",
    "tests",
    "tools",
];
/// The pages that stand in no folder.
const PAGES: &[&str] = &["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];
/// What other programs write or keep in these folders, and this list itself.
const FOREIGN: &[&str] =
    &["libfabric-sys/src/bindings.rs", "include/lapi.h", "fuzz/corpus/", "tests/tests/floors/words.rs"];

/// The widest line of a comment, in columns.
const WIDEST: usize = 100;

/// What no documentation comment begins with: each says nothing where the comment stands alone, as
/// an editor shows it.
const BEGINNINGS: &[&str] =
    &["The same", "That", "It", "It's", "Its", "As for", "As above", "Writes it", "Closes it"];
/// What makes a "This" before it a pronoun, and not a part of the item's name.
const AFTER_THIS: &[&str] =
    &["is", "was", "has", "does", "must", "can", "may", "alone", "many", "much", "makes", "needs"];

/// Beginnings of words, in small letters, for which the field has others, and phrases.
const WORDS: &[&str] = &[
    "welcome",
    "readmit",
    "forgiv",
    "fall_into_step",
    "errand",
    "whereabouts",
    "hears of",
    "the affair of",
    "lesson",
    "teaches",
    "stillness",
    "between_prods",
    "am_attach",
    "sleep_in_room",
    "hand_over",
    "an address that no process has",
    "another one is preferred",
    "no multiple of",
    "no secret against strangers",
    "packet without room",
    "packets without room",
    "what is protected against whom",
    "a receiver asks for each message",
    "keeps no memory",
    "a cache line takes",
];
/// Names of types, in code: as words of a sentence they are fine.
const TYPES: &[&str] = &["Effort", "Rest"];

/// A place of a file that breaks a rule: the line, and what is wrong.
type Fault = (usize, String);

#[test]
fn documentation_comments_say_what_the_item_is() {
    assert!(held_to(&["rs"], beginnings) > 500, "hardly a file was found");
}

#[test]
fn comments_are_a_hundred_columns_wide() {
    assert!(held_to(&["rs"], wide_lines) > 500, "hardly a file was found");
    assert!(held_to(&["c", "h"], |text| wide(text, &["/*", "* ", "//"])) > 100);
    assert!(held_to(&["sh", "py"], |text| wide(text, &["#"])) > 20);
}

#[test]
fn words_are_those_of_the_field() {
    assert!(held_to(&["rs", "c", "h", "sh", "py", "md", "1", "3", "7"], words) > 500);
    held_to(&["rs"], types);
}

/// Holds all files with these endings to a rule; returns how many there are.
fn held_to(endings: &[&str], rule: impl Fn(&str) -> Vec<Fault>) -> usize {
    let mut files = PAGES.iter().map(|page| (*page).to_owned()).collect();
    FOLDERS.iter().for_each(|folder| below(folder, &mut files));
    files.retain(|file| {
        file.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending))
            && !FOREIGN.iter().any(|start| file.starts_with(start))
    });
    let broken = files.iter().flat_map(|file| {
        let text = fs::read(workspace().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let faults = rule(&String::from_utf8_lossy(&text));
        faults.into_iter().map(move |(line, fault)| format!("{file}:{line}: {fault}"))
    });
    let broken: Vec<String> = broken.collect();
    assert!(broken.is_empty(), "{} places\n{}\n", broken.len(), broken.join("\n"));
    files.len()
}

fn below(folder: &str, files: &mut Vec<String>) {
    let entries = fs::read_dir(workspace().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let built = ["target", "__pycache__", "found", "artifacts"].contains(&name) || name.starts_with('.');
        let file = format!("{folder}/{name}");
        if path.is_dir() && !built {
            below(&file, files);
        } else if path.is_file() {
            files.push(file);
        }
    }
}

/// The documentation comments of a Rust source that do not say what the item is.
fn beginnings(source: &str) -> Vec<Fault> {
    let (mut faults, mut before) = (Vec::new(), (0, ""));
    let text = |line: &str| line.trim_start().trim_start_matches(['/', '!']).trim_start().to_owned();
    if !source.lines().any(|line| line.contains("//") && is_no_beginning(&text(line))) {
        return faults;
    }
    for (line, comment) in line_comments(source) {
        let mark = ["///", "//!"].into_iter().find(|mark| comment.starts_with(mark));
        let Some(mark) = mark.filter(|_| !comment.starts_with("////")) else { continue };
        let text = comment[mark.len()..].trim();
        if before != (line - 1, mark) && is_no_beginning(text) {
            faults.push((line, format!("begins with no subject: {text}")));
        }
        before = (line, mark);
    }
    faults
}

fn is_no_beginning(text: &str) -> bool {
    let mut words = text.split([' ', ',', '.', ';', ':']);
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let begins = |beginning: &&str| match beginning.split_once(' ') {
        Some(two) => two == (first, second),
        None => *beginning == first,
    };
    BEGINNINGS.iter().any(begins)
        || first == "This" && AFTER_THIS.contains(&second)
        || text.starts_with("Of LAPI_")
}

/// The lines of a Rust source that are too wide, and end with a comment. Rows of tables and examples
/// cannot be wrapped.
fn wide_lines(source: &str) -> Vec<Fault> {
    let lines: Vec<&str> = source.lines().collect();
    let (mut faults, mut example, mut last) = (Vec::new(), false, 0);
    if lines.iter().all(|line| line.len() <= WIDEST) {
        return faults;
    }
    for (line, comment) in line_comments(source) {
        example &= last + 1 == line;
        last = line;
        let text = comment.trim_start_matches(['/', '!']);
        example ^= text.trim_start().starts_with("```");
        if !example && is_wide(lines[line - 1], text) {
            faults.push((line, too_wide(lines[line - 1])));
        }
    }
    faults
}

/// The lines that begin with one of these marks of a comment, and are too wide.
fn wide(source: &str, marks: &[&str]) -> Vec<Fault> {
    let lines = (1..).zip(source.lines());
    let comments = lines.filter_map(|(number, line)| {
        let mark = marks.iter().find(|mark| line.trim_start().starts_with(**mark))?;
        let code = ["#define", "#if", "#elif", "#pragma"].iter().any(|code| line.starts_with(code));
        (!code).then(|| (number, line, &line.trim_start()[mark.len()..]))
    });
    let wide = comments.filter(|(_, line, text)| is_wide(line, text));
    wide.map(|(number, line, _)| (number, too_wide(line))).collect()
}

fn is_wide(line: &str, text: &str) -> bool {
    let (indented, text) = (text.starts_with("    "), text.trim());
    let is_row = indented || text.starts_with('|') || text.contains("  ");
    line.chars().count() > WIDEST && text.contains(' ') && !is_row
}

fn too_wide(line: &str) -> String {
    format!("{} columns: {}", line.chars().count(), line.trim())
}

/// The words of a text for which the field has others.
fn words(text: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let small = line.to_ascii_lowercase();
        let begins = |word: &str| {
            let mut places = small.match_indices(word);
            places.any(|(at, _)| !small[..at].ends_with(|before: char| before.is_alphabetic()))
        };
        let found = WORDS.iter().filter(|word| begins(word));
        faults.extend(found.map(|word| (number, format!("\"{word}\": {}", line.trim()))));
    }
    faults
}

/// The names of types in a Rust source for which the field has others.
fn types(source: &str) -> Vec<Fault> {
    if !TYPES.iter().any(|name| source.contains(name)) {
        return Vec::new();
    }
    let names = tokens(source).into_iter().filter(|token| TYPES.contains(&&*token.text));
    names.map(|token| (token.line, format!("the type {}", token.text))).collect()
}

#[test]
fn a_beginning_without_a_subject_is_found() {
    let lines = |source: &str| beginnings(source).iter().map(|(line, _)| *line).collect::<Vec<_>>();
    assert_eq!(lines("/// Its name.\na: u8,\n    /// The same, later.\nb: u8,"), [1, 3]);
    assert_eq!(lines("//! That of one task.\n\n/// It: a.\nfn f() {}\n/// As for [`f`].\n"), [1, 3, 5]);
    assert_eq!(lines("//! A module.\n/// This is it.\nmod a;"), [2]);
    assert_eq!(
        lines("/// Of LAPI_Put.\nfn a() {}\n/// Writes it.\nfn b() {}\n/// Closes it, at once.\nfn c() {}"),
        [1, 3, 5]
    );
    let fine = "/// The name of a task.\n/// It is long.\n/// The same holds.\na: u8,\n// It is here.\n\
                /// This task's number.\n/// Itself.\n/// Thatch.\n//// It.\nconst X: &str = \"/// It\";";
    assert_eq!(lines(fine), []);
}

#[test]
fn a_wide_comment_is_found() {
    let long = |begins: &str| format!("{begins}{}", " word".repeat(30));
    for comment in ["//", "    ///", "//! -", "let x = 1; //"] {
        assert_eq!(wide_lines(&format!("fn f() {{}}\n{}", long(comment))).len(), 1, "{comment}");
    }
    let row = format!("/// |{}", long(" a |"));
    let example = format!("/// ```\n{}\n/// ```", long("///"));
    let name = format!("/// [`{}`]", "x".repeat(WIDEST));
    let literal = format!("const X: &str = \"\n{}\";", long("//"));
    for fine in [row, example, name, literal, format!("/// {}", "x ".repeat(48))] {
        assert_eq!(wide_lines(&fine), [], "{fine}");
    }
    let after = format!("/// ```\n/// x\n/// ```\nfn f() {{}}\n{}", long("///"));
    assert_eq!(wide_lines(&after).len(), 1);
    assert_eq!(wide(&long(" *"), &["/*", "* "]).len(), 1);
    assert_eq!(wide(&long("#"), &["#"]).len(), 1);
    assert_eq!(wide(&long("#define X"), &["#"]), []);
    assert_eq!(wide(&long(" *   name   what it is:"), &["* "]), []);
}

#[test]
fn a_word_of_another_field_is_found() {
    let found = |text: &str| words(text).len();
    assert_eq!(found("// A task hears of it.\nfn to_welcome() {}\n// Forgiven, and readmitted."), 4);
    assert_eq!(found("unwelcome, and behears of"), 0);
    assert_eq!(types("struct Rest;\n// Rest and Effort\nfn f(x: Effort) {}").len(), 2);
    assert_eq!(types("// The rest. Rest.\nfn rest() {}"), []);
}
