//! The one table of flags.

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    /// A value; the name is for the help.
    Value(&'static str),
    /// A value unless another flag follows, or nothing.
    Maybe(&'static str),
    /// A file, and another one unless a flag follows, or nothing.
    OneOrTwo(&'static str),
}

/// A flag.
#[derive(Debug)]
pub(crate) struct Flag {
    pub(crate) short: Option<char>,
    pub(crate) long: &'static str,
    pub(crate) takes: Takes,
    pub(crate) meaning: &'static str,
}

use Takes::{Maybe, Nothing, OneOrTwo, Value};

const fn flag(short: Option<char>, long: &'static str, takes: Takes, meaning: &'static str) -> Flag {
    Flag { short, long, takes, meaning }
}

/// All flags, in the order of the help text.
pub(crate) static FLAGS: &[Flag] = &[
    flag(Some('t'), "test", Value("TESTS"), "which tests, by commas; --list has them"),
    flag(
        Some('s'),
        "sizes",
        Value("SIZES"),
        "which sizes, by commas: 8, 4K, 1M, MIN:MAX (powers of two), MIN:MAX:FACTOR",
    ),
    flag(
        Some('n'),
        "iterations",
        Value("N"),
        "operations that are timed; when not given, fewer of large ones",
    ),
    flag(Some('w'), "warmup", Value("N"), "operations before them; when not given, a tenth"),
    flag(
        Some('W'),
        "window",
        Value("N"),
        "operations in flight; when not given 64, or 16 MiB if that is less",
    ),
    flag(Some('p'), "pairs", Value("N|all"), "how many pairs of tasks work at once (default: 1)"),
    flag(
        Some('m'),
        "mode",
        Value("MODE"),
        "far: task i with i + half; near: 2i with 2i + 1; incast: several with task 0 (default: far)",
    ),
    flag(Some('b'), "block", Value("SIZE"), "the size of a block or a piece of vectors (default: 256)"),
    flag(Some('H'), "header", Value("SIZE"), "the size of the user header of amh tests (default: 32)"),
    flag(Some('c'), "check", Nothing, "compare the data, byte by byte, before and after each timing"),
    flag(Some('i'), "interrupt", Value("on|off"), "INTERRUPT_SET; when not given, as LAPI_Init leaves it"),
    flag(Some('e'), "error-check", Value("on|off"), "ERROR_CHK; when not given, as LAPI_Init leaves it"),
    flag(
        None,
        "cache-line",
        Nothing,
        "time a cache line between the two tasks too, before and after each row",
    ),
    flag(None, "histogram", Nothing, "below each row how its times are distributed; --json has it always"),
    flag(None, "json", Maybe("FILE"), "write the results as JSON; without FILE in place of the table"),
    flag(None, "plot", Value("FILE"), "write a plot as SVG"),
    flag(
        None,
        "compare",
        OneOrTwo("OLD"),
        "measure what OLD (JSON) has again and compare; with a second file NEW, compare the two",
    ),
    flag(None, "noise", Value("PERCENT"), "differences up to it are not marked (default: 10)"),
    flag(None, "fail-above", Value("PERCENT"), "exit with 3 when a row of --compare is slower by more"),
    flag(None, "library", Value("FILE"), "which liblapi_r.so to measure; when not given, the installed one"),
    flag(Some('l'), "list", Nothing, "list the tests"),
    flag(Some('h'), "help", Nothing, "this text"),
    flag(None, "version", Nothing, "the version"),
];

impl Flag {
    /// As it is written, both ways.
    fn spelling(&self) -> String {
        let short = self.short.map_or(String::from("    "), |letter| format!("-{letter}, "));
        let value = match self.takes {
            Nothing => String::new(),
            Value(name) => format!(" {name}"),
            Maybe(name) => format!(" [{name}]"),
            OneOrTwo(name) => format!(" {name} [NEW]"),
        };
        format!("{short}--{}{value}", self.long)
    }
}

/// The text of `--help`.
pub(super) fn help() -> String {
    let mut text = String::from(
        "lapi_perf: latency, bandwidth and rate of LAPI's operations between the tasks of a job\n\
         \n\
         usage: poe lapi_perf [flags] -procs N\n\
         \x20      lapi_perf --compare OLD NEW\n\
         \n\
         It is started as any program with LAPI: by poe, srun or another launcher, on one host or several. Task 0 prints.\n\n",
    );
    for flag in FLAGS {
        text += &format!("  {:<27} {}\n", flag.spelling(), flag.meaning);
    }
    text + "\n\
        examples:\n\
        \x20 poe lapi_perf -procs 2                              a first look\n\
        \x20 poe lapi_perf -t put -s 1:4M -procs 2               LAPI_Put of every size\n\
        \x20 poe lapi_perf -t am_bw -s 8 -p all -procs 16        the message rate of eight pairs\n\
        \x20 poe lapi_perf -t fadd -m incast -p all -procs 8     seven tasks add to one variable\n\
        \x20 poe lapi_perf -t put_lat -s 8 --histogram -procs 2  whether some take much longer\n\
        \x20 poe lapi_perf --json old.json -procs 2              keep the results, and later\n\
        \x20 poe lapi_perf --compare old.json -procs 2           measure again and compare\n\
        \n\
        The exit status is 0, or 1 when the measurement failed or data arrived wrong, 2 when the arguments are invalid, and 3\n\
        when --fail-above finds a slower row.\n"
}
