//! The floors of ARCHITECTURE.md: imports run downwards only.
//!
//! The sources are read as the compiler reads them, without comments and literals and without what is compiled for
//! tests alone, and every path in them that begins at `crate`, at `super` or at one of our crates is held to the
//! rules below.

use std::fs;
use std::path::{Path, PathBuf};

/// The floors of the core, from the ground up. A module uses its own floor and those below.
const FLOORS: &[&[&str]] =
    &[&["base"], &["wire", "dgsp"], &["proto", "transport", "job"], &["engine"], &["api"]];
/// These share a floor and do not see each other.
const APART: &[&str] = &["proto", "transport", "job"];
/// These may be used from anywhere,
const ANYWHERE: &[&str] = &["abi", "error", "config"];
/// and use nothing but each other and this.
const GROUND: &str = "base";

/// What `capi` may use of the core.
const CAPI: &[&str] = &[
    "abi",
    "api",
    "error",
    "base::bytes",
    "engine",
    "proto::content::Content",
    "proto::outbox::SendDone",
    "dgsp::vector::Vector",
];
/// What `cdylib` may use of all our crates.
const CDYLIB: &str = "openlapi_capi";

/// Where the kernel's cross-memory calls stand, and where sockets do.
const CROSS_MEMORY: &str = "src/transport/shm/";
const SOCKETS: &[&str] = &["src/job/", "src/transport/udp/"];
/// What a socket begins with.
const SOCKET_NAMES: &[&str] =
    &["UnixStream", "UnixListener", "UnixDatagram", "TcpStream", "TcpListener", "UdpSocket"];

#[test]
fn imports_of_the_core_run_downwards() {
    let sources = sources("src");
    for floor in FLOORS.iter().copied().flatten().chain(ANYWHERE).filter(|floor| **floor != "dgsp") {
        assert!(
            sources.iter().any(|source| source.module.first().is_some_and(|own| own == floor)),
            "no {floor}"
        );
    }
    assert!(
        sources.iter().map(|source| source.paths().len()).sum::<usize>() > 200,
        "hardly a path was found"
    );
    holds(&sources, core_rules);
}

#[test]
fn the_c_interface_uses_the_calls_and_their_types() {
    let sources = sources("capi/src");
    assert!(sources.iter().flat_map(Source::paths).any(|path| path.names[0] == "openlapi"));
    holds(&sources, capi_rules);
}

#[test]
fn the_shared_library_only_hands_on() {
    let sources = sources("cdylib/src");
    assert!(sources.iter().flat_map(Source::paths).any(|path| path.names[0] == CDYLIB));
    holds(&sources, cdylib_rules);
}

fn holds(sources: &[Source], rules: fn(&Source, &PathUsed) -> Option<String>) {
    let broken: Vec<String> = sources.iter().flat_map(|source| source.violations(rules)).collect();
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

fn core_rules(source: &Source, path: &PathUsed) -> Option<String> {
    let names = &path.names;
    if names.iter().any(|name| name.starts_with("process_vm_")) && !source.stands_in(&[CROSS_MEMORY]) {
        return Some(format!("cross-memory calls stand in {CROSS_MEMORY}"));
    }
    let net = names
        .windows(2)
        .any(|pair| pair == ["rustix", "net"] || pair == ["std", "net"] || pair == ["unix", "net"]);
    let socket = SOCKET_NAMES.contains(&path.last()) || path.starts_with(&["libc", "socket"]);
    if (net || socket) && !source.stands_in(SOCKETS) {
        return Some(format!("sockets stand in {SOCKETS:?}"));
    }
    let (user, used) = (source.module.first()?.as_str(), path.in_own_crate()?);
    if user == used {
        return None;
    }
    let Some(level) = level(user) else {
        return match ANYWHERE.contains(&user) {
            true if ANYWHERE.contains(&used) || used == GROUND => None,
            true => Some(format!("`{user}` may use {ANYWHERE:?} and `{GROUND}` alone")),
            false => Some(format!("`{user}` has no floor")),
        };
    };
    match self::level(used) {
        None if ANYWHERE.contains(&used) => None,
        None => Some(format!("`{used}` has no floor")),
        Some(below) if below > level => Some(format!("`{user}` stands below `{used}`")),
        Some(_) if APART.contains(&user) && APART.contains(&used) => {
            Some(format!("`{user}` and `{used}` do not see each other"))
        }
        Some(_) => None,
    }
}

fn level(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

fn capi_rules(_: &Source, path: &PathUsed) -> Option<String> {
    let allowed = |prefix: &&str| {
        path.starts_with(&["openlapi"].into_iter().chain(prefix.split("::")).collect::<Vec<_>>())
    };
    let foreign = path.names[0].starts_with("openlapi") && !CAPI.iter().any(allowed);
    foreign.then(|| format!("capi uses of the core {CAPI:?} alone"))
}

fn cdylib_rules(_: &Source, path: &PathUsed) -> Option<String> {
    let foreign = path.names[0].starts_with("openlapi") && path.names[0] != CDYLIB;
    foreign.then(|| format!("cdylib uses {CDYLIB} alone"))
}

/// A file that is compiled into the product.
struct Source {
    /// From the top folder.
    file: String,
    /// Its place in the tree of modules.
    module: Vec<String>,
    tokens: Vec<Token>,
}

/// A path as the source says it, resolved to the crate's root where it begins at `super`.
struct PathUsed {
    line: usize,
    names: Vec<String>,
}

impl PathUsed {
    /// The module of this very crate that it names.
    fn in_own_crate(&self) -> Option<&str> {
        if self.names[0] == "crate" { self.names.get(1).map(String::as_str) } else { None }
    }

    fn last(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    fn starts_with(&self, prefix: &[&str]) -> bool {
        self.names.len() >= prefix.len() && self.names.iter().zip(prefix).all(|(name, wanted)| name == wanted)
    }
}

impl Source {
    fn new(file: &str, module: &[String], text: &str) -> Self {
        let tokens = without_tests(tokens(text));
        Self { file: file.to_owned(), module: module.to_vec(), tokens }
    }

    fn stands_in(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.file.starts_with(folder))
    }

    fn violations(&self, rules: fn(&Self, &PathUsed) -> Option<String>) -> Vec<String> {
        let judge = |path: &PathUsed| {
            rules(self, path)
                .map(|rule| format!("{}:{}: {}: {rule}", self.file, path.line, path.names.join("::")))
        };
        self.paths().iter().filter_map(judge).collect()
    }

    /// Every path, those in groups one by one.
    fn paths(&self) -> Vec<PathUsed> {
        let mut found = Vec::new();
        // Modules inside of the file, and the depth of braces at which each ends.
        let (mut inner, mut depth): (Vec<usize>, usize) = (Vec::new(), 0);
        let mut at = 0;
        while at < self.tokens.len() {
            match self.tokens[at].text.as_str() {
                "mod" if self.text(at + 2) == "{" => inner.push(depth),
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    if inner.last() == Some(&depth) {
                        inner.pop();
                    }
                }
                name if is_name(name) => {
                    let module = self.module.len() + inner.len();
                    let from = found.len();
                    at = self.expand(at, &[], &mut found);
                    found[from..].iter_mut().for_each(|path| self.resolve(path, module));
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    /// Follows the path at `at` through its groups; answers where it ends.
    fn expand(&self, mut at: usize, prefix: &[String], found: &mut Vec<PathUsed>) -> usize {
        let line = self.tokens[at].line;
        let mut names = prefix.to_vec();
        loop {
            names.push(self.text(at).to_owned());
            at += 1;
            if self.text(at) != "::" {
                break;
            }
            at += 1;
            if self.text(at) == "{" {
                at += 1;
                while self.text(at) != "}" {
                    at = if is_name(self.text(at)) { self.expand(at, &names, found) } else { at + 1 };
                }
                return at + 1;
            }
            if !is_name(self.text(at)) {
                break;
            }
        }
        found.push(PathUsed { line, names });
        at
    }

    /// `super::super::x` in a module of this depth, from the root.
    fn resolve(&self, path: &mut PathUsed, depth: usize) {
        let up = path.names.iter().take_while(|name| *name == "super").count();
        if up != 0 {
            // Only what lies in the file's own folders can be named, and inline modules have no folders.
            let kept = &self.module[..depth.saturating_sub(up).min(self.module.len())];
            let root = std::iter::once("crate".to_owned()).chain(kept.iter().cloned());
            path.names = root.chain(path.names.drain(..).skip(up)).collect();
        }
    }

    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &token.text)
    }
}

/// All files of a crate, found as the compiler finds them: by their `mod` lines.
fn sources(root: &str) -> Vec<Source> {
    let mut all = Vec::new();
    read(Path::new(root).join("lib.rs"), &[], Path::new(root), &mut all);
    all
}

fn read(file: PathBuf, module: &[String], folder: &Path, all: &mut Vec<Source>) {
    let path = openlapi_tests::workspace().join(&file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let source = Source::new(file.to_str().expect("names in ASCII"), module, &text);
    for child in source.tokens.windows(3).filter(|three| three[0].text == "mod" && three[2].text == ";") {
        let name = &child[1].text;
        let alone = folder.join(format!("{name}.rs"));
        let inside = folder.join(name);
        let file =
            if openlapi_tests::workspace().join(&alone).exists() { alone } else { inside.join("mod.rs") };
        let module: Vec<_> = module.iter().chain([name]).cloned().collect();
        read(file, &module, &inside, all);
    }
    all.push(source);
}

/// A name, a mark, or `::`.
#[derive(Clone, Debug)]
struct Token {
    line: usize,
    text: String,
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The source without comments, literals, lifetimes and blanks.
fn tokens(source: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => comment(rest),
            '"' => string(rest),
            '\'' => quoted(rest),
            _ if raw_string(rest).is_some() => raw_string(rest).unwrap_or(1),
            'b' | 'c' if rest[1..].starts_with('"') => 1 + string(&rest[1..]),
            'b' if rest[1..].starts_with('\'') => 1 + quoted(&rest[1..]),
            _ if first.is_alphanumeric() || first == '_' => {
                rest.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(rest.len())
            }
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let text = &rest[..len];
        let kept = is_name(text) && !text.contains(['"', '\'']) || text == "::" || text.len() == 1;
        if kept && !text.trim().is_empty() && !text.starts_with(|first: char| first.is_ascii_digit()) {
            found.push(Token { line, text: text.to_owned() });
        }
        line += text.matches('\n').count();
        rest = &rest[len..];
    }
    found
}

fn comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    loop {
        match &rest[at..] {
            "" => return at,
            open if open.starts_with("/*") => (depth, at) = (depth + 1, at + 2),
            close if close.starts_with("*/") => (depth, at) = (depth - 1, at + 2),
            other => at += other.chars().next().map_or(1, char::len_utf8),
        }
        if depth == 0 {
            return at;
        }
    }
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, next) in rest.char_indices().skip(1) {
        match next {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character, or only the mark of a lifetime.
fn quoted(rest: &str) -> usize {
    let mut next = rest.char_indices().skip(1);
    match (next.next(), next.next()) {
        (Some((_, '\\')), _) => 2 + rest[2..].find('\'').map_or(0, |at| if at == 0 { 2 } else { at + 1 }),
        (_, Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

fn raw_string(rest: &str) -> Option<usize> {
    let marks = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('r')?;
    let fences = marks.len() - marks.trim_start_matches('#').len();
    let body = marks[fences..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(fences));
    Some(rest.len() - body.len() + body.find(&end)? + end.len())
}

/// Leaves out every item that has `#[cfg(test)]` before it.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let marked = tokens[at..].iter().map(|token| token.text.as_str()).take(MARK.len()).eq(MARK);
        at = if marked {
            item_end(&tokens, at)
        } else {
            kept.push(tokens[at].clone());
            at + 1
        };
    }
    kept
}

/// An item ends with a semicolon or with the brace that closes it, outside of all brackets.
fn item_end(tokens: &[Token], from: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 && (token.text == ";" || token.text == "}") {
            return at + 1;
        }
    }
    tokens.len()
}

/// The rules that a file of this name and text breaks.
fn judged(file: &str, text: &str, rules: fn(&Source, &PathUsed) -> Option<String>) -> Vec<String> {
    let module: Vec<_> = file
        .trim_start_matches("src/")
        .trim_end_matches(".rs")
        .trim_end_matches("/mod")
        .split('/')
        .map(str::to_owned)
        .collect();
    Source::new(file, &module, text).violations(rules)
}

#[test]
fn a_line_that_runs_up_is_found() {
    let broken = [
        ("src/base/ring.rs", "use crate::wire::packet::Head;"),
        ("src/wire/frame.rs", "use crate::proto::Link;"),
        ("src/dgsp/run.rs", "use crate::transport::Task;"),
        ("src/proto/ops.rs", "use crate::{base::rng, engine::stats};"),
        ("src/proto/ops.rs", "use crate::transport::Task;"),
        ("src/transport/mem.rs", "fn f() { let x = crate::proto::outbox::Posted::Free; }"),
        ("src/transport/shm/mod.rs", "use crate::job::Member;"),
        ("src/job/mod.rs", "use super::transport;"),
        ("src/job/identity/mod.rs", "use super::super::proto as below;"),
        ("src/engine/wait.rs", "pub(crate) use crate::api::fence;"),
        ("src/engine/wait.rs", "mod inner { fn f() { println!(\"{}\", super::super::super::api::X); } }"),
        ("src/abi/xfer.rs", "use crate::wire::frame::Task;"),
        ("src/error.rs", "use crate::engine::context::Context;"),
        ("src/engine/wait.rs", "use crate::attic::old;"),
        ("src/attic/old.rs", "use crate::base::rng;"),
        ("src/engine/bulk.rs", "fn f() { unsafe { libc::process_vm_readv(0) } }"),
        ("src/transport/mem.rs", "use rustix::net::socketpair;"),
        ("src/engine/notifier.rs", "use std::os::unix::net::UnixStream;"),
        ("src/engine/notifier.rs", "use std::{io, net::TcpStream};"),
        ("src/transport/shm/mod.rs", "fn f() { unsafe { libc::socket(1, 2, 3) } }"),
    ];
    for (file, text) in broken {
        assert_eq!(judged(file, text, core_rules).len(), 1, "{file}: {text}");
    }
    assert_eq!(judged("src/calls/put.rs", "use openlapi::{abi::*, transport::shm};", capi_rules).len(), 1);
    assert_eq!(judged("src/calls/put.rs", "use openlapi::proto::outbox::Outbox;", capi_rules).len(), 1);
    assert_eq!(judged("src/lib.rs", "pub use openlapi::api;", cdylib_rules).len(), 1);
}

#[test]
fn lines_that_run_down_are_let_through() {
    let fine = [
        ("src/api/fence.rs", "use super::address::collective; use crate::engine::context::{Core, Held};"),
        ("src/engine/bulk.rs", "use crate::{proto, transport, job, wire, dgsp, base, abi, error, config};"),
        ("src/engine/bulk.rs", "use super::context::Held; pub(crate) fn f() {}"),
        ("src/job/mod.rs", "use rustix::net::socketpair; use std::os::unix::net::UnixStream;"),
        ("src/transport/shm/attach.rs", "fn f() { unsafe { libc::process_vm_readv(0) } }"),
        ("src/error.rs", "use crate::abi; use crate::base::rng::Rng; use crate::config::table;"),
        (
            "src/base/mod.rs",
            "//! See [`crate::engine`].\n/* crate::api /* crate::api */ */ const X: &str = \"crate::api\";",
        ),
        (
            "src/base/mod.rs",
            "const X: &str = r#\"\" crate::api \"#; const Y: char = '\"'; fn f<'a>() {} const Z: u8 = b'\\'';",
        ),
        (
            "src/base/mod.rs",
            "#[cfg(test)] #[path = \"x.rs\"] mod tests { use crate::api::fence; fn f(x: [u8; 2]) {} }",
        ),
    ];
    for (file, text) in fine {
        assert_eq!(judged(file, text, core_rules), Vec::<String>::new(), "{text}");
    }
    let after = "#[cfg(test)] use crate::api::{fence, check}; fn f() { let a = super::wire::frame::X; }";
    let found = judged("src/base/mod.rs", after, core_rules);
    assert!(
        found.len() == 1 && found[0].contains("crate::wire::frame::X"),
        "after an item for tests: {found:?}"
    );
    assert!(judged("src/calls/put.rs", "use openlapi::{abi::*, base::bytes::Piece};", capi_rules).is_empty());
}
