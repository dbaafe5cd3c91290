//! What one task has to tell: gathered when its last handle ends, printed, and written for the job's report.

mod data;
mod files;
mod gather;
mod table;

pub use data::{Link, Part, SiteRow, SizeCount};
pub use files::{count, parts, write_whole};

use crate::{merge, process, settings};
use std::io::Write;

/// Prints this task's table, writes its part, and merges the job's report if this was the last part.
pub fn report() {
    let settings = settings::get();
    let part = gather::gather();
    if settings.table.wanted(process::task()) {
        // In one piece: the tables of different tasks must not run into each other.
        let _ = std::io::stderr().lock().write_all(table::table(&part).as_bytes());
    }
    let Some(out) = &settings.out else { return };
    let written = files::write(out, &part).and_then(|()| merge::if_complete(out, &part));
    if let Err(error) = written {
        eprintln!("lapiprof: task {}: {error}", part.task);
    }
}

/// Takes away what an earlier job, or this process before, has left in this task's name. `first`: no handle is open.
pub fn remove_stale(first: bool) {
    if let (true, Some(out), Some(task)) = (first, &settings::get().out, gather::task_of_environment()) {
        files::remove(out, task);
    }
}
