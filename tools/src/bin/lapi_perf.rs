//! Measures LAPI between the tasks of a job. Everything is in the library part of this crate, where
//! it can be tested.

use std::process::ExitCode;

fn main() -> ExitCode {
    openlapi_tools::lapi_perf::main(std::env::args_os().skip(1).collect())
}
