//! lapi_prof: makes the report of a profiled job that did not end by itself, and names
//! places in programs.

use openlapi::base::patient;
use openlapi_prof::symbols::Symbols;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: lapi_prof merge DIR
       lapi_prof where FILE+ADDRESS...
       lapi_prof --help | --version

merge  makes report.json, trace.json and report.html in DIR from the parts that the tasks of a job have written there
       (LAPIPROF_OUT=DIR). poe -profile and the last task to end do this by themselves. Use this command when a job was
       interrupted, when a task has died, or while the job runs.
where  names the function and the source line of an address of a program or library, as reports of crashes have it:
       /home/me/prog+0x1139.";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match &arguments[..] {
        [command, dir] if command == "merge" => match openlapi_prof::merge::merge(Path::new(dir)) {
            Ok(said) => done(patient::print(&format!("lapi_prof: {said}\n"))),
            Err(error) => {
                say(&error);
                ExitCode::FAILURE
            }
        },
        [command, to, descriptor, places @ ..] if command == "where" && to == "--to" => {
            // What asks has opened it.
            let path = Path::new("/proc/self/fd").join(descriptor);
            let places: Vec<_> = places.iter().map(of_parent).collect();
            done(OpenOptions::new().write(true).open(path).and_then(|mut to| locate(&places, &mut to)))
        }
        [command, places @ ..] if command == "where" && !places.is_empty() => {
            let mut found = Vec::new();
            done(locate(places, &mut found).and_then(|()| patient::print(&String::from_utf8_lossy(&found))))
        }
        [flag] if flag == "-h" || flag == "--help" => done(patient::print(&format!("{USAGE}\n"))),
        [flag] if flag == "-V" || flag == "--version" => {
            done(patient::print(concat!("lapi_prof (OpenLAPI) ", env!("CARGO_PKG_VERSION"), "\n")))
        }
        _ => {
            patient::say(format!("{USAGE}\n").as_bytes());
            ExitCode::from(2)
        }
    }
}

/// A place of the process that asks, whose loader may know the program by a name that
/// leads nowhere.
fn of_parent(place: &OsString) -> OsString {
    let text = place.to_string_lossy();
    match text.rsplit_once('+') {
        Some((file, address)) if !file.contains(".so") && !Path::new(file).exists() => {
            format!("/proc/{}/exe+{address}", parent_id()).into()
        }
        _ => place.clone(),
    }
}

/// Writes a line for each place: its function and its source line, with a tabulator between them.
/// Each is empty where it is not known.
fn locate(places: &[OsString], to: &mut impl Write) -> io::Result<()> {
    let mut symbols = Symbols::default();
    for place in places {
        let place = place.to_string_lossy();
        let (file, address) = place.rsplit_once('+').unwrap_or((&*place, ""));
        let digits = address.strip_prefix("0x").unwrap_or(address);
        let (function, line) = match u64::from_str_radix(digits, 16) {
            Ok(address) => symbols.in_file(file, address),
            Err(_) => Default::default(),
        };
        writeln!(to, "{function}\t{line}")?;
    }
    Ok(())
}

/// A standard error that is full or closed changes nothing about the exit status.
fn say(error: &dyn Display) {
    patient::say(format!("lapi_prof: {error}\n").as_bytes());
}

fn done(written: io::Result<()>) -> ExitCode {
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error);
            ExitCode::FAILURE
        }
    }
}
