//! The parts of a job in their folder.

use super::data::{FORMAT, Part};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a part; whoever looks for it finds all of it or nothing.
pub fn write(out: &Path, part: &Part) -> Result<(), String> {
    fs::create_dir_all(out).map_err(|error| format!("{} cannot be made: {error}", out.display()))?;
    let text = serde_json::to_vec(part).map_err(|error| format!("the part cannot be written: {error}"))?;
    write_whole(&place(out, part.task), &text)
}

/// Writes a file under another name first.
pub fn write_whole(path: &Path, text: &[u8]) -> Result<(), String> {
    let fresh = path.with_extension(format!("new{}", std::process::id()));
    fs::write(&fresh, text)
        .and_then(|()| fs::rename(&fresh, path))
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// Takes a part away, if there is one.
pub fn remove(out: &Path, task: u32) {
    let _ = fs::remove_file(place(out, task));
}

/// Reads the parts of the job of which one was written last, by task.
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
        return Err(format!("{}: there is no part of any task here (part-N.json)", out.display()));
    };
    let (job, tasks) = (last.job.clone(), last.tasks);
    found.retain(|part| part.job == job && part.tasks == tasks && part.task < tasks);
    found.sort_by_key(|part| part.task);
    Ok(found)
}

/// How many parts there are for a job of so many tasks.
pub fn count(out: &Path, tasks: u32) -> u32 {
    (0..tasks).filter(|task| place(out, *task).exists()).count() as u32
}

fn place(out: &Path, task: u32) -> PathBuf {
    out.join(format!("part-{task}.json"))
}

fn is_part(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = name.strip_prefix("part-").and_then(|rest| rest.strip_suffix(".json"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}
