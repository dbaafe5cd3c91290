//! Makes one report of the parts of all tasks.

use crate::part::{self, Part};
use crate::report::{self, Report};
use std::fs::{self, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Merges the parts in a folder, of all tasks or of some, and returns a sentence about the result.
/// A report that was made of the final parts of all tasks, as they are now, stays.
///
/// # Errors
///
/// What could not be read or written, as a sentence.
pub fn merge(dir: &Path) -> Result<String, String> {
    if let Some(tasks) = up_to_date(dir) {
        return Ok(format!("{tasks} of {tasks} tasks are in {}", dir.join("report.html").display()));
    }
    let report = write(dir, None)?;
    let incomplete = report.incomplete_in_words();
    Ok(format!(
        "{} of {} tasks are in {}{incomplete}",
        report.task.len(),
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
    let result = merge_other(dir, own);
    // Under the lock: a task that makes the file again comes after the report, and finds it new.
    let _ = fs::remove_file(&lock);
    result
}

/// Merges unless the report was made of the parts that are there.
fn merge_other(dir: &Path, own: &Part) -> Result<(), String> {
    if up_to_date(dir) != Some(own.tasks) && part::all_written(dir, own.tasks) {
        write(dir, Some(own))?;
    }
    Ok(())
}

/// Of how many tasks the job was of which there is a report, if that was made of final parts of all
/// of them, and of the files that are there now.
fn up_to_date(dir: &Path) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct Head {
        tasks: u32,
        made_of: Option<u64>,
    }
    let text = fs::read(dir.join("report.json")).ok()?;
    let Head { tasks, made_of } = serde_json::from_slice(&text).ok()?;
    let is_there = dir.join("report.html").exists();
    (is_there && made_of == Some(part::files_of(dir))).then_some(tasks)
}

/// Writes the report of the job of this part, or else of the last one.
fn write(dir: &Path, own: Option<&Part>) -> Result<Report, String> {
    // Before the parts are read: one that is written meanwhile is not in the report.
    let files = part::files_of(dir);
    let parts = part::parts(dir, own)?;
    let mut report = report::of(&parts);
    report.made_of = (report.missing.is_empty() && report.interim.is_empty()).then_some(files);
    part::write_whole(&dir.join("trace.json"), report::trace(&parts).as_bytes())?;
    part::write_whole(&dir.join("report.html"), report::page(&report)?.as_bytes())?;
    // Last: it says of which parts the other files were made.
    let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
    part::write_whole(&dir.join("report.json"), text.as_bytes())?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::{Duration, SystemTime};

    fn part(program: &str, task: u32, started: u64) -> Part {
        Part { job: program.to_owned(), program: program.to_owned(), started, ..Part::empty(task) }
    }

    fn program_of_report(dir: &Path) -> String {
        let text = fs::read(dir.join("report.json")).expect("there is a report");
        let report: serde_json::Value = serde_json::from_slice(&text).expect("it is one");
        report["program"].as_str().expect("a name").to_owned()
    }

    #[test]
    fn a_later_job_has_the_report_where_the_clock_was_set_back() {
        let dir = std::env::temp_dir().join(format!("lapiprof-merge-{}", std::process::id()));
        let own = part("first", 1, 2_000);
        for part in [part("first", 0, 2_000), own.clone()] {
            part::write(&dir, &part).expect("the folder is ours");
        }
        if_complete(&dir, &own).expect("all parts are there");
        assert_eq!(program_of_report(&dir), "first");
        let own = part("second", 1, 1_000);
        for part in [part("second", 0, 1_000), own.clone()] {
            part::write(&dir, &part).expect("the folder is ours");
            let file = File::options().write(true).open(dir.join(format!("part-{}.json", part.task)));
            let earlier = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
            file.and_then(|file| file.set_modified(earlier)).expect("the file is ours");
        }
        // Of a job with more tasks.
        let other = Part { tasks: 3, ..part("first", 2, 2_000) };
        part::write(&dir, &other).expect("the folder is ours");
        if_complete(&dir, &own).expect("all parts are there");
        assert_eq!(program_of_report(&dir), "second");
        let said = merge(&dir).expect("there is a report");
        assert!(said.starts_with("2 of 2 tasks are in "), "{said}");
        assert_eq!(program_of_report(&dir), "second");
        fs::remove_dir_all(&dir).expect("the folder is ours");
    }
}
