//! The arguments.

use std::ffi::OsString;
use std::time::Duration;

pub(super) const USAGE: &str = "usage: lapi_top [-b] [-n TIMES] [-d SECONDS] [PID]
       lapi_top --help | --version";

const HELP: &str = "
Shows what the tasks of a job do that a poe of this machine has started, here
and on other machines: what they send and receive, and who waits for whom.
PID is the process of poe; it may be left out where one job of this user runs.

  -b          batch: writes the states one below the other, for scripts
  -n TIMES    shows that many states, and ends
  -d SECONDS  the time between two of them (2)

q ends it.
";

/// What was asked for.
pub(super) enum Request {
    /// A text.
    Print(String),
    /// The state of a job.
    Show(Options),
}

/// How it is shown.
#[derive(Debug, PartialEq)]
pub(super) struct Options {
    pub(super) batch: bool,
    /// How many states; `None`: until it is ended.
    pub(super) times: Option<u64>,
    pub(super) delay: Duration,
    pub(super) pid: Option<i32>,
}

pub(super) fn parse(arguments: Vec<OsString>) -> Result<Request, String> {
    let mut options = Options { batch: false, times: None, delay: Duration::from_secs(2), pid: None };
    let mut arguments = arguments.into_iter().map(|argument| argument.to_string_lossy().into_owned());
    while let Some(argument) = arguments.next() {
        let mut value = |what: &str| arguments.next().ok_or_else(|| format!("{argument} needs {what}"));
        match &*argument {
            "-h" | "--help" => return Ok(Request::Print(format!("{USAGE}\n{HELP}"))),
            "-V" | "--version" => {
                return Ok(Request::Print(format!("lapi_top (OpenLAPI) {}\n", env!("CARGO_PKG_VERSION"))));
            }
            "-b" => options.batch = true,
            "-n" => {
                let text = value("a number")?;
                let times = text.parse().ok().filter(|times| *times > 0);
                options.times = Some(times.ok_or_else(|| format!("-n: \"{text}\" is not a number above 0"))?);
            }
            "-d" => {
                let text = value("a number of seconds")?;
                let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
                let seconds = seconds.ok_or_else(|| format!("-d: \"{text}\" is not between 0.1 and 3600"))?;
                options.delay = Duration::from_secs_f64(seconds);
            }
            flag if flag.starts_with('-') => return Err(format!("unknown option {flag}")),
            pid if options.pid.is_none() => {
                let number = pid.parse().ok().filter(|pid| *pid > 0);
                options.pid =
                    Some(number.ok_or_else(|| format!("\"{pid}\" is not the number of a process"))?);
            }
            more => return Err(format!("one job at a time: \"{more}\" is too much")),
        }
    }
    Ok(Request::Show(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        match parse(line.split_whitespace().map(OsString::from).collect())? {
            Request::Show(options) => Ok(options),
            Request::Print(text) => Err(text),
        }
    }

    #[test]
    fn arguments_are_read_and_wrong_ones_are_named() {
        let shown = parsed("-b -n 3 -d 0.5 1234").expect("valid");
        let delay = Duration::from_millis(500);
        assert_eq!(shown, Options { batch: true, times: Some(3), delay, pid: Some(1234) });
        for (line, says) in [
            ("-n", "-n needs a number"),
            ("-n 0", "-n: \"0\""),
            ("-d x", "-d: \"x\""),
            ("-x", "unknown option -x"),
            ("job", "\"job\" is not the number"),
            ("1 2", "\"2\" is too much"),
            ("--version", "lapi_top (OpenLAPI) "),
        ] {
            let said = parsed(line).expect_err("not a view");
            assert!(said.contains(says), "{said}");
        }
    }
}
