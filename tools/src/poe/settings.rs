//! What was asked for, from flags and variables together.

use std::collections::HashMap;
use std::ffi::OsString;
use std::str::FromStr;

use openlapi::config::files::{Files, Line};

use super::error::Error;
use super::exports::Export;
use super::options::Setting;

/// Values by variable, from flags.
pub(super) type Flags = HashMap<&'static str, String>;

/// The flags and the variables that were given.
pub(super) struct Settings {
    flags: Flags,
    variables: HashMap<String, String>,
    files: Files,
    exports: Vec<Export>,
}

impl Settings {
    /// Flags (checked already), and the environment, of which only the values that are asked
    /// for are checked.
    pub(super) fn new(flags: Flags, environment: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let variables = environment
            .filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
            })
            .filter(|(name, _)| name.starts_with("MP_"))
            .collect();
        Self { flags, variables, files: Files::default(), exports: Vec::new() }
    }

    /// These, and what files set that the environment does not.
    pub(super) fn with_files(self, files: &Files) -> Self {
        Self { files: files.clone(), ..self }
    }

    /// These with variables for the tasks.
    pub(super) fn with_exports(self, exports: Vec<Export>) -> Self {
        Self { exports, ..self }
    }

    /// The variables for the tasks, in the order in which they were given.
    pub(super) fn exports(&self) -> &[Export] {
        &self.exports
    }

    /// The flags' values, by variable: what the tasks get as variables.
    pub(super) fn flags(&self) -> &Flags {
        &self.flags
    }

    /// The value of a setting that was given by the user, checked.
    pub(super) fn given(&self, variable: &str) -> Result<Option<&str>, Error> {
        let setting = Setting::of_variable(variable);
        if let Some(value) = self.flags.get(variable) {
            return Ok(Some(value));
        }
        let (said, value) = match (self.variables.get(variable), self.files.line(variable)) {
            (Some(value), _) => (variable.to_owned(), value),
            (None, Some(Line { value, place, .. })) => (format!("{place}: {variable}"), value),
            (None, None) => return Ok(None),
        };
        if value.is_empty() {
            return Ok(None);
        }
        setting.check(&said, value)?;
        Ok(Some(value))
    }

    /// The value of a setting that was given, or its default; `None` when it has none.
    pub(super) fn text(&self, variable: &str) -> Result<Option<&str>, Error> {
        let default = Setting::of_variable(variable).default;
        Ok(self.given(variable)?.or(Some(default).filter(|default| !default.is_empty())))
    }

    /// The value of a setting as a `T`. The table's check and the parser must agree.
    pub(super) fn parsed<T: FromStr>(&self, variable: &str) -> Result<Option<T>, Error> {
        Ok(self.text(variable)?.map(|text| match text.parse() {
            Ok(value) => value,
            Err(_) => unreachable!("{variable}={text} was checked"),
        }))
    }

    /// Whether a setting is yes.
    pub(super) fn yes(&self, variable: &str) -> Result<bool, Error> {
        Ok(self.text(variable)?.is_some_and(|text| text.eq_ignore_ascii_case("yes")))
    }

    /// How much `poe` itself says (MP_INFOLEVEL).
    pub(super) fn info_level(&self) -> Result<u8, Error> {
        Ok(self.parsed("MP_INFOLEVEL")?.unwrap_or(1))
    }
}

#[cfg(test)]
impl Settings {
    /// Settings as if these variables were given.
    pub(super) fn of(variables: &[(&str, &str)]) -> Self {
        Self::new(Flags::new(), variables.iter().map(|(name, value)| (name.into(), value.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_wins_over_its_variable_and_both_over_the_default() {
        let mut settings = Settings::of(&[("MP_PROCS", "3"), ("MP_LABELIO", "YES"), ("MP_STDINMODE", "")]);
        assert_eq!(settings.parsed("MP_PROCS").expect("3 is right"), Some(3));
        settings.flags.insert("MP_PROCS", "5".into());
        assert_eq!(settings.parsed("MP_PROCS").expect("5 is right"), Some(5));
        assert!(settings.yes("MP_LABELIO").expect("YES is right"));
        assert_eq!(settings.text("MP_STDINMODE").expect("empty is unset"), Some("all"));
        assert_eq!(settings.given("MP_STDINMODE").expect("empty is unset"), None);
    }

    #[test]
    fn a_wrong_variable_is_refused_when_it_is_needed() {
        let settings = Settings::of(&[("MP_PROCS", "no")]);
        assert!(settings.text("MP_LABELIO").is_ok());
        assert!(settings.given("MP_PROCS").expect_err("no number").to_string().contains("MP_PROCS"));
    }
}
