//! The documents: links lead somewhere, programs are those of the samples, messages and names are
//! those of the code.

use openlapi_tests::{Job, stage, workspace};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below a folder with one of these endings.
fn below(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            below(&path, endings, found);
        } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
            found.push(path);
        }
    }
}

/// The documents of a folder that has README.md and docs, sources or installation.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
        .map(|name| folder.join(name))
        .to_vec();
    below(&folder.join("docs"), &[".md"], &mut found);
    assert!(found.len() > 20, "{found:?}");
    found
}

/// A text without its code.
fn prose(text: &str) -> String {
    let mut code = false;
    let mut lines = String::new();
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        if !code && !fence {
            lines.extend([line, "\n"]);
        }
    }
    lines
}

/// The targets of a text's links.
fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    let after = text.split("](").skip(1);
    after.map(|rest| rest.split(')').next().unwrap_or_default().trim().to_owned()).collect()
}

/// The anchors of a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

fn check_links(folder: &Path) {
    let mut broken = Vec::new();
    for page in documents(folder) {
        let text = read(&page);
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target =
                if file.is_empty() { page.clone() } else { page.parent().expect("a folder").join(file) };
            let leads = target.exists() && (anchor.is_empty() || anchors(&read(&target)).contains(anchor));
            if !leads {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn links_lead_somewhere() {
    check_links(workspace());
}

#[test]
fn links_of_installed_documents_lead_somewhere() {
    check_links(&stage().join("share/doc/openlapi"));
}

/// Files that are made when something runs, and a user's own.
const MADE: [&str; 6] = [
    "fuzz/found",
    "fuzz/artifacts",
    "target/sanitize",
    "prof/report.html",
    "prof/trace.json",
    "DIR/report.html",
];

/// The words of a text's code that are paths: with a slash, or the name of a source.
/// Placeholders are capitals.
fn paths(text: &str) -> Vec<String> {
    let prose = prose(text);
    let words = prose.split('`').skip(1).step_by(2).flat_map(str::split_whitespace);
    let ends = [',', ';', ':', '(', ')', '"', '\''];
    let trimmed = words.map(|word| word.trim_matches(ends).trim_end_matches(['.', '/']));
    let is_path = |word: &&str| {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
        let part = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.' && part.len() > 2)
                && (part.contains('.') || part.chars().any(|c| c.is_ascii_lowercase()) || part == "README")
        };
        plain && (word.contains('/') && word.split('/').all(part) || word.ends_with(".rs"))
    };
    trimmed.filter(is_path).filter(|word| !MADE.contains(word)).map(str::to_owned).collect()
}

/// All files and folders of the sources, with a slash in front of each part.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default();
        if name == "target" || name == ".git" {
            continue;
        }
        let inside = path.strip_prefix(workspace()).expect("it is in the sources");
        found.push(format!("/{}", inside.display()));
        if path.is_dir() && !path.is_symlink() {
            sources(&path, found);
        }
    }
}

/// A path may leave out where it begins, and the ending of a module; it may be that of an
/// installed file.
#[test]
fn paths_of_the_documents_exist() {
    let mut files = Vec::new();
    sources(workspace(), &mut files);
    let exists = |word: &str| {
        let ends = [format!("/{word}"), format!("/{word}.rs")];
        files.iter().any(|file| ends.iter().any(|end| file.ends_with(end.as_str())))
            || stage().join(word).exists()
    };
    let mut dead = Vec::new();
    let mut count = 0;
    for page in documents(workspace()).iter().filter(|page| !page.ends_with("CHANGELOG.md")) {
        for word in paths(&read(page)) {
            count += 1;
            if !exists(&word) {
                dead.push(format!("{}: {word}", page.display()));
            }
        }
    }
    assert!(count > 200, "hardly a path was found: {count}");
    assert!(dead.is_empty(), "paths that do not exist:\n{}", dead.join("\n"));
}

#[test]
fn the_index_has_every_page() {
    let docs = workspace().join("docs");
    let index = links(&read(&docs.join("README.md")));
    let pages = fs::read_dir(&docs).expect("the documents").map(|entry| entry.expect("an entry").file_name());
    for page in pages
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name != "README.md" && !name.ends_with(".png"))
    {
        assert!(index.contains(&page), "docs/README.md has no line for {page}");
    }
}

/// Each program is on the page as it is in the samples, where it is compiled and run.
#[test]
fn the_programs_of_the_tutorial_are_those_of_the_samples() {
    let page = read(&workspace().join("docs/tutorial.md"));
    let mut blocks: Vec<_> =
        page.split("```c\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    for name in ["hello.c", "check.h", "put.c", "message.c", "work.c"] {
        let program = read(&workspace().join(format!("samples/tutorial/{name}")));
        let found = blocks.iter().position(|block| *block == program);
        blocks.remove(found.unwrap_or_else(|| panic!("docs/tutorial.md does not have {name} as it is")));
    }
    assert!(blocks.is_empty(), "{blocks:?}");
}

/// All texts of the library and of the tools, in one; what is filled in is `…`.
fn messages() -> String {
    let mut files = Vec::new();
    below(&workspace().join("src"), &[".rs"], &mut files);
    below(&workspace().join("runtime/src"), &[".rs"], &mut files);
    below(&workspace().join("tools/src"), &[".rs"], &mut files);
    let mut text = String::new();
    for file in files {
        let source = read(&file);
        let mut rest = source.as_str();
        // A text goes on in the next line without its indentation.
        while let Some((before, after)) = rest.split_once("\\\n") {
            text.push_str(before);
            rest = after.trim_start();
        }
        text.push_str(rest);
        text.push('\n');
    }
    let mut filled = String::new();
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => {
                depth -= 1;
                filled.push('…');
            }
            '\n' => {
                depth = 0;
                filled.push(c);
            }
            _ if depth == 0 => filled.push(c),
            _ => {}
        }
    }
    filled
}

#[test]
fn the_messages_of_troubleshooting_exist() {
    let page = read(&workspace().join("docs/troubleshooting.md"));
    let headings: Vec<_> =
        page.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).collect();
    assert!(headings.len() > 30, "{headings:?}");
    let messages = messages();
    for heading in headings {
        for fragment in
            heading.split('…').map(|part| part.trim_matches([' ', '"'])).filter(|part| part.len() > 6)
        {
            assert!(messages.contains(fragment), "no message has \"{fragment}\": {heading}");
        }
    }
}

/// Flags and variables on the page about porting are those that poe and the library know.
#[test]
fn the_flags_and_variables_of_porting_exist() {
    let page = read(&workspace().join("docs/porting.md"));
    let help = Job::direct(stage().join("bin/poe")).arg("-h").arg("all").run();
    let variables = Job::direct(stage().join("bin/lapi_info")).run();
    let known = format!("{}{}", help.ok().stdout, variables.stdout);
    let words = |text: &str| -> BTreeSet<String> {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c))).map(str::to_owned).collect()
    };
    let known = words(&known);
    let (_, after) = page.split_once("## poe").expect("a part about poe");
    let (flags, rest) = after.split_once("## Variables").expect("a part about variables");
    for line in flags.lines().filter(|line| line.starts_with("| `-") || line.starts_with("| new:")) {
        for flag in line.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2) {
            let flag = flag.split(' ').next().unwrap_or_default();
            assert!(known.contains(flag), "poe has no flag {flag}");
        }
    }
    let (rows, _) = rest.split_once("\n## ").expect("a part after that");
    let mut count = 0;
    for name in
        rows.split('`').skip(1).step_by(2).filter(|name| name.starts_with("MP_") || name.starts_with("LAPI_"))
    {
        let name = name.split('=').next().unwrap_or_default();
        assert!(known.contains(name), "neither poe nor lapi_info has {name}");
        count += 1;
    }
    assert!(count > 20, "{count}");
}

/// The text of a header of the library, without its comments.
fn header(name: &str) -> String {
    let header = read(&workspace().join("include").join(name));
    let parts = header.split("/*").enumerate();
    parts
        .map(|(at, part)| if at == 0 { part } else { part.split_once("*/").map_or("", |(_, rest)| rest) })
        .collect()
}

/// The members of the enumerations of `lapi.h` and `css_shared.h`, what they define, and the calls.
fn names_of_the_header() -> BTreeSet<String> {
    let text = format!("{}\n{}", header("css_shared.h"), header("lapi.h"));
    let bodies =
        text.split("typedef enum ").skip(1).filter_map(|rest| rest.split_once('{')?.1.split_once('}'));
    let members = bodies.flat_map(|(body, _)| body.split(','));
    let members = members.map(|member| member.split('=').next().unwrap_or_default().trim().to_owned());
    let calls = text.split("\nint LAPI_").skip(1).filter_map(|rest| rest.split_once('('));
    let calls = calls.map(|(name, _)| format!("LAPI_{name}"));
    // What has no value guards a header; what is undefined again serves the header itself, and so
    // does a name with underscores in front.
    let defined = text.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once(' '));
    let defined = defined.map(|(name, _)| name.to_owned()).filter(|name| {
        !name.starts_with("__") && !text.lines().any(|line| line.trim() == format!("#undef {name}"))
    });
    members.chain(calls).chain(defined).filter(|name| !name.is_empty()).collect()
}

/// The rows of the names: each has names, and what becomes of them.
fn rows_of_names() -> Vec<(Vec<String>, String)> {
    let page = read(&workspace().join("docs/conformance.md"));
    let (_, section) = page.split_once("\n## Names of lapi.h\n").expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" |"));
    rows.map(|(names, becomes)| {
        let becomes = becomes.trim_end_matches('|').trim();
        assert!(becomes.len() > 3, "{names}: what becomes of it");
        let names = names.split('`').map(str::trim).filter(|name| !name.is_empty());
        (names.map(str::to_owned).collect(), becomes.to_owned())
    })
    .collect()
}

#[test]
fn every_name_of_the_header_stands_in_the_conformance_table() {
    let listed: Vec<String> = rows_of_names().into_iter().flat_map(|(names, _)| names).collect();
    let names = names_of_the_header();
    assert!(names.len() > 250, "{names:?}");
    assert_eq!(listed.len(), listed.iter().collect::<BTreeSet<_>>().len(), "a name stands there once");
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), names);
}

/// Whether a text is of tests alone, by the path of its file.
fn is_of_tests(path: &Path) -> bool {
    let path = path.strip_prefix(workspace()).expect("it is in the sources");
    path.components().any(|part| part.as_os_str() == "tests")
        || path.file_stem().is_some_and(|name| name.to_string_lossy().ends_with("tests"))
}

/// The codes that no call returns are those that the library never names, but where it defines
/// them.
#[test]
fn the_codes_that_are_never_returned_are_those_of_the_table() {
    let mut files = Vec::new();
    for folder in ["src", "runtime/src", "capi/src"] {
        below(&workspace().join(folder), &[".rs"], &mut files);
    }
    files.retain(|file| !is_of_tests(file) && !file.ends_with("src/abi/error_codes.rs"));
    let mut named = BTreeSet::new();
    for file in &files {
        let text = read(file);
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        named.extend(code.flat_map(|line| {
            line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map(str::to_owned)
        }));
    }
    let mut never = 0;
    for (names, becomes) in rows_of_names() {
        let (is_never, is_returned) =
            (becomes.starts_with("never returned"), becomes.starts_with("returned where"));
        for name in names.iter().filter(|_| is_never || is_returned) {
            never += usize::from(is_never);
            assert_eq!(named.contains(name), is_returned, "{name}: {becomes}");
        }
    }
    assert!(never > 5, "{never}");
}

/// Whether a line of code has a fence, or an atomic with an order stronger than Relaxed.
fn is_ordered(line: &str) -> bool {
    let orders = ["Release", "Acquire", "AcqRel", "SeqCst"].map(|order| format!("Ordering::{order}"));
    orders.iter().any(|order| line.contains(order)) || line.contains("sfence(")
}

/// Each file that orders memory stands on the page about that: by its path, or in `src/base` by the
/// name of its module, which has a model.
#[test]
fn the_page_on_memory_order_names_every_file_that_orders_memory() {
    let page = read(&workspace().join("docs/design/0026-memory-order.md"));
    let mut files = Vec::new();
    sources(workspace(), &mut files);
    let files = files.iter().filter(|file| file.ends_with(".rs")).map(|file| workspace().join(&file[1..]));
    let mut count = 0;
    let mut missing = Vec::new();
    for file in files.filter(|file| !is_of_tests(file)) {
        let path = file.strip_prefix(workspace()).expect("it is in the sources");
        let others = ["vendor", "models", "testing", "conformance", "simulation", "benches", "examples"];
        if path.components().any(|part| others.iter().any(|other| part.as_os_str() == *other)) {
            continue;
        }
        let text = read(&file);
        let text = text.split("\nmod tests {").next().unwrap_or_default();
        let mut code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        if !code.any(is_ordered) {
            continue;
        }
        count += 1;
        let module = path.strip_prefix("src/base").ok().and_then(|inner| inner.iter().next());
        let module = module.map(|name| name.to_string_lossy().trim_end_matches(".rs").to_owned());
        let named = page.contains(&format!("`{}`", path.display()))
            || module.is_some_and(|module| page.contains(&format!("`{module}`")));
        if !named {
            missing.push(path.display().to_string());
        }
    }
    assert!(count > 50, "{count}");
    assert!(missing.is_empty(), "files that order memory, and are not on the page:\n{}", missing.join("\n"));
}

/// The words of a list in a shell script, without its comments.
fn list_of(script: &str, name: &str) -> Vec<String> {
    let list = script.split_once(&format!("\n{name}=(\n")).and_then(|(_, rest)| rest.split_once("\n)"));
    let lines = list.unwrap_or_else(|| panic!("no list {name}")).0.lines().map(str::trim);
    lines.filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// Whether a test of this name, with its modules, is in a crate (a folder), or in a file of tests.
fn has_test(root: &Path, name: &str) -> bool {
    let mut modules: Vec<&str> = name.split("::").collect();
    let call = format!("fn {}(", modules.pop().unwrap_or_default());
    let folder = modules.iter().fold(root.to_owned(), |folder, module| folder.join(module));
    let mut files = match modules.is_empty() {
        true => vec![root.to_owned(), root.join("main.rs")],
        false => vec![folder.with_extension("rs"), folder.join("mod.rs")],
    };
    if let (Some(&"tests"), Some(above)) = (modules.last(), folder.parent()) {
        files.extend([above.with_extension("rs"), above.join("mod.rs")]);
        // Modules of one file have their tests beside them.
        files.push(PathBuf::from(format!("{}_tests.rs", above.display())));
    }
    files.iter().any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(&call)))
}

/// They are left out by their names: one that is wrong leaves out nothing.
#[test]
fn the_tests_that_qemu_cannot_run_exist() {
    let script = read(&workspace().join("ci/test-cross.sh"));
    let crates = ["src", "runtime/src", "prof/src", "fortran/src"].map(|folder| workspace().join(folder));
    let programs = fs::read_dir(workspace().join("tests/tests")).expect("the folder of tests");
    let programs: Vec<PathBuf> = programs.map(|entry| entry.expect("an entry").path()).collect();
    let mut unknown = Vec::new();
    for (list, roots) in [
        ("unit_tests_without_qemu", &crates[..]),
        ("long_unit_tests", &crates),
        ("programs_without_qemu", &programs),
        ("programs_without_qemu_powerpc64le", &programs),
    ] {
        let names = list_of(&script, list);
        assert!(!names.is_empty(), "{list}");
        unknown.extend(names.into_iter().filter(|name| !roots.iter().any(|root| has_test(root, name))));
    }
    assert!(unknown.is_empty(), "ci/test-cross.sh has names of no test:\n{}", unknown.join("\n"));
}
