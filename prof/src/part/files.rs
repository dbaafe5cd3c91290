//! The parts of a job in their folder.

use super::data::{FORMAT, Part};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// More tasks than any job has: the report names those that are missing one by one.
const MOST_TASKS: u32 = 1 << 16;

/// Writes a part as a whole: a reader finds all of it, or the one before. A final part takes the
/// place of an interim one.
pub fn write(out: &Path, part: &Part) -> Result<(), String> {
    fs::create_dir_all(out).map_err(|error| format!("{} cannot be made: {error}", out.display()))?;
    let text = serde_json::to_vec(part).map_err(|error| format!("the part cannot be written: {error}"))?;
    if part.interim.is_some() {
        return write_whole(&interim_place(out, part.task), &text);
    }
    write_whole(&place(out, part.task), &text)?;
    let _ = fs::remove_file(interim_place(out, part.task));
    Ok(())
}

/// Writes a file under another name first, which it does not leave behind.
pub fn write_whole(path: &Path, text: &[u8]) -> Result<(), String> {
    let fresh = path.with_extension(format!("new{}", std::process::id()));
    // A process of this number may have left one. What another user puts in its place is
    // not written to.
    let _ = fs::remove_file(&fresh);
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&fresh)
        .and_then(|mut file| file.write_all(text))
        .and_then(|()| fs::rename(&fresh, path))
        .map_err(|error| {
            let _ = fs::remove_file(&fresh);
            format!("{} cannot be written: {error}", path.display())
        })
}

/// Removes the parts of a task, if there are any.
pub fn remove(out: &Path, task: u32) {
    let _ = fs::remove_file(place(out, task));
    let _ = fs::remove_file(interim_place(out, task));
}

/// Reads the parts of the job of this part, or else of the job of which one was written last, by
/// task: the final part, or else the interim one. Those of another form are of jobs that were
/// profiled by another version.
pub fn parts(out: &Path, own: Option<&Part>) -> Result<Vec<Part>, String> {
    let wrong = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut found = Vec::new();
    let mut left_out = None;
    for entry in fs::read_dir(out).map_err(|error| wrong(out, &error))? {
        let path = entry.map_err(|error| wrong(out, &error))?.path();
        if !is_part(&path) {
            continue;
        }
        let text = match read(&path) {
            Ok(Some(text)) => text,
            Ok(None) => continue,
            // Another job has begun.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(wrong(&path, &error)),
        };
        match parse(&text) {
            Ok(part) => found.push(part),
            Err(why) if other_form(&text).is_some() => left_out = Some(wrong(&path, &why)),
            Err(why) => return Err(wrong(&path, &why)),
        }
    }
    if found.is_empty() {
        let none = || format!("{}: no part of any task here (part-N.json)", out.display());
        return Err(left_out.unwrap_or_else(none));
    }
    Ok(match own {
        Some(own) => of_job(found, own.job.clone(), own.tasks),
        None => of_last_job(found),
    })
}

/// The content of a file; `None`: it is no regular file. A pipe is not waited for.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(Some(text))
}

/// The number of the form of a part's file where it is another one than ours.
fn other_form(text: &[u8]) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: u32,
    }
    serde_json::from_slice(text).ok().map(|head: Head| head.format).filter(|form| *form != FORMAT)
}

/// Reads the content of a part's file.
pub fn parse(text: &[u8]) -> Result<Part, String> {
    let of_form = |form| format!("has form {form}, not {FORMAT}");
    // One of another form may have other fields, too.
    let part: Part = serde_json::from_slice(text)
        .map_err(|error| other_form(text).map_or_else(|| error.to_string(), of_form))?;
    if part.format != FORMAT {
        return Err(of_form(part.format));
    }
    if part.tasks > MOST_TASKS {
        return Err(format!("is of a job of {} tasks; a job has at most {MOST_TASKS}", part.tasks));
    }
    Ok(part)
}

/// The parts of the job of which one was written last, by task.
pub fn of_last_job(found: Vec<Part>) -> Vec<Part> {
    let Some(last) = found.iter().max_by_key(|part| part.started.saturating_add(part.wall)) else {
        return found;
    };
    let (job, tasks) = (last.job.clone(), last.tasks);
    of_job(found, job, tasks)
}

fn of_job(mut found: Vec<Part>, job: String, tasks: u32) -> Vec<Part> {
    found.retain(|part| part.job == job && part.tasks == tasks && part.task < tasks);
    // Of a task that has just ended there may be both parts: the final one comes first, and the
    // other is dropped.
    found.sort_by_key(|part| (part.task, part.interim.is_some()));
    found.dedup_by_key(|part| part.task);
    found
}

/// Whether all of a job's `tasks` have written their final part.
pub fn all_written(out: &Path, tasks: u32) -> bool {
    in_mixed_order(tasks).all(|task| place(out, task).exists())
}

/// A number for the files of all parts in a folder, which is another one once any of them was
/// written again. Their times are not compared with those of others: a clock may have been set
/// back.
pub fn files_of(out: &Path) -> u64 {
    let entries = fs::read_dir(out).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_part(path)).collect();
    paths.sort_unstable();
    let mut hasher = DefaultHasher::new();
    for path in paths {
        path.file_name().hash(&mut hasher);
        let file = fs::metadata(path).ok();
        file.map(|file| (file.ino(), file.mtime(), file.mtime_nsec(), file.len())).hash(&mut hasher);
    }
    hasher.finish()
}

/// All tasks, so that the first few are a sample of them: each task that ends asks whether others
/// have ended, and one that ends when half of them have shall find one that has not with its second
/// question, in whichever order they end.
fn in_mixed_order(tasks: u32) -> impl Iterator<Item = u32> {
    let bits = u32::BITS - tasks.saturating_sub(1).leading_zeros();
    let all = if tasks == 0 { 0 } else { 1_u64 << bits };
    (0..all as u32)
        .map(move |at| at.reverse_bits().checked_shr(u32::BITS - bits).unwrap_or(0))
        .filter(move |task| *task < tasks)
}

fn place(out: &Path, task: u32) -> PathBuf {
    out.join(format!("part-{task}.json"))
}

fn interim_place(out: &Path, task: u32) -> PathBuf {
    out.join(format!("part-{task}.interim.json"))
}

fn is_part(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = name.strip_prefix("part-").and_then(|rest| rest.strip_suffix(".json"));
    let number = number.map(|rest| rest.strip_suffix(".interim").unwrap_or(rest));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::{FORMAT, Part, fs, in_mixed_order, of_last_job, parse, parts, write, write_whole};
    use crate::report::{Report, trace};
    use serde_json::{Value, json};
    use std::path::PathBuf;

    /// A new and empty folder.
    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("lapiprof-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a folder");
        dir
    }

    fn damaged(changes: &[(&str, Value)]) -> Vec<u8> {
        let most = u64::MAX;
        let moved = json!({"count": most, "bytes": most, "time": most});
        let sizes = json!([{"from": 64, "count": most}]);
        let site = json!({"call": "LAPI_Put", "class": "put", "site": "", "object": "", "line": "", "address": "", "count": most,
            "open": most, "errors": most, "bytes": most, "time": most, "longest": most, "sizes": sizes});
        let link = json!({"origin": 0, "target": 1, "network": true, "put": moved, "get": moved, "am": moved,
            "rmw": moved, "sizes": sizes});
        let event =
            json!({"row": 0, "thread": 0, "start": most, "time": most, "peer": 1, "bytes": most, "calls": 1});
        let mut part = json!({"format": FORMAT, "job": "", "task": 0, "tasks": 2, "host": "", "pid": 1, "program": "",
            "interim": null, "started": 7, "wall": most, "processors": "0-", "cpu": most, "threads": 1, "thread_names": ["main"], "sites": [site, site], "links": [link],
            "stretch": most, "timeline": [[most, 0, 0, 0, 0, 0, 0], [most, 0, 0, 0, 0, 0, 0]],
            "timeline_bytes": [[most, most, most, most], [most, 0, 0, 0]],
            "timeline_time": [[most, most, most, most, most, most, most], [7, 0, 0, 0, most, 0, 0]], "events_limit": most,
            "events_left_out": most, "events_to_come": most, "events": [event]});
        for (name, value) in changes {
            part[*name] = value.clone();
        }
        part.to_string().into_bytes()
    }

    #[test]
    fn whether_all_have_ended_costs_each_task_a_few_questions() {
        for tasks in [0, 1, 2, 3, 64, 1000] {
            let mut all: Vec<u32> = in_mixed_order(tasks).collect();
            all.sort_unstable();
            assert_eq!(all, (0..tasks).collect::<Vec<_>>());
        }
        let tasks = 1024;
        let questions = |has_ended: &dyn Fn(u32) -> bool| {
            in_mixed_order(tasks).position(|task| !has_ended(task)).map_or(tasks as usize, |at| at + 1)
        };
        let in_order: usize = (1..=tasks).map(|ended| questions(&|task| task < ended)).sum();
        let backwards: usize = (1..=tasks).map(|ended| questions(&|task| task >= tasks - ended)).sum();
        for sum in [in_order, backwards] {
            assert!(sum < 20 * tasks as usize, "{in_order} {backwards}");
        }
    }

    #[test]
    fn numbers_of_a_damaged_part_do_not_overflow() {
        let one = parse(&damaged(&[])).expect("its form is right");
        let two =
            parse(&damaged(&[("task", json!(1)), ("started", json!(u64::MAX))])).expect("its form is right");
        let parts = of_last_job(vec![one, two]);
        let report = Report::of(&parts);
        assert_eq!((report.calls[0].count, report.remote.bytes), (u64::MAX, u64::MAX));
        assert_eq!((report.task[0].calls, report.events_left_out), (u64::MAX, u64::MAX));
        serde_json::from_str::<Value>(&trace(&parts)).expect("a trace");
    }

    #[test]
    fn what_is_no_part_of_this_form_prevents_no_report() {
        let dir = folder("forms");
        // Of an older version: it has fewer fields, or means others by them.
        fs::write(dir.join("part-5.json"), r#"{"format": 2, "task": 5}"#).expect("a file");
        fs::write(dir.join("part-6.json"), damaged(&[("format", json!(6))])).expect("a file");
        let pipe = std::ffi::CString::new(dir.join("part-9.json").display().to_string()).expect("a name");
        // SAFETY: a name that ends.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        let why = parts(&dir, None).expect_err("nothing is left");
        assert!(why.contains("has form ") && why.ends_with(&format!(", not {FORMAT}")), "{why}");
        write(&dir, &Part::empty(1)).expect("the folder is ours");
        assert_eq!(parts(&dir, None).expect("one is left").len(), 1);
        fs::write(dir.join("part-0.json"), r#"{"format": 7, "#).expect("a file");
        let why = parts(&dir, None).expect_err("one is damaged");
        assert!(why.contains("part-0.json"), "{why}");
        fs::remove_dir_all(&dir).expect("the folder is ours");
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_none_behind() {
        let dir = folder("unwritten");
        // No file takes the place of a folder.
        fs::create_dir(dir.join("part-0.json")).expect("a folder");
        let why = write_whole(&dir.join("part-0.json"), b"{}").expect_err("there is a folder");
        assert!(why.contains("part-0.json cannot be written"), "{why}");
        assert_eq!(fs::read_dir(&dir).expect("our folder").count(), 1);
        fs::remove_dir_all(&dir).expect("the folder is ours");
    }

    #[test]
    fn a_part_of_a_job_that_cannot_be_is_refused() {
        for tasks in [u32::MAX, (1 << 16) + 1] {
            let part = damaged(&[("tasks", json!(tasks))]);
            assert!(parse(&part).is_err_and(|why| why.contains(&format!("a job of {tasks} tasks"))));
        }
        assert!(
            of_last_job(vec![parse(&damaged(&[("task", json!(2))])).expect("its form is right")]).is_empty()
        );
        assert!(parse(&damaged(&[("format", json!(1))])).is_err_and(|why| why.contains("has form 1")));
    }
}
