//! What one task has to tell: gathered when its last handle ends, printed, and written for the job's report.

mod data;
mod files;
mod gather;
mod table;

pub use data::{Link, Part, SiteRow, SizeCount};
pub use files::{count, parts, write, write_whole};

use crate::settings;
use std::io::Write;

/// Gathers this task's part, and prints its table if that is wanted.
pub fn print() -> Part {
    let part = gather::gather();
    if settings::get().table.wanted(part.task) {
        // In one piece: the tables of different tasks must not run into each other.
        let _ = std::io::stderr().lock().write_all(table::table(&part).as_bytes());
    }
    part
}

/// Takes away what an earlier job, or this process before, has left in this task's name. `first`: no handle is open.
pub fn remove_stale(first: bool) {
    if let (true, Some(out), Some(task)) = (first, &settings::get().out, gather::task_of_environment()) {
        files::remove(out, task);
    }
}
