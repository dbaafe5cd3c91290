//! `include/lapi.h` is committed; this regenerates it and fails on a difference.

use std::fs;
use std::path::{Path, PathBuf};

/// What cbindgen reads, in the order of the header. The rest of `src/abi` is in `capi/prelude.h`,
/// because only hand-written C can say it; `layout.rs` compares both with Rust.
const SOURCES: &[&str] = &[
    "../src/abi/error_codes.rs",
    "../src/abi/counter.rs",
    "../src/abi/init.rs",
    "../src/abi/message.rs",
    "../src/abi/vector.rs",
    "../src/abi/dgsp.rs",
    "../src/abi/xfer.rs",
    "../src/abi/util.rs",
];

/// The table of error codes, and that of calls.
const CODES: &str = "../src/abi/error_codes.rs";
const CALLS: &str = "../src/abi/calls.rs";

#[test]
fn lapi_h_is_up_to_date() {
    let committed = package().join("../include/lapi.h");
    let generated = generate();
    if std::env::var_os("UPDATE_HEADER").is_some() {
        fs::write(&committed, &generated).expect("write include/lapi.h");
        return;
    }
    let text = fs::read_to_string(&committed).unwrap_or_default();
    if let Some((number, (old, new))) = first_difference(&text, &generated) {
        panic!(
            "include/lapi.h differs from the Rust sources and capi/prelude.h at line {number}:\n\
             committed: {old}\ngenerated: {new}\n\
             to rewrite it: UPDATE_HEADER=1 cargo test -p openlapi-capi --test header"
        );
    }
}

fn generate() -> String {
    let mut config =
        cbindgen::Config::from_file(package().join("cbindgen.toml")).expect("read capi/cbindgen.toml");
    config.after_includes =
        Some(fs::read_to_string(package().join("prelude.h")).expect("read capi/prelude.h"));
    let [codes, calls] =
        ["codes.rs", "calls.rs"].map(|file| Path::new(env!("CARGO_TARGET_TMPDIR")).join(file));
    fs::write(&codes, constants()).expect("write the error codes");
    fs::write(&calls, prototypes()).expect("write the prototypes");
    let sources = SOURCES.iter().map(|source| package().join(source));
    let sources = std::iter::once(codes).chain(sources).chain([calls]);
    let builder = sources.fold(cbindgen::Builder::new().with_config(config), cbindgen::Builder::with_src);
    let mut header = Vec::new();
    builder.generate().expect("read the Rust sources").write(&mut header);
    tidy(&String::from_utf8(header).expect("a header in UTF-8"))
}

/// The rows of a table that is the argument of a macro: cbindgen does not expand macros.
fn rows(file: &str) -> String {
    let table = fs::read_to_string(package().join(file)).expect("read the table");
    let (_, rows) = table.split_once("$each! {\n").expect("the beginning of the table");
    let (rows, _) = rows.split_once("\n        }\n").expect("the end of the table");
    rows.to_owned()
}

/// The error codes as plain definitions.
fn constants() -> String {
    let rows = rows(CODES);
    let named = rows.lines().filter_map(|row| {
        let [number, name, _] = row.trim().splitn(3, ' ').collect::<Vec<_>>()[..] else { return None };
        name.starts_with("LAPI_").then(|| format!("pub const {name}: c_int = {number};\n"))
    });
    named.collect()
}

/// The calls as plain definitions: LAPI_X, then PLAPI_X.
fn prototypes() -> String {
    let rows = rows(CALLS);
    let mut halves = [String::new(), String::new()];
    for row in rows.split_inclusive(");\n").map(str::trim).filter(|row| !row.is_empty()) {
        let comment: String = row
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("///"))
            .map(|line| format!("{line}\n"))
            .collect();
        let code: String = row.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect();
        let (names, arguments) = code.split_once('(').expect("the arguments of a call");
        let name = names.split(' ').next().expect("the name of a call");
        let arguments: Vec<&str> = arguments
            .trim_end_matches(");")
            .split(',')
            .filter_map(|argument| Some(argument.split_once(" as ")?.0.trim()))
            .collect();
        for (half, (comment, prefix)) in halves.iter_mut().zip([(comment.as_str(), ""), ("", "P")]) {
            *half += &format!(
                "{comment}#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{name}({}) -> c_int {{ 0 }}\n",
                arguments.join(", ")
            );
        }
    }
    halves.concat()
}

/// Says in C89's comments what cbindgen says in `//`, which `cc -ansi` does not know; keeps macros
/// together and one empty line elsewhere; and writes `type *name` where a renamed type leaves
/// `type * name`.
fn tidy(header: &str) -> String {
    let mut tidied: Vec<String> = Vec::new();
    let mut lines = header.lines().peekable();
    let mut in_comment = false;
    while let Some(line) = lines.next() {
        let last = tidied.last().map_or("", String::as_str);
        let next = lines.peek().map_or("", |next| next.trim_start());
        if line.is_empty() && (last.is_empty() || last.starts_with("#define") && next.starts_with("#define"))
        {
            continue;
        }
        tidied.push(match line.split_once("//") {
            Some((before, comment)) => {
                let open = if in_comment { "  " } else { "/*" };
                in_comment = before.trim().is_empty() && next.starts_with("//");
                let close = if in_comment { "" } else { " */" };
                format!("{before}{open}{comment}{close}")
            }
            None if line.trim_start().starts_with('*') => line.to_owned(),
            None => line.replace(" * ", " *"),
        });
    }
    tidied.join("\n") + "\n"
}

fn first_difference<'a>(a: &'a str, b: &'a str) -> Option<(usize, (&'a str, &'a str))> {
    let longest = a.lines().count().max(b.lines().count());
    let pad = |text: &'a str| text.lines().chain(std::iter::repeat("(end of file)"));
    (1..).zip(pad(a).zip(pad(b))).take(longest).find(|(_, (old, new))| old != new)
}

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}
