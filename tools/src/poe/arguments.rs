//! Splits the command line: flags of `poe`, which may stand anywhere, and the arguments
//! of the program.

use std::ffi::{OsStr, OsString};

use super::error::Error;
use super::exports::Export;
use super::hints;
use super::options::{Setting, Values};
use super::settings::{Flags, Settings};

/// What the command line asks for.
#[derive(Debug)]
pub(super) enum Request {
    Help {
        /// Also the flags that few need.
        all: bool,
    },
    Version,
    /// A job. `program` is the program and its arguments; empty when there is none.
    Run {
        flags: Flags,
        exports: Vec<Export>,
        program: Vec<OsString>,
        /// The command line says which arguments are the program's: by the word of MP_FENCE, or
        /// they all are (MP_NOARGLIST).
        is_fenced: bool,
    },
}

/// Reads the arguments that follow `poe`. `variables` says where the reading ends (MP_FENCE,
/// MP_NOARGLIST).
pub(super) fn parse(arguments: Vec<OsString>, variables: &Settings) -> Result<Request, Error> {
    let fence = variables.text("MP_FENCE")?;
    let all_to_program = variables.yes("MP_NOARGLIST")?;
    let mut flags = Flags::new();
    let mut exports = Vec::new();
    let mut program = Vec::new();
    let mut is_fenced = all_to_program;
    let mut rest = arguments.into_iter().peekable();
    while let Some(argument) = rest.next() {
        let word = match argument.to_str() {
            Some(word) => word,
            // Of a program any argument, but no value of a flag.
            None => match known_flag(&argument.to_string_lossy(), program.is_empty()) {
                Some((flag, _, Some(_))) => return Err(not_text(&flag, &argument)),
                _ => "",
            },
        };
        if fence.is_some_and(|fence| fence == word) {
            program.extend(rest);
            is_fenced = true;
            break;
        }
        if let Some((flag, setting, attached)) = known_flag(word, program.is_empty()) {
            let value = match attached {
                Some(value) => value.to_owned(),
                None if matches!(setting.values, Values::Switch) => rest
                    .next_if(|next| ["yes", "no"].iter().any(|word| next.eq_ignore_ascii_case(word)))
                    .and_then(|value| value.into_string().ok())
                    .unwrap_or_else(|| "yes".to_owned()),
                None => rest
                    .next()
                    .ok_or_else(|| Error::asked(format!("{flag} needs a value")))?
                    .into_string()
                    .map_err(|value| not_text(&flag, &value))?,
            };
            if matches!(setting.values, Values::Export) {
                exports.push(Export::parse(&value)?);
                continue;
            }
            setting.check(&flag, &value)?;
            flags.insert(setting.variable, value);
        } else if program.is_empty() && word.starts_with('-') {
            match word {
                "-h" | "-help" | "--help" => {
                    return Ok(Request::Help { all: rest.next().is_some_and(|next| next == "all") });
                }
                "-version" | "--version" | "-V" | "-v" => return Ok(Request::Version),
                _ => {
                    let hint = hints::meant(word).unwrap_or_else(|| "see poe -h".to_owned());
                    return Err(Error::asked(format!("unknown flag {word}; {hint}")));
                }
            }
        } else {
            program.push(argument);
            if all_to_program {
                program.extend(rest);
                break;
            }
        }
    }
    Ok(Request::Run { flags, exports, program, is_fenced })
}

fn not_text(flag: &str, value: &OsStr) -> Error {
    Error::asked(format!("{flag}: {} is not UTF-8", value.display()))
}

/// Recognizes `-flag` and `-flag=VALUE`: the flag with its dash, its setting, the value if
/// it is attached.
fn known_flag(word: &str, before_program: bool) -> Option<(String, &'static Setting, Option<&str>)> {
    let (name, value) = match word.strip_prefix('-')?.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (&word[1..], None),
    };
    Some((format!("-{name}"), Setting::of_flag(name, before_program)?, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(words: &[&str], variables: &[(&str, &str)]) -> (Flags, Vec<String>) {
        let words = words.iter().map(OsString::from).collect();
        match parse(words, &Settings::of(variables)).expect("the command line is right") {
            Request::Run { flags, program, .. } => {
                (flags, program.into_iter().map(|word| word.into_string().expect("UTF-8")).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_stand_before_and_after_the_programs_arguments() {
        let (flags, program) =
            run(&["-labelio", "yes", "./prog", "-x", "1", "-procs=4", "-procsx", "2"], &[]);
        assert_eq!(flags["MP_PROCS"], "4");
        assert_eq!(flags["MP_LABELIO"], "yes");
        assert_eq!(program, ["./prog", "-x", "1", "-procsx", "2"]);
    }

    #[test]
    fn flags_that_programs_have_too_count_before_the_program_only() {
        for flag in ["-n", "-np"] {
            let (flags, program) = run(&[flag, "2", "./prog", flag, "3"], &[]);
            assert_eq!(flags["MP_PROCS"], "2");
            assert_eq!(program, ["./prog", flag, "3"]);
        }
    }

    #[test]
    fn a_switch_needs_no_value() {
        for (words, value) in [
            (&["-report_bindings", "./prog"][..], "yes"),
            (&["-report_bindings", "NO", "./prog"], "NO"),
            (&["./prog", "-report_bindings=no"], "no"),
            (&["./prog", "-report_bindings"], "yes"),
        ] {
            let (flags, program) = run(words, &[]);
            assert_eq!((&*flags["MP_REPORT_BINDINGS"], &program[..]), (value, &["./prog".to_owned()][..]));
        }
    }

    #[test]
    fn after_the_fence_everything_is_the_programs() {
        let (flags, program) =
            run(&["./prog", "-procs", "2", "==", "-procs", "3", "=="], &[("MP_FENCE", "==")]);
        assert_eq!(flags["MP_PROCS"], "2");
        assert_eq!(program, ["./prog", "-procs", "3", "=="]);
    }

    #[test]
    fn without_an_argument_list_nothing_after_the_name_is_ours() {
        let (flags, program) = run(&["-procs", "2", "./prog", "-procs", "3"], &[("MP_NOARGLIST", "yes")]);
        assert_eq!(flags["MP_PROCS"], "2");
        assert_eq!(program, ["./prog", "-procs", "3"]);
    }

    #[test]
    fn mistakes_before_the_program_are_named() {
        for (words, named) in [
            (&["-proc", "2", "./prog"][..], "-proc"),
            (&["./prog", "-procs"], "-procs"),
            (&["-labelio=maybe"], "maybe"),
        ] {
            let words = words.iter().map(OsString::from).collect();
            let message = parse(words, &Settings::of(&[])).expect_err(named).to_string();
            assert!(message.contains(named), "{message}");
        }
    }

    #[test]
    fn a_value_that_is_no_text_is_named() {
        use std::os::unix::ffi::OsStringExt as _;
        let word = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        for words in
            [vec![word(b"-hostfile"), word(b"Gr\xfcn"), word(b"./prog")], vec![word(b"-hostfile=Gr\xfcn")]]
        {
            let message = parse(words, &Settings::of(&[])).expect_err("not UTF-8").to_string();
            assert!(message.starts_with("-hostfile: ") && message.ends_with("n is not UTF-8"), "{message}");
        }
        // The program's own may be anything.
        let words = vec![word(b"./prog"), word(b"Gr\xfcn"), word(b"-own=Gr\xfcn")];
        match parse(words, &Settings::of(&[])).expect("a program") {
            Request::Run { program, .. } => assert_eq!(program.len(), 3),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_program_may_have_help_of_its_own() {
        assert_eq!(run(&["./prog", "-h"], &[]).1, ["./prog", "-h"]);
        assert!(matches!(parse(vec!["-h".into()], &Settings::of(&[])), Ok(Request::Help { all: false })));
    }
}
