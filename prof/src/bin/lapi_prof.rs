//! lapi_prof: makes the report of a profiled job that did not end by itself.

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: lapi_prof merge DIR
       lapi_prof --help | --version

Makes report.json, trace.json and report.html in DIR from the parts that the tasks of a job have written there
(LAPIPROF_OUT=DIR). The last task to end does this by itself. Use this command when a job was interrupted, when a
task has died, or while the job runs.";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match &arguments[..] {
        [command, dir] if command == "merge" => match lapiprof::merge::merge(Path::new(dir)) {
            Ok(done) => {
                println!("lapi_prof: {done}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("lapi_prof: {error}");
                ExitCode::FAILURE
            }
        },
        [flag] if flag == "-h" || flag == "--help" => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        [flag] if flag == "-V" || flag == "--version" => {
            println!("lapi_prof (OpenLAPI) {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
