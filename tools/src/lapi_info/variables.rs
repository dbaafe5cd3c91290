//! Every environment variable of the library with its value, and misspelt names.

use openlapi::config::{self, Origin, VARIABLES};
use openlapi::error;
use openlapi_runtime::environment::files;

use super::report::{File, Refused, Unknown, Variable};
use crate::poe;
use crate::spelling::{misspelt, nearest, unknown_in_file};

/// The library's own table, with the values of the environment.
pub(super) fn all(problems: &mut Vec<String>) -> Vec<Variable> {
    let settings = openlapi_runtime::environment::settings();
    let refused: Vec<String> =
        settings.iter().filter_map(|it| Some(it.refused.as_ref()?.to_string())).collect();
    // Values that contradict each other.
    let together = openlapi_runtime::environment::config().err().filter(|_| refused.is_empty());
    problems.extend(refused);
    problems.extend(together.map(|error| error.to_string()));
    let described = |(variable, setting): (&'static config::Variable, config::Setting)| Variable {
        name: variable.name,
        source: match &setting.origin {
            Origin::Environment => "environment",
            Origin::File(place) => place.owner.word(),
            Origin::Default if setting.value.is_empty() => "unset",
            Origin::Default => "default",
        },
        place: match &setting.origin {
            Origin::File(place) => Some(place.to_string()),
            _ => None,
        },
        value: Some(setting.value).filter(|value| !value.is_empty()),
        default: Some(variable.default).filter(|default| !default.is_empty()),
        allowed: variable.kind.to_string(),
        meaning: variable.meaning,
        refused: setting.refused.map(|error| Refused { code: error.code, name: name_of(error.code) }),
    };
    VARIABLES.iter().zip(settings).map(described).collect()
}

/// The files of settings, and what is wrong with each.
pub(super) fn of_files() -> Vec<File> {
    let (found, known) = (files(), poe::known_variables());
    let unknown =
        found.lines().filter_map(|line| Some(format!("{}: {}", line.place, unknown_in_file(line, &known)?)));
    let faults: Vec<String> = found.faults.iter().cloned().chain(unknown).collect();
    let file = |(owner, path, is_there): &(openlapi::config::files::Owner, String, bool)| File {
        path: path.clone(),
        kind: owner.word(),
        is_there: *is_there,
        faults: faults.iter().filter(|fault| fault.starts_with(&format!("{path}:"))).cloned().collect(),
    };
    found.looked_for.iter().map(file).collect()
}

fn name_of(code: i32) -> &'static str {
    error::lookup(code).and_then(|entry| entry.name).unwrap_or("an error without a name")
}

/// Variables without effect: every unknown name that begins with LAPI_, and names that begin with
/// MP_ and resemble a known one. (MP_ is the family of `poe` and of the MPI of its time, too.)
pub(super) fn unknown() -> Vec<Unknown> {
    let names: Vec<String> =
        std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    unknown_among(&names)
}

fn unknown_among(names: &[String]) -> Vec<Unknown> {
    let known = poe::known_variables();
    let mut found: Vec<Unknown> = config::unknown_names(names.iter())
        .into_iter()
        .map(|name| Unknown { did_you_mean: nearest(&name, &known), name })
        .collect();
    let misspelt = names
        .iter()
        .filter(|name| name.starts_with("MP_"))
        .filter_map(|name| Some(Unknown { did_you_mean: Some(misspelt(name, &known)?), name: name.clone() }));
    found.extend(misspelt);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Vec<(String, Option<&'static str>)> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        unknown_among(&names).into_iter().map(|found| (found.name, found.did_you_mean)).collect()
    }

    #[test]
    fn names_of_the_tables_are_known() {
        let names: Vec<&str> = VARIABLES.iter().map(|variable| variable.name).collect();
        assert_eq!(found(&names), []);
        assert_eq!(found(&["MP_HOSTFILE", "MP_LABELIO", "MP_SHARED_MEMORY", "HOME"]), []);
    }

    #[test]
    fn a_letter_too_few_too_many_or_in_the_wrong_place_is_seen() {
        for (wrong, right) in [
            ("LAPI_USE_SHMEM", "LAPI_USE_SHM"),
            ("LAPI_SIPN", "LAPI_SPIN"),
            ("LAPI_Spin", "LAPI_SPIN"),
            ("MP_MSG_AP", "MP_MSG_API"),
            ("MP_INFO_LEVEL", "MP_INFOLEVEL"),
        ] {
            assert_eq!(found(&[wrong]), [(wrong.to_owned(), Some(right))]);
        }
    }

    #[test]
    fn other_names_of_lapi_are_reported_without_a_guess_and_of_the_mp_family_not_at_all() {
        assert_eq!(found(&["MP_SOMETHING_ELSE", "LAPI_WHATEVER"]), [("LAPI_WHATEVER".to_owned(), None)]);
    }
}
