//! What the command line asks for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::catalog::{self, Test};
use super::error::{Failure, Result};
use super::flags::{FLAGS, Flag, Takes};
use super::sizes;
use crate::spelling::nearest;

/// Which tasks work with which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    /// Task i with task i + half.
    #[default]
    Far,
    /// Task 2i with task 2i + 1.
    Near,
    /// Several tasks with task 0.
    Incast,
}

/// How many pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairs {
    All,
    Count(u32),
}

/// What the command line asks for.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) tests: Option<Vec<&'static Test>>,
    pub(super) sizes: Option<Vec<u64>>,
    pub(super) iterations: Option<u64>,
    pub(super) warmup: Option<u64>,
    pub(super) window: Option<u64>,
    pub(super) pairs: Option<Pairs>,
    pub(super) mode: Option<Mode>,
    pub(super) block: Option<u64>,
    pub(super) header: Option<u64>,
    pub(super) check: bool,
    pub(super) interrupt: Option<bool>,
    pub(super) error_check: Option<bool>,
    pub(super) cache_line: bool,
    pub(super) histogram: bool,
    pub(super) json: Option<Json>,
    pub(super) plot: Option<PathBuf>,
    pub(super) compare: Option<(PathBuf, Option<PathBuf>)>,
    pub(super) noise: Option<f64>,
    pub(super) fail_above: Option<f64>,
    pub(super) library: Option<PathBuf>,
}

/// Where the JSON goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Json {
    Output,
    File(PathBuf),
}

/// A request.
#[derive(Debug)]
pub(super) enum Request {
    Help,
    Version,
    List,
    Run(Box<Options>),
}

/// No row needs more operations.
pub(super) const MOST_ITERATIONS: u64 = 1_000_000_000;
/// Counters of LAPI are ints, and every operation in flight takes memory.
pub(super) const MOST_IN_FLIGHT: u64 = 1_000_000;

/// Reads the arguments that follow the program's name.
pub(super) fn parse(arguments: Vec<OsString>) -> Result<Request> {
    let mut options = Options::default();
    let words: Result<Vec<String>> =
        arguments.into_iter().map(|argument| argument.into_string().map_err(not_text)).collect();
    let mut words = words?.into_iter().peekable();
    while let Some(word) = words.next() {
        let (flag, said, attached) = find(&word)?;
        let next = &mut || words.next_if(|next| !next.starts_with('-') || next == "-");
        let mut values = Vec::new();
        match (flag.takes, attached) {
            (Takes::Nothing, Some(value)) => {
                return Err(Failure::usage(format!("{said} takes no value, but was given \"{value}\"")));
            }
            (Takes::Nothing, None) => {}
            (Takes::Maybe(_) | Takes::Value(_), Some(value)) => values.push(value),
            (Takes::OneOrTwo(_), Some(value)) => values.extend([value].into_iter().chain(next())),
            (Takes::Value(name), None) => {
                values.push(next().ok_or_else(|| Failure::usage(format!("{said} needs a value, {name}")))?);
            }
            (Takes::Maybe(_), None) => values.extend(next()),
            (Takes::OneOrTwo(name), None) => {
                values.push(next().ok_or_else(|| Failure::usage(format!("{said} needs a value, {name}")))?);
                values.extend(next());
            }
        }
        match flag.long {
            "help" => return Ok(Request::Help),
            "version" => return Ok(Request::Version),
            "list" => return Ok(Request::List),
            _ => options.set(flag, &said, values)?,
        }
    }
    options.agree()?;
    Ok(Request::Run(Box::new(options)))
}

fn not_text(argument: OsString) -> Failure {
    Failure::usage(format!("the argument {} is not UTF-8", argument.to_string_lossy()))
}

/// The flag that a word is, as it was written, and the value that is attached:
/// --flag=VALUE, -fVALUE.
fn find(word: &str) -> Result<(&'static Flag, String, Option<String>)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        let found = FLAGS.iter().find(|flag| flag.long == name);
        return found.map(|flag| (flag, format!("--{name}"), value)).ok_or_else(|| {
            let longs: Vec<&str> = FLAGS.iter().map(|flag| flag.long).collect();
            let hint =
                nearest(name, &longs).map_or(String::new(), |near| format!("; did you mean --{near}?"));
            Failure::usage(format!("unknown flag {word}{hint} (see lapi_perf --help)"))
        });
    }
    let Some(letter) = word.strip_prefix('-').and_then(|rest| rest.chars().next()) else {
        return Err(Failure::usage(format!(
            "\"{word}\" is not a flag, and no flag before it takes it; a test is named by -t (see lapi_perf --help)"
        )));
    };
    let rest = &word[1 + letter.len_utf8()..];
    let found = FLAGS.iter().find(|flag| flag.short == Some(letter));
    // -list or -json is a flag with a dash too few, not -l with "ist".
    let dash = FLAGS.iter().find(|flag| flag.long == &word[1..] && !rest.is_empty());
    match (dash, found) {
        (Some(flag), _) => Err(Failure::usage(format!(
            "unknown flag {word}; did you mean --{}? (see lapi_perf --help)",
            flag.long
        ))),
        (None, Some(flag)) => {
            let value = rest.strip_prefix('=').unwrap_or(rest);
            Ok((flag, format!("-{letter}"), (!rest.is_empty()).then(|| value.to_owned())))
        }
        (None, None) => Err(Failure::usage(format!("unknown flag {word} (see lapi_perf --help)"))),
    }
}

impl Json {
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::Output => None,
            Self::File(file) => Some(file),
        }
    }
}

impl Mode {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Far => "far",
            Self::Near => "near",
            Self::Incast => "incast",
        }
    }
}

impl Options {
    fn set(&mut self, flag: &Flag, said: &str, values: Vec<String>) -> Result<()> {
        let mut values = values.into_iter();
        let first = values.next();
        let value = first.as_deref().unwrap_or("");
        match flag.long {
            "test" => self.tests = Some(catalog::choose(value)?),
            "sizes" => self.sizes = Some(sizes::list(said, value)?),
            "iterations" => self.iterations = Some(number(said, value, 1, MOST_ITERATIONS)?),
            "warmup" => self.warmup = Some(number(said, value, 0, MOST_ITERATIONS)?),
            "window" => self.window = Some(number(said, value, 1, MOST_IN_FLIGHT)?),
            "pairs" if value == "all" => self.pairs = Some(Pairs::All),
            "pairs" => self.pairs = Some(Pairs::Count(number(said, value, 1, u64::from(u32::MAX))? as u32)),
            "mode" => self.mode = Some(mode(said, value)?),
            "block" => self.block = Some(sizes::bytes(said, value)?),
            "header" => self.header = Some(sizes::bytes(said, value)?),
            "check" => self.check = true,
            "interrupt" => self.interrupt = Some(on_or_off(said, value)?),
            "error-check" => self.error_check = Some(on_or_off(said, value)?),
            "cache-line" => self.cache_line = true,
            "histogram" => self.histogram = true,
            "json" => self.json = Some(first.map_or(Json::Output, |file| Json::File(file.into()))),
            "plot" => self.plot = Some(value.into()),
            "compare" => self.compare = Some((value.into(), values.next().map(PathBuf::from))),
            "noise" => self.noise = Some(percent(said, value)?),
            "fail-above" => self.fail_above = Some(percent(said, value)?),
            "library" => self.library = Some(value.into()),
            other => unreachable!("the flag --{other} of the table is not read"),
        }
        Ok(())
    }

    /// Flags that need each other, or exclude each other.
    fn agree(&self) -> Result<()> {
        let alone = |given: bool, name: &str| match given && self.compare.is_none() {
            true => Err(Failure::usage(format!("{name} says nothing without --compare OLD"))),
            false => Ok(()),
        };
        alone(self.noise.is_some(), "--noise")?;
        alone(self.fail_above.is_some(), "--fail-above")?;
        if self.histogram && self.compare.is_some() {
            return Err(Failure::usage(String::from(
                "--histogram is a part of the table of times, which --compare does not write; --json has it always",
            )));
        }
        if let Some((_, Some(new))) = &self.compare {
            let measured = self.says_what() || self.check || self.json.is_some() || self.plot.is_some();
            if measured
                || self.cache_line
                || self.interrupt.is_some()
                || self.error_check.is_some()
                || self.library.is_some()
            {
                return Err(Failure::usage(format!(
                    "--compare with two files measures nothing: leave {} out to measure, or the flags that say what to measure",
                    new.display()
                )));
            }
        }
        Ok(())
    }

    /// Whether rows are named: tests or sizes.
    pub(super) fn names_rows(&self) -> bool {
        self.tests.is_some() || self.sizes.is_some()
    }

    /// Whether anything is said about what to measure.
    fn says_what(&self) -> bool {
        self.names_rows()
            || [self.iterations, self.warmup, self.window, self.block, self.header]
                .iter()
                .any(Option::is_some)
            || self.pairs.is_some()
            || self.mode.is_some()
    }
}

fn number(said: &str, value: &str, least: u64, most: u64) -> Result<u64> {
    let number = value.parse().ok().filter(|number| (least..=most).contains(number));
    number
        .ok_or_else(|| Failure::usage(format!("{said}: \"{value}\" is not a number from {least} to {most}")))
}

fn percent(said: &str, value: &str) -> Result<f64> {
    let number = value.strip_suffix('%').unwrap_or(value).parse().ok();
    let number = number.filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| Failure::usage(format!("{said}: \"{value}\" is not a number of percent, as 10")))
}

fn on_or_off(said: &str, value: &str) -> Result<bool> {
    match value {
        "on" | "yes" | "1" => Ok(true),
        "off" | "no" | "0" => Ok(false),
        _ => Err(Failure::usage(format!("{said}: \"{value}\" is not on or off"))),
    }
}

fn mode(said: &str, value: &str) -> Result<Mode> {
    match value {
        "far" => Ok(Mode::Far),
        "near" => Ok(Mode::Near),
        "incast" => Ok(Mode::Incast),
        _ => Err(Failure::usage(format!("{said}: \"{value}\" is not far, near or incast"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn options(line: &str) -> Options {
        match parse(words(line)) {
            Ok(Request::Run(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn flags_have_one_reader_each() {
        for flag in FLAGS.iter().filter(|flag| !["help", "version", "list"].contains(&flag.long)) {
            // Whatever it takes, it is read: an unread one panics.
            let _ = Options::default().set(flag, flag.long, vec![String::from("1")]);
        }
    }

    #[test]
    fn values_stand_apart_or_attached() {
        let found = options("-t put -n100 -W=8 --sizes=8:32 --json --plot a.svg -p all -i off");
        assert_eq!(found.tests.expect("tests")[0].name, "put_lat");
        assert_eq!((found.iterations, found.window), (Some(100), Some(8)));
        assert_eq!(found.sizes, Some(vec![8, 16, 32]));
        assert_eq!((found.json, found.pairs), (Some(Json::Output), Some(Pairs::All)));
        assert_eq!((found.plot, found.interrupt), (Some("a.svg".into()), Some(false)));
        assert_eq!(options("--json r.json -c").json, Some(Json::File("r.json".into())));
        let compare = options("--compare a.json b.json --noise 5% --fail-above 20");
        assert_eq!(compare.compare, Some(("a.json".into(), Some("b.json".into()))));
        assert_eq!((compare.noise, compare.fail_above), (Some(5.0), Some(20.0)));
        assert_eq!(options("--compare a.json -c").compare, Some(("a.json".into(), None)));
    }

    #[test]
    fn every_mistake_is_named() {
        for (line, said) in [
            ("-z", "unknown flag -z"),
            ("--tset put", "did you mean --test?"),
            ("-json", "did you mean --json?"),
            ("put_lat", "\"put_lat\" is not a flag"),
            ("-t", "-t needs a value, TESTS"),
            ("-t -s 8", "-t needs a value, TESTS"),
            ("-t put_lta", "did you mean put_lat?"),
            ("-s 8x", "-s: \"8x\" is not a size"),
            ("-n 0", "-n: \"0\" is not a number from 1"),
            ("-n many", "-n: \"many\""),
            ("-W 0", "-W: \"0\""),
            ("-p none", "-p: \"none\" is not a number from 1"),
            ("-m ring", "-m: \"ring\" is not far, near or incast"),
            ("-i maybe", "is not on or off"),
            ("--check=yes", "--check takes no value"),
            ("--plot", "--plot needs a value, FILE"),
            ("--noise 5", "--noise says nothing without --compare"),
            ("--fail-above 5", "--fail-above says nothing without --compare"),
            ("--compare a --noise -5", "--noise needs a value"),
            ("--compare a --noise=-5", "is not a number of percent"),
            ("--compare a b -t put", "measures nothing"),
            ("--compare", "--compare needs a value, OLD"),
        ] {
            let message = parse(words(line)).expect_err(line).to_string();
            assert!(message.contains(said), "{line}: {message}");
        }
    }
}
