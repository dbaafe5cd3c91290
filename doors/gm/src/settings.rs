//! The variables of gm, beside those of LAPI.

use openlapi_runtime::environment::process_env;

/// How long a message waits for a buffer, in seconds, unless LAPI_GM_TIMEOUT says.
const TIMEOUT: f64 = 30.0;

/// What the variables say.
#[derive(Clone, Debug, PartialEq)]
pub struct Variables {
    /// LAPI_GM_NODES: each task is a node of its own.
    pub by_task: bool,
    /// LAPI_GM_TIMEOUT, in microseconds.
    pub timeout: u64,
    /// LAPI_GM_CHECK: only registered memory is used.
    pub check: bool,
    /// LAPI_GM_MAP: the file of the nodes, for a program that was started by hand.
    pub map: Option<String>,
}

impl Variables {
    /// Those of this process.
    ///
    /// # Errors
    /// A sentence that names a variable whose value is not valid.
    pub fn read() -> Result<Self, String> {
        Self::from(&process_env)
    }

    fn from(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let word = |name: &str, no: &str, yes: &str| match env(name).as_deref() {
            None | Some("") => Ok(false),
            Some(value) if value.eq_ignore_ascii_case(no) => Ok(false),
            Some(value) if value.eq_ignore_ascii_case(yes) => Ok(true),
            Some(value) => Err(format!("{name} is \"{value}\"; valid: {no}, {yes}")),
        };
        let seconds = match env("LAPI_GM_TIMEOUT").filter(|value| !value.is_empty()) {
            None => TIMEOUT,
            Some(value) => {
                let parsed = value.parse().ok().filter(|seconds| (0.001..=86_400.0).contains(seconds));
                parsed.ok_or_else(|| {
                    format!("LAPI_GM_TIMEOUT is \"{value}\"; valid: 0.001 to 86400, in seconds")
                })?
            }
        };
        Ok(Self {
            by_task: word("LAPI_GM_NODES", "host", "task")?,
            timeout: (seconds * 1e6) as u64,
            check: word("LAPI_GM_CHECK", "no", "yes")?,
            map: env("LAPI_GM_MAP").filter(|map| !map.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_valid_or_named() {
        let read = |name: &'static str, value: &'static str| {
            Variables::from(&move |asked| (asked == name).then(|| value.to_owned()))
        };
        let plain = Variables { by_task: false, timeout: 30_000_000, check: false, map: None };
        assert_eq!(read("LAPI_GM_NODES", "host"), Ok(plain.clone()));
        assert_eq!(read("LAPI_GM_NODES", "Task"), Ok(Variables { by_task: true, ..plain.clone() }));
        assert_eq!(read("LAPI_GM_TIMEOUT", "0.5"), Ok(Variables { timeout: 500_000, ..plain.clone() }));
        assert_eq!(read("LAPI_GM_CHECK", "yes"), Ok(Variables { check: true, ..plain.clone() }));
        assert_eq!(
            read("LAPI_GM_MAP", "file"),
            Ok(Variables { map: Some("file".to_owned()), ..plain.clone() })
        );
        let names = ["LAPI_GM_NODES", "LAPI_GM_TIMEOUT", "LAPI_GM_CHECK"];
        for (name, wrong) in names.into_iter().zip(["port", "-1", "2"]) {
            let said = read(name, wrong).expect_err("it is not valid");
            assert!(said.starts_with(&format!("{name} is \"{wrong}\"")), "{said}");
        }
    }
}
