//! Makes one report of the parts of all tasks.

use crate::part::{self, Part};
use crate::report::{self, Report};
use std::fs::{self, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Merges the parts in a folder, of all tasks or of some, and returns a sentence about the result.
/// A report that is newer than the final parts of all tasks stays.
///
/// # Errors
///
/// What could not be read or written, as a sentence.
pub fn merge(dir: &Path) -> Result<String, String> {
    if let Some(tasks) = tasks_of_report(dir).filter(|tasks| is_newest(dir, *tasks)) {
        return Ok(format!("{tasks} of {tasks} tasks are in {}", dir.join("report.html").display()));
    }
    let parts = part::parts(dir)?;
    let report = write(dir, &parts)?;
    let incomplete = report.incomplete_in_words();
    Ok(format!(
        "{} of {} tasks are in {}{incomplete}",
        parts.len(),
        report.tasks,
        dir.join("report.html").display()
    ))
}

/// Merges when this part was the last one of its job. When several tasks end at the same time, one
/// of them merges.
pub(crate) fn if_complete(dir: &Path, own: &Part) -> Result<(), String> {
    if !part::all_written(dir, own.tasks) {
        return Ok(());
    }
    let lock = dir.join(".merging");
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", lock.display());
    // Not what a link of another user names; and nothing is lost if it is there.
    let open = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&lock);
    let file = open.map_err(|error| failed(&error))?;
    match file.try_lock() {
        Ok(()) => {}
        // The task that has it has also seen that all parts were there.
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(failed(&error)),
    }
    let result = merge_newer(dir, own.tasks);
    // Under the lock: a task that makes the file again comes after the report, and finds it new.
    let _ = fs::remove_file(&lock);
    result
}

/// Merges unless the report is newer than all parts.
fn merge_newer(dir: &Path, tasks: u32) -> Result<(), String> {
    if is_newest(dir, tasks) {
        return Ok(());
    }
    let parts = part::parts(dir)?;
    if parts.len() == tasks as usize {
        write(dir, &parts)?;
    }
    Ok(())
}

/// Of how many tasks the job was of which there is a report.
fn tasks_of_report(dir: &Path) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct Head {
        tasks: u32,
    }
    let text = fs::read(dir.join("report.json")).ok()?;
    Some(serde_json::from_slice::<Head>(&text).ok()?.tasks)
}

/// Whether the report was made after the last of the parts.
fn is_newest(dir: &Path, tasks: u32) -> bool {
    let time = |name: &str| fs::metadata(dir.join(name)).and_then(|file| file.modified()).ok();
    let Some(report) = time("report.html") else { return false };
    (0..tasks).all(|task| time(&format!("part-{task}.json")).is_some_and(|part| part < report))
}

fn write(dir: &Path, parts: &[Part]) -> Result<Report, String> {
    let report = report::of(parts);
    let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
    part::write_whole(&dir.join("report.json"), text.as_bytes())?;
    part::write_whole(&dir.join("trace.json"), report::trace(parts).as_bytes())?;
    // Last: a new page means that the other files are new, too.
    part::write_whole(&dir.join("report.html"), report::page(&report)?.as_bytes())?;
    Ok(report)
}
