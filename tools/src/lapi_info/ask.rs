//! `lapi_info NAME`: what is known of a variable, a call or an error; and a search in
//! names and meanings.

use std::fmt::Write as _;
use std::process::ExitCode;

use openlapi::error::{Entry, TABLE, lookup};
use serde::Serialize;

use super::{print, print_json, say, text, variables};
use crate::poe;
use crate::spelling::nearest;

/// What is known of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Topic {
    name: String,
    /// "variable", "call" or "error".
    kind: &'static str,
    meaning: String,
    /// Everything else, under its title.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    about: Vec<(&'static str, String)>,
}

/// Shows the topics of these names, or those in which these words occur.
pub(super) fn main(words: &[String], json: bool) -> ExitCode {
    let topics = topics();
    let found = find(words, &topics);
    let status = if found.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    if json {
        return print_json(&found, status);
    }
    if found.is_empty() {
        say(unknown(words, &topics));
        return status;
    }
    let exact = words.iter().all(|word| named(word, &topics).is_some());
    if exact || found.len() == 1 {
        let described: Vec<String> = found.iter().map(|topic| describe(topic)).collect();
        return print(&described.join("\n"), status);
    }
    let mut out = String::new();
    let rows: Vec<_> =
        found.iter().map(|topic| text::row([&topic.name, topic.kind, &topic.meaning])).collect();
    text::table(&mut out, &rows);
    print(&out, status)
}

/// The topics that have these names or numbers, if all words are such; else those in whose text
/// all words occur.
fn find<'a>(words: &[String], topics: &'a [Topic]) -> Vec<&'a Topic> {
    if let Some(named) = words.iter().map(|word| named(word, topics)).collect::<Option<Vec<_>>>() {
        return named;
    }
    if words.iter().any(|word| word.parse::<i32>().is_ok()) {
        return Vec::new();
    }
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let has = |topic: &&Topic| {
        let text = format!("{} {}", topic.name, topic.meaning).to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    };
    topics.iter().filter(has).collect()
}

/// The topic with this name, in capitals or not, or with this number.
fn named<'a>(word: &str, topics: &'a [Topic]) -> Option<&'a Topic> {
    let number: Option<&Entry> = word.parse().ok().and_then(lookup);
    let name = number.map_or_else(|| word.to_owned(), name_of);
    topics.iter().find(|topic| topic.name.eq_ignore_ascii_case(&name))
}

/// What to say when there is nothing to show.
fn unknown(words: &[String], topics: &[Topic]) -> String {
    let word = words.join(" ");
    if let Ok(code) = word.parse::<i32>() {
        let error = std::io::Error::from_raw_os_error(code);
        return format!("{code} is not an error number of LAPI; as one of the system: {error}");
    }
    // Also the name without its first part.
    let names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
    let tries = [word.clone(), format!("LAPI_{word}"), format!("MP_{word}"), format!("LAPI_ERR_{word}")];
    match tries.iter().find_map(|name| nearest(name, &names)) {
        Some(known) => format!("nothing is known of {word}; did you mean {known}?"),
        None => format!("nothing is known of {word}"),
    }
}

fn describe(topic: &Topic) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{} ({})", topic.name, topic.kind);
    let mut rows = vec![text::row(["meaning", &topic.meaning])];
    rows.extend(topic.about.iter().map(|(title, value)| text::row([*title, value])));
    text::table(&mut out, &rows);
    out
}

fn topics() -> Vec<Topic> {
    let mut topics = of_variables();
    topics.extend(calls());
    topics.extend(errors());
    topics
}

/// The errors, each name once: LAPI's levels have given one of them several numbers.
fn errors() -> Vec<Topic> {
    let mut topics: Vec<Topic> = Vec::new();
    for entry in TABLE {
        let (name, number) = (name_of(entry), entry.code.to_string());
        match topics.iter_mut().find(|topic| topic.name == name) {
            Some(topic) => topic.about[0].1 += &format!(", {number}"),
            None => topics.push(Topic {
                name,
                kind: "error",
                meaning: entry.text.to_owned(),
                about: vec![("number", number)],
            }),
        }
    }
    topics
}

/// The name of an error; attention messages have none, and their number stands for it.
fn name_of(entry: &Entry) -> String {
    entry.name.map_or_else(|| entry.code.to_string(), str::to_owned)
}

/// The variables of the library and of `poe`, each once.
fn of_variables() -> Vec<Topic> {
    let of_poe = poe::described_variables();
    let flag =
        |name: &str| of_poe.iter().find(|setting| setting.name == name).map(|setting| setting.flag.clone());
    let library = variables::all(&mut Vec::new());
    let mut topics: Vec<Topic> = library
        .into_iter()
        .map(|variable| {
            let none = || "none".to_owned();
            let mut about = vec![
                ("value", variable.value.unwrap_or_else(none)),
                (
                    "from",
                    variable.place.map_or_else(
                        || variable.source.to_owned(),
                        |place| format!("{} {place}", variable.source),
                    ),
                ),
                ("default", variable.default.map_or_else(none, str::to_owned)),
                ("allowed", variable.allowed),
            ];
            about.extend(
                variable.refused.map(|refused| ("refused", format!("{} ({})", refused.name, refused.code))),
            );
            about.extend(
                flag(variable.name).filter(|flag| !flag.is_empty()).map(|flag| ("flag of poe", flag)),
            );
            about.push(("manual", "man 7 lapi".to_owned()));
            Topic {
                name: variable.name.to_owned(),
                kind: "variable",
                meaning: variable.meaning.to_owned(),
                about,
            }
        })
        .collect();
    for setting in of_poe {
        if topics.iter().any(|topic| topic.name == setting.name) {
            continue;
        }
        let mut about =
            vec![("value", setting.value), ("from", setting.source), ("default", setting.default)];
        about.push(("allowed", setting.allowed));
        about.extend(Some(("flag of poe", setting.flag)).filter(|(_, flag)| !flag.is_empty()));
        about.push(("manual", "man poe".to_owned()));
        topics.push(Topic {
            name: setting.name.to_owned(),
            kind: "variable",
            meaning: setting.meaning,
            about,
        });
    }
    topics
}

macro_rules! topics_of_calls {
    ($($(#[doc = $doc:literal])* $name:ident $rust:ident $fortran:ident ($($argument:ident: $type:ty as $passed:ident),* $(,)?);)*) => {
        /// The calls, with the names of their arguments.
        fn calls() -> Vec<Topic> {
            vec![$(call(stringify!($name), concat!($($doc),*), &[$(stringify!($argument)),*])),*]
        }
    };
}
openlapi::for_each_call!(topics_of_calls);

fn call(name: &'static str, meaning: &str, arguments: &[&str]) -> Topic {
    let mut of_fortran = arguments.to_vec();
    of_fortran.push("ierror");
    Topic {
        name: name.to_owned(),
        kind: "call",
        meaning: meaning.trim().to_owned(),
        about: vec![
            ("C", format!("int {name}({})", arguments.join(", "))),
            ("Fortran", format!("call {}({})", name.to_uppercase(), of_fortran.join(", "))),
            ("manual", format!("man {name}")),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        find(&words, &topics()).iter().map(|topic| topic.name.clone()).collect()
    }

    #[test]
    fn names_in_any_case_and_numbers_are_found() {
        for (word, name) in [
            ("lapi_spin", "LAPI_SPIN"),
            ("LAPI_PUT", "LAPI_Put"),
            ("MP_LABELIO", "MP_LABELIO"),
            ("428", "LAPI_ERR_TGT"),
            ("0", "LAPI_SUCCESS"),
        ] {
            assert_eq!(names(&[word]), [name]);
        }
        assert_eq!(names(&["LAPI_SPIN", "428"]), ["LAPI_SPIN", "LAPI_ERR_TGT"]);
    }

    #[test]
    fn words_are_searched_for_in_names_and_meanings() {
        assert!(names(&["waitcntr"]).contains(&"LAPI_Waitcntr".to_owned()));
        assert!(names(&["Bulk", "transfer"]).contains(&"MP_USE_BULK_XFER".to_owned()));
        assert_eq!(names(&["Bulk", "unheard-of"]), [""; 0]);
    }

    #[test]
    fn other_words_get_a_hint() {
        let said = |word: &str| unknown(&[word.to_owned()], &topics());
        assert!(said("LAPI_SIPN").ends_with("did you mean LAPI_SPIN?"));
        assert!(said("labellio").ends_with("did you mean MP_LABELIO?"));
        assert!(said("12").contains("not an error number of LAPI") && said("12").contains("memory"));
        assert_eq!(said("xyzzyxyzzy"), "nothing is known of xyzzyxyzzy");
    }

    #[test]
    fn every_topic_has_a_name_of_its_own_and_a_meaning() {
        let topics = topics();
        let mut names: Vec<String> = topics.iter().map(|topic| topic.name.to_lowercase()).collect();
        names.sort_unstable();
        let twice: Vec<&[String]> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert_eq!(twice, [[""; 2]; 0]);
        assert!(topics.iter().all(|topic| !topic.meaning.is_empty()));
    }
}
