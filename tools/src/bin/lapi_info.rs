//! Shows the settings in effect for LAPI on this machine. Everything is in the library part of this
//! crate, where it can be tested.

use std::process::ExitCode;

fn main() -> ExitCode {
    openlapi_tools::lapi_info::main(std::env::args_os().skip(1).collect())
}
