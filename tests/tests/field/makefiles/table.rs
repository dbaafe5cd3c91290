//! The table of options: the wrappers do what it says, the page has all of it, and every
//! driver is installed.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use super::{ok, refused, wrapper};
use openlapi_tests::{stage, workspace};

/// A line of the table.
struct Line {
    languages: Vec<String>,
    options: Vec<String>,
    action: String,
    text: String,
}

/// A line about drivers.
struct Driver {
    names: Vec<String>,
    language: String,
    options: String,
    text: String,
    is_installed: bool,
}

/// The table, by headings.
struct Table {
    drivers: Vec<Driver>,
    sections: Vec<(String, Vec<Line>)>,
}

fn table() -> Table {
    let text = fs::read_to_string(workspace().join("packaging/compat/xl-options")).expect("the table");
    let mut table = Table { drivers: Vec::new(), sections: Vec::new() };
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(title) = line.strip_prefix("## ") {
            table.sections.push((title.to_owned(), Vec::new()));
        } else if !line.starts_with('#') {
            let fields: Vec<&str> = line.split('|').map(str::trim).collect();
            if let ["driver", names, language, options, text] = fields[..] {
                let mut names = words(names);
                let is_installed = names[0] != "-";
                names.retain(|name| name != "-");
                let (language, options, text) = (language.to_owned(), options.to_owned(), text.to_owned());
                table.drivers.push(Driver { names, language, options, text, is_installed });
            } else if let [languages, options, action, text] = fields[..] {
                assert!(!text.is_empty() && !action.is_empty(), "{line}");
                table.sections.last_mut().expect("a heading before the first line").1.push(Line {
                    languages: words(languages),
                    options: words(options),
                    action: action.to_owned(),
                    text: text.to_owned(),
                });
            } else {
                panic!("neither a driver nor an option: {line}");
            }
        }
    }
    assert!(table.drivers.len() > 10 && table.sections.len() > 8);
    table
}

/// An option that fits a pattern.
fn example(pattern: &str) -> String {
    match pattern.split_once('[') {
        Some((before, rest)) => format!("{before}{}", &rest[..1]),
        None => pattern.replace('*', "x"),
    }
}

/// The driver by which the lines of a language are tried, and a source.
const TRIED: [(&str, &str); 3] = [("c", "mpcc_r"), ("c++", "mpCC_r"), ("fortran", "mpfort")];

/// All options of the table for a language, with their lines.
fn options<'a>(table: &'a Table, language: &str) -> Vec<(String, &'a Line)> {
    let fits = |line: &Line| {
        let also = if language == "fortran" { "gfortran" } else { language };
        line.languages.iter().any(|of| of == "all" || of == language || of == also)
    };
    let lines = table.sections.iter().flat_map(|(_, lines)| lines).filter(|line| fits(line));
    lines.flat_map(|line| line.options.iter().map(move |option| (example(option), line))).collect()
}

#[test]
fn every_option_is_translated_dropped_or_refused_as_the_table_says() {
    let table = table();
    for (language, driver) in TRIED {
        let options = options(&table, language);
        assert!(options.len() > 300, "{language}: {}", options.len());
        let of = |action: &str| -> Vec<&(String, &Line)> {
            options.iter().filter(|(_, line)| line.action == action).collect()
        };
        // -M is IBM's beside -c.
        let shown = |options: &str| wrapper(driver, workspace(), &format!("-show -c {options} file.o"));
        let join = |options: &[&(String, &Line)]| {
            options.iter().map(|(option, _)| option.as_str()).collect::<Vec<_>>().join(" ")
        };
        let plain = ok(&shown(""));

        let dropped = shown(&join(&of("drop")));
        assert_eq!(ok(&dropped), plain, "{language}: what is dropped leaves nothing");
        assert!(dropped.stderr.is_empty(), "{}", String::from_utf8_lossy(&dropped.stderr));

        let warned = shown(&join(&of("warn")));
        assert_eq!(ok(&warned), plain, "{language}");
        let said = String::from_utf8_lossy(&warned.stderr).into_owned();
        for (option, line) in of("warn") {
            assert!(said.contains(&format!("{driver}: {option} is dropped: {}\n", line.text)), "{said}");
        }

        let said = refused(&shown(&join(&of("refuse"))));
        for (option, line) in of("refuse") {
            assert!(said.contains(&format!("{driver}: {option}: {}\n", line.text)), "{option} in {said}");
        }

        // Options of the compiler, each after the other.
        let given: Vec<_> = options
            .iter()
            .filter(|(_, line)| line.action.starts_with(['-', '!']) && !line.action.contains("-m32"))
            .collect();
        let mut expected: Vec<String> = Vec::new();
        for word in given.iter().flat_map(|(_, line)| line.action.split_whitespace()) {
            match word.strip_prefix('!') {
                Some(pattern) => expected.retain(|before| !fits(pattern, before)),
                None => expected.push(word.replace('%', "x")),
            }
        }
        let command = ok(&shown(&join(&given))).replace('\'', "");
        assert!(command.contains(&format!(" {} ", expected.join(" "))), "{command}\n{expected:#?}");
    }
}

/// Whether a word fits a pattern of an action.
fn fits(pattern: &str, word: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => word.starts_with(begin.trim_end_matches('?')) && word.len() >= begin.len(),
        None => word == pattern,
    }
}

/// IBM's compilers take the last of options that contradict each other.
#[test]
fn an_option_takes_back_what_one_before_it_has_brought() {
    let table = table();
    for (language, driver) in TRIED {
        let options = options(&table, language);
        let shown = |options: &str| ok(&wrapper(driver, workspace(), &format!("-show {options} file.o")));
        let mut count = 0;
        for at in 0..options.len() {
            let (option, line) = &options[at];
            // One option of each line.
            if at > 0 && std::ptr::eq(options[at - 1].1, *line) {
                continue;
            }
            let taken: Vec<_> = line.action.split(' ').filter_map(|word| word.strip_prefix('!')).collect();
            let is_taken = |word: &str| taken.iter().any(|pattern| fits(pattern, word));
            let is_taken_back = |other: &Line| {
                let mut brought = other.action.split(' ').filter(|word| !word.starts_with('!')).peekable();
                !std::ptr::eq(other, *line) && brought.peek().is_some() && brought.all(is_taken)
            };
            let before = options.iter().filter(|(_, other)| is_taken_back(other));
            let before: Vec<_> = before.map(|(option, _)| option.as_str()).collect();
            if !before.is_empty() {
                assert_eq!(shown(&format!("{} {option}", before.join(" "))), shown(option), "{before:?}");
                count += 1;
            }
        }
        assert!(count > 15, "{language}: {count}");
    }
    // What stands behind it stays.
    let command = ok(&wrapper("mpcc_r", workspace(), "-show -qenum=int -qenum=small -O2 file.o"));
    assert!(command.starts_with("cc -fshort-enums -O2 file.o "), "{command}");
    // The word behind -Xlinker is the linker's.
    let command = ok(&wrapper("mpcc_r", workspace(), "-show -Xlinker -static -qnostaticlink file.o"));
    assert!(command.starts_with("cc -Xlinker -static file.o "), "{command}");
    // A link follows that an option before had taken away.
    let command = ok(&wrapper("mpcc_r", workspace(), "-show -qsyntaxonly -qnosyntaxonly a.c"));
    assert!(command.starts_with("cc a.c ") && command.contains(" -llapi_r"), "{command}");
}

/// Options of one language say nothing to the compilers of another.
#[test]
fn options_of_another_language_are_dropped() {
    let shown = |driver, options: &str| ok(&wrapper(driver, workspace(), &format!("-show {options} a.o")));
    assert_eq!(shown("mpcc_r", "-qfree=f90 -qdpc -WF,-DX"), shown("mpcc_r", ""));
    assert_eq!(shown("mpfort", "-qenum=small -qlonglit"), shown("mpfort", ""));
    // But letters that are options of gcc.
    assert!(shown("mpcc_r", "-C -u main -D X").contains(" -C -u main -D X "));
}

#[test]
fn unknown_options_are_refused_by_name() {
    let said = refused(&wrapper("xlc_r", workspace(), "-c -qnosuchoption=3 -bnosuchoption a.c"));
    assert!(said.contains("xlc_r: -qnosuchoption=3: ") && said.contains("xlc_r: -bnosuchoption: "), "{said}");
    // Each part of a value, and of options for the linker and the preprocessor.
    let said =
        refused(&wrapper("xlf_r", workspace(), "-qfloat=maf:quick -Wl,-bmaxdata:8,-bwhat -WF,-DX,-Y a.F"));
    for part in ["-qfloat=quick", "-bwhat", "-WF,-Y"] {
        assert!(said.contains(&format!("xlf_r: {part}: ")), "{said}");
    }
    assert!(!said.contains("maf") && !said.contains("maxdata"), "{said}");
    let said = refused(&wrapper("xlf_r", workspace(), "-compiler cc -qautodbl=dbl4 a.f"));
    assert!(said.contains("-qautodbl=dbl4: only gfortran has what it means"), "{said}");
}

#[test]
fn every_driver_is_installed_and_calls_its_compiler() {
    let table = table();
    let completions: Vec<BTreeSet<String>> = ["bash", "zsh", "fish"]
        .iter()
        .map(|shell| {
            let file = workspace().join(format!("packaging/completion/openlapi.{shell}"));
            let text = fs::read_to_string(file).expect("a completion");
            text.split_whitespace().map(str::to_owned).collect()
        })
        .collect();
    let mut count = 0;
    for driver in &table.drivers {
        let compiler = match driver.language.as_str() {
            "c" => "cc ",
            "c++" => "c++ ",
            _ => "gfortran ",
        };
        for name in &driver.names {
            assert_eq!(stage().join("bin").join(name).exists(), driver.is_installed, "{name}");
            if driver.is_installed {
                assert!(stage().join(format!("share/man/man1/{name}.1")).exists(), "no page of {name}");
                for completion in &completions {
                    assert!(completion.contains(name), "no completion of {name}");
                }
                count += 1;
            }
        }
        if driver.is_installed {
            let command = ok(&wrapper(&driver.names[0], workspace(), "-show a.o"));
            assert!(command.starts_with(compiler), "{command}");
        }
    }
    assert!(count > 70, "{count}");
}

/// IBM's configuration files have each compiler with threads, of two earlier versions of them, and
/// with the longer long double.
#[test]
fn every_compiler_has_the_names_of_its_kin() {
    let table = table();
    let names: BTreeSet<&str> =
        table.drivers.iter().flat_map(|driver| &driver.names).map(String::as_str).collect();
    let long = ["cc128", "xlc128", "c89_128", "c99_128", "xlC128", "xlc++128"];
    for compiler in ["cc", "xlc", "c89", "c99", "xlC", "xlc++"].iter().chain(&long) {
        for threads in ["", "_r", "_r4", "_r7"] {
            let name = format!("{compiler}{threads}");
            assert!(names.contains(name.as_str()), "{name}");
        }
    }
}

/// A link by a name of AIX that the system has too, first on the PATH, does not call itself.
#[test]
fn a_link_by_a_name_of_the_system_works() {
    let dir = super::folder("system");
    fs::write(dir.join("a.c"), "int main(void) { char c = (char)200; return c < 0; }\n").expect("a source");
    std::os::unix::fs::symlink(stage().join("bin/mpcc_r"), dir.join("cc")).expect("a link");
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").expect("there is a PATH"));
    for compiler in ["", "cc"] {
        let mut command = super::command("cc", &dir);
        command.env("PATH", &path).env("CC", compiler);
        ok(&command.args(["a.c", "-o", "a"]).output().expect("it can be run"));
        ok(&super::command("./a", &dir).output().expect("it can be run"));
    }
}

/// What docs/porting.md has between the marks: `UPDATE_PORTING=1` writes it.
fn page(table: &Table) -> String {
    let code = |words: &[String]| {
        let escaped = words.iter().map(|word| format!("`{word}`"));
        escaped.collect::<Vec<_>>().join(", ")
    };
    let mut text =
        String::from("| names | compiler | options to begin with | what they are |\n|---|---|---|---|\n");
    for driver in &table.drivers {
        let options: Vec<String> = driver.options.split_whitespace().map(str::to_owned).collect();
        writeln!(
            text,
            "| {} | {} | {} | {} |",
            code(&driver.names),
            driver.language,
            code(&options),
            driver.text
        )
        .expect("a string grows");
    }
    for (title, lines) in table.sections.iter().filter(|(_, lines)| !lines.is_empty()) {
        write!(text, "\n### {title}\n\n| option | for | here | |\n|---|---|---|---|\n")
            .expect("a string grows");
        for line in lines {
            let action = match line.action.as_str() {
                "drop" => "dropped".to_owned(),
                "warn" => "dropped, with a warning".to_owned(),
                "refuse" => "**refused**".to_owned(),
                given => {
                    let (taken, given): (Vec<_>, Vec<_>) =
                        given.split_whitespace().map(str::to_owned).partition(|word| word.starts_with('!'));
                    let taken: Vec<_> = taken.iter().map(|word| word[1..].to_owned()).collect();
                    match (given.is_empty(), taken.is_empty()) {
                        (_, true) => code(&given),
                        (true, _) => format!("without {}", code(&taken)),
                        (false, _) => format!("{}, in place of {}", code(&given), code(&taken)),
                    }
                }
            };
            let languages = line.languages.join(", ");
            writeln!(text, "| {} | {languages} | {action} | {} |", code(&line.options), line.text)
                .expect("a string grows");
        }
    }
    text
}

#[test]
fn the_page_has_the_whole_table() {
    let expected = page(&table());
    let file = workspace().join("docs/porting.md");
    let text = fs::read_to_string(&file).expect("the page");
    let (begin, end) = ("<!-- xl-options -->\n\n", "\n<!-- end of xl-options -->");
    let (before, rest) = text.split_once(begin).expect("the mark before the table");
    let (there, after) = rest.split_once(end).expect("the mark behind the table");
    if std::env::var_os("UPDATE_PORTING").is_some() {
        fs::write(&file, format!("{before}{begin}{expected}{end}{after}")).expect("the page can be written");
    } else {
        assert!(there == expected, "UPDATE_PORTING=1 cargo test -p openlapi-tests --test field makefiles");
    }
}
