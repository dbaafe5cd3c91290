//! A job with the profiler (MP_PROFILE): the library that is preloaded, and where its report goes.

mod reason;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Stdio};

use nix::poll::PollTimeout;
use nix::sys::signal::{Signal, raise};

use super::commands::Command;
use super::error::{Error, say};
use super::record::no_folder;
use super::settings::Settings;
use super::signals::Signals;
use super::waiting::await_any;
use crate::prefix;

/// What the loader loads before all libraries of a program.
const PRELOAD: &str = "LD_PRELOAD";
/// The folder of the report, for the profiler.
const FOLDER: &str = "LAPIPROF_OUT";
/// Which tasks print a table; none unless the user asks for it: the report has all of them.
pub(super) const TABLE: &str = "LAPIPROF_TABLE";
/// The options of AddressSanitizer, which refuses to start behind a library that is preloaded. The
/// profiler replaces nothing that AddressSanitizer replaces, so their order does not matter.
const SANITIZER: &str = "ASAN_OPTIONS";
const ANY_ORDER: &str = "verify_asan_link_order=0";
const LIBRARY: &str = "liblapiprof.so.1";
const MERGER: &str = "lapi_prof";

/// The file of a part: its name, its number, and when it was written. One that is written again is
/// another one, also where the clock was set back.
type PartFile = (OsString, u64, i64, i64);

/// The profile of the jobs of this `poe`.
pub(super) struct Profile {
    folder: PathBuf,
    /// The parts that were there before the first job; `None`: its tasks write there on other
    /// machines.
    before: Option<HashSet<PartFile>>,
    /// What the tasks run.
    programs: Vec<OsString>,
}

impl Profile {
    /// Makes the folder of the report, and tries to write there: a job that ran for nothing
    /// would be profiled again. `None` when no profile was asked for. `elsewhere`: tasks run on
    /// other machines.
    pub(super) fn prepare(
        settings: &Settings,
        elsewhere: bool,
        steps: &[Vec<Command>],
    ) -> Result<Option<Self>, Error> {
        let Some(folder) = settings.text("MP_PROFILE")?.map(PathBuf::from) else { return Ok(None) };
        let mut programs: Vec<OsString> =
            steps.iter().flatten().filter_map(|words| words.first().cloned()).collect();
        programs.dedup();
        if elsewhere {
            return Ok(Some(Self { folder, before: None, programs }));
        }
        let trial = folder.join(format!(".poe-{}", process::id()));
        let tried = fs::create_dir_all(&folder)
            .map_err(no_folder)
            .and_then(|()| File::create_new(&trial))
            .and_then(|_| fs::remove_file(&trial));
        match tried {
            Ok(()) => Ok(Some(Self { before: Some(parts_in(&folder)), folder, programs })),
            Err(error) => Err(Error::system(format!("-profile: {}", folder.display()), error)),
        }
    }

    /// After the last job, however it has ended: makes the report of what its tasks have left, and
    /// says where it is. Returns the signal with which the user has ended that.
    pub(super) fn merge(&self, signals: &Signals) -> Option<Signal> {
        let folder = self.folder.display();
        if !self.has_parts() {
            let place = if self.before.is_some() { String::new() } else { " on this machine".to_owned() };
            say(&format!(
                "profile: no task has left a part in {folder}{place}, so there is no report: {}",
                reason::of(&self.programs)
            ));
            return None;
        }
        let merger = prefix::prefix().ok()?.join("bin").join(MERGER);
        let mut command = process::Command::new(merger);
        command.arg("merge").arg(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let inherited = signals.inherited();
        // SAFETY: system calls only, between fork and exec.
        unsafe { command.pre_exec(move || inherited.restore()) };
        let no_report = |why: &str| say(&format!("profile: no report of the parts in {folder}: {why}"));
        let merged = command.spawn().and_then(|child| {
            let merger = child.id();
            let merged = finish(child, signals)?;
            if matches!(merged, Merged::Ended(_)) {
                remove_unfinished(&self.folder, merger);
            }
            Ok(merged)
        });
        match merged {
            Ok(Merged::Report) => say(&format!("profile: {}", self.folder.join("report.html").display())),
            Ok(Merged::Failed(said)) => {
                no_report(said.trim().strip_prefix("lapi_prof: ").unwrap_or(said.trim()));
            }
            Ok(Merged::Ended(signal)) => {
                no_report(&format!("{MERGER} was ended ({signal})"));
                return Some(signal);
            }
            Err(error) => no_report(&format!("{MERGER}: {error}")),
        }
        None
    }

    /// Whether a task has written a part there since the first job began.
    fn has_parts(&self) -> bool {
        let now = parts_in(&self.folder);
        now.iter().any(|part| !self.before.as_ref().is_some_and(|before| before.contains(part)))
    }
}

/// The parts of all tasks in a folder.
fn parts_in(folder: &Path) -> HashSet<PartFile> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let parts = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("part-") && name.ends_with(".json")
    });
    parts
        .filter_map(|entry| {
            let file = entry.metadata().ok()?;
            Some((entry.file_name(), file.ino(), file.mtime(), file.mtime_nsec()))
        })
        .collect()
}

/// Removes the files that a merger had begun when it was ended: each has a name with its
/// number until it is whole.
fn remove_unfinished(folder: &Path, merger: u32) {
    let extension = format!("new{merger}");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in entries.filter(|path| path.extension().is_some_and(|found| *found == *extension)) {
        let _ = fs::remove_file(path);
    }
}

/// What became of a report.
enum Merged {
    Report,
    /// No report was made, and it was said why.
    Failed(String),
    /// By a signal of the user to this process.
    Ended(Signal),
}

/// Waits for the end of a process that says on its standard error why it fails, or until a
/// signal ends it.
fn finish(mut child: Child, signals: &Signals) -> io::Result<Merged> {
    let mut stderr = child.stderr.take().expect("it is a pipe");
    let (mut said, mut buffer) = (Vec::new(), [0; 1 << 12]);
    loop {
        let [_, more] = await_any([Some(signals.as_fd()), Some(stderr.as_fd())], PollTimeout::NONE)?;
        while let Some(signal) = signals.next() {
            match signal {
                Signal::SIGTSTP => raise(Signal::SIGSTOP)?,
                Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT => {
                    child.kill()?;
                    child.wait()?;
                    return Ok(Merged::Ended(signal));
                }
                _ => {}
            }
        }
        if more {
            match stderr.read(&mut buffer)? {
                0 => break,
                length => said.extend(&buffer[..length]),
            }
        }
    }
    let status = child.wait()?;
    let said = String::from_utf8_lossy(&said).into_owned();
    Ok(if status.success() { Merged::Report } else { Merged::Failed(said) })
}

/// The variables of the tasks. `exported`: what they would have otherwise, where it is not what
/// `poe` itself has.
pub(super) fn variables(
    folder: &str,
    exported: impl Fn(&str) -> Option<String>,
) -> Result<Vec<(&'static str, String)>, Error> {
    let before = |name| exported(name).or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty());
    let library = library()?;
    let folder = std::path::absolute(folder)
        .map_err(|error| Error::system(format!("-profile {folder}"), error))?
        .to_string_lossy()
        .into_owned();
    let others = before(PRELOAD).unwrap_or_default();
    // A poe that a task of a profiled job starts has it already.
    let others = others.split([':', ' ']).filter(|other| !other.is_empty() && !is_profiler(other));
    let all = std::iter::once(&*library).chain(others).collect::<Vec<_>>().join(":");
    let sanitizer = [ANY_ORDER.to_owned()].into_iter().chain(before(SANITIZER)).collect::<Vec<_>>().join(":");
    let mut variables = vec![(PRELOAD, all), (FOLDER, folder), (SANITIZER, sanitizer)];
    if std::env::var_os(TABLE).is_none() {
        variables.push((TABLE, "none".to_owned()));
    }
    Ok(variables)
}

fn is_profiler(library: &str) -> bool {
    Path::new(library).file_name().is_some_and(|name| name.to_string_lossy().starts_with("liblapiprof.so"))
}

/// The library that was installed with this `poe`.
fn library() -> Result<String, Error> {
    let library =
        prefix::library(LIBRARY).map_err(|error| Error::system("-profile: the path of poe", error))?;
    let path = library.to_string_lossy();
    if !library.is_file() {
        return Err(Error::failed(format!("-profile: the profiler is not installed: there is no {path}")));
    }
    if path.contains([':', ' ']) {
        // The loader splits its list at both.
        return Err(Error::failed(format!(
            "-profile: \"{path}\" cannot be preloaded: its path has a blank or a colon"
        )));
    }
    Ok(path.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merger_that_was_ended_leaves_no_file_that_it_had_begun() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = ["report.new77", "trace.new77", "report.new770", "report.json", "part-0.new78", "new77"];
        names.iter().for_each(|name| fs::write(folder.path().join(name), "{}").expect("a file"));
        remove_unfinished(folder.path(), 77);
        let left: Vec<_> = names.iter().filter(|name| folder.path().join(name).exists()).collect();
        assert_eq!(left, [&"report.new770", &"report.json", &"part-0.new78", &"new77"]);
    }
}
