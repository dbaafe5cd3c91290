//! Variables for the tasks from the command line (-x).

use super::error::{Error, say};

/// What `poe` itself sets for each task: a job with another value of one would not work.
pub(super) const OF_POE: &[&str] = &[
    "MP_CHILD",
    "MP_PROCS",
    "MP_COMMON_TASKS",
    "MP_PARTITION",
    "LAPI_JOB_SECRET",
    "LAPI_JOB_FD",
    "LAPI_CONFIG_READ",
    "LAPI_REPORT_FD",
    "POE_LINK",
];

/// A variable that every task gets, on whatever machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Export {
    name: String,
    /// `None`: that of `poe`.
    value: Option<String>,
}

impl Export {
    /// Reads `VAR` or `VAR=VALUE`.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        if name.is_empty() {
            return Err(Error::asked(format!("-x: \"{text}\" is not VAR or VAR=VALUE")));
        }
        if OF_POE.contains(&name) {
            return Err(Error::asked(format!("-x {name}: poe sets this variable itself")));
        }
        Ok(Self { name: name.to_owned(), value })
    }

    /// The name and the value; `None`: `poe` has no such variable.
    pub(super) fn resolve(&self) -> Result<Option<(&str, String)>, Error> {
        let value = match &self.value {
            Some(value) => value.clone(),
            None => match std::env::var_os(&self.name).map(std::ffi::OsString::into_string) {
                None => return Ok(None),
                Some(Ok(value)) => value,
                Some(Err(_)) => {
                    return Err(Error::asked(format!("-x {}: its value is not UTF-8", self.name)));
                }
            },
        };
        Ok(Some((&self.name, value)))
    }

    /// Warns of a variable that is to be forwarded and is not set.
    pub(super) fn warn(&self) -> Result<(), Error> {
        if self.resolve()?.is_none() {
            say(&format!("warning: -x {}: this variable is not set", self.name));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_read_with_and_without_a_value() {
        let value = |text| Export::parse(text).expect(text).value;
        assert_eq!(value("A"), None);
        assert_eq!(value("A=").as_deref(), Some(""));
        assert_eq!(value("A=b=c d").as_deref(), Some("b=c d"));
        for wrong in ["", "=", "=x", "MP_CHILD", "LAPI_JOB_SECRET=1"] {
            assert!(Export::parse(wrong).is_err(), "{wrong}");
        }
    }
}
