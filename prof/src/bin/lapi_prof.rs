//! lapi_prof: makes the report of a profiled job that did not end by itself, and names
//! places in programs.

use openlapi::base::patient;
use openlapi_prof::symbols::Symbols;
use std::ffi::OsString;
use std::fmt::{Display, Write as _};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::ExitCode;

/// The bytes that the library has for a reply to `where --to`, of all places together.
const REPLY: usize = 12 << 10;

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
        [command, places @ ..] if command == "where" && !places.is_empty() => show(places),
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

/// The file and the address of a place.
fn parts(place: &str) -> Option<(&str, u64)> {
    let (file, address) = place.rsplit_once('+').filter(|(file, _)| !file.is_empty())?;
    let digits = address.strip_prefix("0x").unwrap_or(address);
    Some((file, u64::from_str_radix(digits, 16).ok()?))
}

/// Prints a line for each place: its function and its source line, with a tabulator between them.
/// Each is empty where it is not known. Files that cannot be read are named.
fn show(places: &[OsString]) -> ExitCode {
    let places: Vec<_> = places.iter().map(|place| place.to_string_lossy()).collect();
    if let Some(wrong) = places.iter().find(|place| parts(place).is_none()) {
        say(&format!("\"{wrong}\" is not FILE+ADDRESS, as in /home/me/prog+0x1139"));
        return ExitCode::from(2);
    }
    let (mut symbols, mut text, mut unread) = (Symbols::default(), String::new(), false);
    for (file, address) in places.iter().filter_map(|place| parts(place)) {
        let (function, line) = symbols.in_readable(file, address).unwrap_or_else(|error| {
            say(&format!("{file}: {error}"));
            unread = true;
            Default::default()
        });
        let _ = writeln!(text, "{function}\t{line}");
    }
    let printed = done(patient::print(&text));
    if unread { ExitCode::FAILURE } else { printed }
}

/// Writes the lines of [`show`] for the library, which has room for so much, and takes an empty
/// line for what is not known.
fn locate(places: &[OsString], to: &mut impl Write) -> io::Result<()> {
    let mut symbols = Symbols::default();
    for place in places {
        let place = place.to_string_lossy();
        let (function, line) =
            parts(&place).map(|(file, address)| symbols.in_file(file, address)).unwrap_or_default();
        to.write_all(within(REPLY / places.len(), &function, &line).as_bytes())?;
    }
    Ok(())
}

/// The line of a place in so many bytes: the end of a long name is left out.
fn within(room: usize, function: &str, line: &str) -> String {
    const CUT: &str = "…";
    let room = room.saturating_sub(line.len() + "\t\n".len());
    if function.len() <= room {
        return format!("{function}\t{line}\n");
    }
    let mut end = room.saturating_sub(CUT.len());
    while !function.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{CUT}\t{line}\n", &function[..end])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_file_and_an_address() {
        assert_eq!(parts("/a+b/prog+0x1f"), Some(("/a+b/prog", 0x1f)));
        assert_eq!(parts("prog+1f"), Some(("prog", 0x1f)));
        for wrong in ["foo", "/bin/true+zz", "/bin/true+", "+0x10", "", "a+0x"] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_reply_to_a_question_about_many_places_has_room_for_all() {
        assert_eq!(within(256, "main", "a.c:7"), "main\ta.c:7\n");
        let long = "ä".repeat(300);
        let line = within(256, &long, "a.c:7");
        assert!(line.len() <= 256 && line.len() > 250 && line.ends_with("ä…\ta.c:7\n"), "{line}");
    }
}
