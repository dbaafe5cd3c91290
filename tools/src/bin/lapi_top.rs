//! Shows what the tasks of a running job do. Everything is in the library part of this crate, where
//! it can be tested.

use std::process::ExitCode;

fn main() -> ExitCode {
    openlapi_tools::lapi_top::main(std::env::args_os().skip(1).collect())
}
