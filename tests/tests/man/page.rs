//! The source of a man page (mdoc), parsed as far as the tests need.

use std::fs;
use std::path::PathBuf;

use openlapi_tests::workspace;

/// One page.
pub struct Page {
    /// The page's name, `LAPI_Put`.
    pub name: String,
    /// The page's section: 1, 3 or 7.
    pub section: char,
    pub path: PathBuf,
    lines: Vec<String>,
}

/// All pages of the sections, by name.
pub fn pages(sections: &str) -> Vec<Page> {
    let mut pages: Vec<Page> = sections.chars().flat_map(of_section).collect();
    pages.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!pages.is_empty(), "there are pages");
    pages
}

fn of_section(section: char) -> impl Iterator<Item = Page> {
    let dir = workspace().join(format!("packaging/man/man{section}"));
    fs::read_dir(&dir).expect("the folder is there").map(move |entry| {
        let path = entry.expect("the folder can be read").path();
        let text = fs::read_to_string(&path).expect("a page is text");
        let name = path.file_stem().expect("a page has a name").to_string_lossy().into_owned();
        assert_eq!(path.extension().and_then(|it| it.to_str()), Some(&*section.to_string()), "{name}");
        Page { name, section, path, lines: text.lines().map(str::to_owned).collect() }
    })
}

/// The page of that name.
#[track_caller]
pub fn page(name: &str, section: char) -> Page {
    let mut pages = pages(&section.to_string());
    let at = pages.iter().position(|page| page.name == name).expect("the page is there");
    pages.swap_remove(at)
}

impl Page {
    /// All lines of its source.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// The lines of a section, which must be there.
    #[track_caller]
    pub fn section(&self, title: &str) -> Vec<&str> {
        let heading = format!(".Sh {title}");
        let mut lines = self.lines().skip_while(|line| *line != heading);
        assert!(lines.next().is_some(), "{}: there is no section {title}", self.name);
        lines.take_while(|line| !line.starts_with(".Sh ")).collect()
    }

    /// What a section shows as it is (`.Bd -literal`), a text for each block.
    #[track_caller]
    pub fn shown(&self, title: &str) -> Vec<String> {
        let mut blocks: Vec<String> = Vec::new();
        let mut inside = false;
        for line in self.section(title) {
            if line.starts_with(".Bd -literal") {
                inside = true;
                blocks.push(String::new());
            } else if line == ".Ed" {
                inside = false;
            } else if let (true, Some(block)) = (inside, blocks.last_mut()) {
                block.push_str(&self.unescaped(line));
                block.push('\n');
            }
        }
        blocks
    }

    /// The return type and the parameters of the C prototype.
    #[track_caller]
    pub fn prototype(&self) -> (String, Vec<String>) {
        let lines = self.section("SYNOPSIS");
        let after = |macro_: &'static str| {
            lines
                .iter()
                .filter_map(move |line| line.strip_prefix(macro_))
                .map(|it| it.trim_matches('"').to_owned())
        };
        assert_eq!(after(".In ").collect::<Vec<_>>(), ["lapi.h"], "{}", self.name);
        assert_eq!(after(".Fo ").collect::<Vec<_>>(), [&*self.name]);
        (after(".Ft ").collect(), after(".Fa ").collect())
    }

    /// The first argument of a macro, at the start of a line or after `.It`.
    pub fn arguments(&self, macro_: &str) -> Vec<&str> {
        self.lines()
            .filter_map(|line| line.strip_prefix(".It ").or_else(|| line.strip_prefix('.')))
            .filter_map(|line| line.strip_prefix(macro_)?.strip_prefix(' '))
            .filter_map(|words| words.split(' ').find(|word| !matches!(*word, "(" | "[")))
            // So a page writes what is the name of a macro too.
            .map(|word| word.trim_start_matches("\\&"))
            .collect()
    }

    /// Undoes what a page writes for characters that roff would take for its own.
    fn unescaped(&self, line: &str) -> String {
        let pairs = [
            ("\\&", ""),
            ("\\-", "-"),
            ("\\(aq", "'"),
            ("\\(ga", "`"),
            ("\\(ha", "^"),
            ("\\(ti", "~"),
            ("\\e", "\\"),
        ];
        let mut text = String::new();
        let mut rest = line;
        while let Some(at) = rest.find('\\') {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            let known = pairs.iter().find(|(written, _)| rest.starts_with(written));
            let (written, meant) = known.unwrap_or_else(|| panic!("{}: not understood: {line}", self.name));
            text.push_str(meant);
            rest = &rest[written.len()..];
        }
        text + rest
    }
}
