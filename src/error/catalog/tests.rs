use super::*;
use crate::error::{Entry, TABLE};
use rustix::fs::{FileType, Mode, OFlags};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

const HEAD: &str = "\
$ codeset=UTF-8
$ The texts of LAPI_Msg_string: set 1, each with its error code for its number (LAPI_SUCCESS: 1); set 2 says the codeset.
$ The comment before each has the name and the English text as they stand in src/abi/error_codes.rs, from which
$ UPDATE_CATALOGS=1 cargo test -p openlapi --lib catalog rewrites this file: new texts come in as comments to be translated,
$ and a translation goes out when its English text has changed.
$quote \"

$set 1
";
const TAIL: &str = "\n$set 2\n\n1 \"UTF-8\"\n";

/// The comment before a text.
fn comment(entry: &Entry) -> String {
    format!("$ {entry}")
}

/// A source that holds the texts that there are, for every entry of the table.
fn source(texts: &BTreeMap<c_int, String>) -> String {
    let message = |entry: &Entry| {
        let text = texts.get(&entry.code).map(|text| format!("{} \"{text}\"\n", number(entry.code)));
        format!("\n{}\n{}", comment(entry), text.unwrap_or_default())
    };
    format!("{HEAD}{}{TAIL}", TABLE.iter().map(message).collect::<String>())
}

/// The texts of a source that belong to what the table says today.
fn texts(source: &str) -> BTreeMap<c_int, String> {
    let mut found = BTreeMap::new();
    let lines: Vec<&str> = source.lines().collect();
    for pair in lines.windows(2) {
        let Some(entry) = TABLE.iter().find(|entry| comment(entry) == pair[0]) else { continue };
        let start = format!("{} \"", number(entry.code));
        if let Some(text) = pair[1].strip_prefix(&start).and_then(|rest| rest.strip_suffix('"')) {
            found.insert(entry.code, text.to_owned());
        }
    }
    found
}

fn english() -> BTreeMap<c_int, String> {
    TABLE.iter().map(|entry| (entry.code, entry.text.to_owned())).collect()
}

#[test]
fn sources_are_in_step_with_the_table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/catalogs");
    let mut names = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let there = fs::read_to_string(&path).unwrap();
        let wanted = source(&if name == "en.msg" { english() } else { texts(&there) });
        if std::env::var_os("UPDATE_CATALOGS").is_some() {
            fs::write(&path, &wanted).unwrap();
        } else if there != wanted {
            let line = there.lines().zip(wanted.lines()).position(|(a, b)| a != b).unwrap_or(0);
            panic!(
                "packaging/catalogs/{name} is not in step with src/abi/error_codes.rs from line {} on ({:?} instead of {:?}): \
                 UPDATE_CATALOGS=1 cargo test -p openlapi --lib catalog",
                line + 1,
                there.lines().nth(line),
                wanted.lines().nth(line)
            );
        }
        for (code, text) in texts(&wanted) {
            let entry = crate::error::lookup(code).unwrap();
            let whole = entry.with(&text);
            // The manual's own error handler has room for 100 bytes.
            assert!(whole.len() < 100, "packaging/catalogs/{name}: {} bytes: {whole}", whole.len());
            assert!(
                !text.contains(['"', '\\', '%']) && !text.ends_with('.'),
                "packaging/catalogs/{name}: {whole}"
            );
        }
        names.push(name);
    }
    assert!(names.contains(&"en.msg".to_owned()) && names.len() >= 2, "{names:?}");
}

#[test]
fn a_change_of_the_table_is_seen() {
    let all = source(&english());
    assert_eq!(texts(&all), english());
    let changed = all.replace("$ LAPI_ERR_TGT (428): the target", "$ LAPI_ERR_TGT (428): a target");
    assert_eq!(texts(&changed).len(), TABLE.len() - 1);
    assert!(!texts(&changed).contains_key(&428));
}

fn set(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    move |name| variables.get(name).cloned()
}

#[test]
fn the_language_comes_from_three_variables_in_this_order() {
    let language = |variables: &[(&str, &str)]| Locale::of(&set(variables)).map(|locale| locale.language);
    assert_eq!(language(&[]), None);
    assert_eq!(language(&[("LANG", "de_DE.UTF-8")]).as_deref(), Some("de"));
    assert_eq!(language(&[("LANG", "de_DE"), ("LC_MESSAGES", "fr_FR")]).as_deref(), Some("fr"));
    assert_eq!(language(&[("LANG", "de_DE"), ("LC_MESSAGES", "fr_FR"), ("LC_ALL", "C")]), None);
    assert_eq!(language(&[("LANG", "de_DE"), ("LC_MESSAGES", ""), ("LC_ALL", "")]).as_deref(), Some("de"));
    for english in ["C", "POSIX", "C.UTF-8", "en_GB.UTF-8", "en", "", "/etc/passwd", "../x", ".UTF-8"] {
        assert_eq!(language(&[("LANG", english)]), None, "{english}");
    }
}

#[test]
fn the_places_of_a_catalogue() {
    let env = set(&[("LANG", "de_AT.UTF-8@euro")]);
    let locale = Locale::of(&env).unwrap();
    let paths = |nls: Option<&str>| -> Vec<String> {
        candidates(&locale, nls, Some(Path::new("/opt/50%")))
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    };
    let usual = |prefix: &str| {
        ["de_AT.UTF-8@euro", "de_AT", "de"]
            .map(|name| format!("{prefix}/share/locale/{name}/LC_MESSAGES/liblapi.cat"))
    };
    let defaults: Vec<String> = usual("/opt/50%").into_iter().chain(usual("/usr")).collect();
    assert_eq!(paths(None), defaults);
    let given = paths(Some("/a/%l/%t/%c/%N:/b/%L.cat::/c%%d/%x"));
    let expected = [
        "/a/de/AT/UTF-8/liblapi.cat",
        "/b/de_AT.UTF-8@euro.cat",
        "/b/de_AT.cat",
        "/b/de.cat",
        "./liblapi.cat",
        "/c%d/",
    ];
    assert_eq!(given[..expected.len()], expected);
    assert_eq!(given[expected.len()..], defaults);
}

#[test]
fn codesets_that_a_locale_takes() {
    let takes = |name: &str, codeset: &str| Locale::of(&set(&[("LANG", name)])).unwrap().takes(codeset);
    assert!(takes("de_DE", "UTF-8") && takes("de_DE.utf8", "UTF-8") && takes("de_DE.UTF-8", ""));
    assert!(!takes("de_DE.ISO-8859-1", "UTF-8"));
}

#[test]
fn english_asks_for_no_catalogue_and_another_language_for_one() {
    assert_eq!(look_up(428, &set(&[("LANG", "C"), ("NLSPATH", "/nowhere/%N")])), Found::BuiltIn);
    let locale = "tlh_AA".to_owned();
    let env = set(&[("LANG", "tlh_AA"), ("NLSPATH", "/nowhere/%L/%N")]);
    assert_eq!(look_up(428, &env), Found::NoCatalog { locale });
    assert_eq!(look_up(428, &set(&[("LANG", "tlh_AA")])), Found::BuiltIn);
}

#[test]
fn what_is_no_catalogue_is_not_opened() {
    let env = set(&[("LANG", "tlh"), ("NLSPATH", "/proc/self/exe:/etc/passwd:/:/dev/null")]);
    assert!(matches!(look_up(428, &env), Found::NoCatalog { .. }));
    // A pipe would be waited for: a writer, which a look that hangs is freed by, finds no reader.
    let pipe = std::env::temp_dir().join(format!("openlapi-catalogue-{}", std::process::id()));
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let path = pipe.to_str().expect("a path of ASCII").to_owned();
    let look = std::thread::spawn(move || {
        matches!(look_up(428, &set(&[("LANG", "tlh"), ("NLSPATH", &path)])), Found::NoCatalog { .. })
    });
    let until = Instant::now() + Duration::from_secs(60);
    while !look.is_finished() {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        let reader = rustix::fs::open(&pipe, flags, Mode::empty());
        assert_eq!(reader.err(), Some(rustix::io::Errno::NXIO), "the pipe was opened");
        assert!(Instant::now() < until, "the look does not end");
        std::thread::yield_now();
    }
    fs::remove_file(&pipe).expect("the pipe is there");
    assert!(look.join().expect("the look ends"));
}
