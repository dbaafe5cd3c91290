//! The files of a crate, and the paths in them.

use crate::tokens::{Token, is_name, item_end, tokens, without_tests};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A file that is compiled into the product.
pub struct Source {
    /// From the top folder.
    pub file: String,
    /// The file's place in the tree of modules.
    pub module: Vec<String>,
    tokens: Vec<Token>,
}

/// A method that a trait declares.
#[derive(Debug, PartialEq, Eq)]
pub struct Method {
    pub name: String,
    pub has_body: bool,
}

/// A path as the source says it, resolved to the crate's root where it begins at `super`.
pub struct PathUsed {
    pub line: usize,
    pub names: Vec<String>,
}

impl PathUsed {
    /// The module of this very crate that it names.
    pub fn in_own_crate(&self) -> Option<&str> {
        if self.names[0] == "crate" { self.names.get(1).map(String::as_str) } else { None }
    }

    pub fn last(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    pub fn starts_with(&self, prefix: &[&str]) -> bool {
        self.names.len() >= prefix.len() && self.names.iter().zip(prefix).all(|(name, wanted)| name == wanted)
    }
}

impl Source {
    pub fn new(file: &str, module: &[String], text: &str) -> Self {
        let tokens = without_tests(tokens(text));
        Self { file: file.to_owned(), module: module.to_vec(), tokens }
    }

    pub fn stands_in(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.file.starts_with(folder))
    }

    pub fn violations(&self, rules: fn(&Self, &PathUsed) -> Option<String>) -> Vec<String> {
        let judge = |path: &PathUsed| {
            rules(self, path)
                .map(|rule| format!("{}:{}: {}: {rule}", self.file, path.line, path.names.join("::")))
        };
        self.paths().iter().filter_map(judge).collect()
    }

    /// The lines where a method of this name is called.
    pub fn calls_of_method(&self, name: &str) -> Vec<usize> {
        let call = [".", name, "("];
        let calls = self.tokens.windows(3).filter(|three| three.iter().map(|token| &token.text).eq(call));
        calls.map(|three| three[1].line).collect()
    }

    /// The methods that the traits of the file declare.
    pub fn methods_of_traits(&self) -> Vec<Method> {
        let (mut found, mut depth, mut inside) = (Vec::new(), 0, None);
        let mut at = 0;
        while at < self.tokens.len() {
            match self.text(at) {
                "trait" if inside.is_none() => inside = Some(depth),
                "fn" if inside == Some(depth - 1) => {
                    let end = item_end(&self.tokens, at);
                    let has_body = self.text(end - 1) == "}";
                    found.push(Method { name: self.text(at + 1).to_owned(), has_body });
                    at = end;
                    continue;
                }
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inside = inside.filter(|&outside| outside < depth);
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    /// Where these names stand.
    pub fn names_among(&self, names: &BTreeSet<String>) -> Vec<(usize, String)> {
        let found = self.tokens.iter().filter(|token| names.contains(&token.text));
        found.map(|token| (token.line, token.text.clone())).collect()
    }

    /// Every path, those in groups one by one.
    pub fn paths(&self) -> Vec<PathUsed> {
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

    /// Follows the path at `at` through its groups; returns where it ends.
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
            // Only modules in the file's own folders can be named, and inline modules
            // have no folders.
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
pub fn sources(root: &str) -> Vec<Source> {
    sources_of(&format!("{root}/lib.rs"))
}

/// All files of the library or program that begins with this file.
pub fn sources_of(file: &str) -> Vec<Source> {
    let file = Path::new(file);
    let mut all = Vec::new();
    read(file.to_owned(), &[], file.parent().expect("a folder"), &mut all);
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
