//! The parts of a job in their folder.

use super::data::{FORMAT, Part};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a part as a whole: a reader finds all of it, or the one before. A final part takes the place of an interim one.
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

/// Writes a file under another name first.
pub fn write_whole(path: &Path, text: &[u8]) -> Result<(), String> {
    let fresh = path.with_extension(format!("new{}", std::process::id()));
    fs::write(&fresh, text)
        .and_then(|()| fs::rename(&fresh, path))
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// Removes the parts of a task, if there are any.
pub fn remove(out: &Path, task: u32) {
    let _ = fs::remove_file(place(out, task));
    let _ = fs::remove_file(interim_place(out, task));
}

/// Reads the parts of the job of which one was written last, by task: the final part, or else the interim one.
pub fn parts(out: &Path) -> Result<Vec<Part>, String> {
    let wrong = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(out).map_err(|error| wrong(out, &error))? {
        let path = entry.map_err(|error| wrong(out, &error))?.path();
        if !is_part(&path) {
            continue;
        }
        let text = match fs::read(&path) {
            Ok(text) => text,
            // Another job has begun.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(wrong(&path, &error)),
        };
        let part: Part = serde_json::from_slice(&text).map_err(|error| wrong(&path, &error))?;
        if part.format != FORMAT {
            return Err(wrong(&path, &format!("has form {}, not {FORMAT}", part.format)));
        }
        found.push(part);
    }
    let Some(last) = found.iter().max_by_key(|part| part.started + part.wall) else {
        return Err(format!("{}: no part of any task here (part-N.json)", out.display()));
    };
    let (job, tasks) = (last.job.clone(), last.tasks);
    found.retain(|part| part.job == job && part.tasks == tasks && part.task < tasks);
    // Of a task that has just ended there may be both parts: the final one comes first, and the other is dropped.
    found.sort_by_key(|part| (part.task, part.interim.is_some()));
    found.dedup_by_key(|part| part.task);
    Ok(found)
}

/// How many of a job's `tasks` have written their final part.
pub fn count(out: &Path, tasks: u32) -> u32 {
    (0..tasks).filter(|task| place(out, *task).exists()).count() as u32
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
