//! What one task reports: gathered when its last handle ends or the task is interrupted, printed,
//! and written for the job's report.

mod data;
mod files;
mod gather;
mod table;

#[cfg(feature = "fuzz")]
pub use data::FORMAT;
pub use data::{Event, Moved, Part, SiteRow, SizeCount, TaskPair};
pub use files::{all_written, files_of, parts, write, write_whole};
#[cfg(feature = "fuzz")]
pub use files::{of_last_job, parse};
pub use gather::gather;

use crate::settings;
use openlapi::base::patient;

/// Prints the table of a part, if the settings ask for it.
pub fn print(part: &Part) {
    if settings::get().table.wanted(part.task) {
        // In one piece, so that the tables of different tasks do not mix.
        patient::say(table::table(part).as_bytes());
    }
}

/// Before the process's first LAPI_Init, or one after its last LAPI_Term (`first`: no handle is
/// open): removes the parts that an earlier job, or this process, has left in this task's name.
pub fn remove_stale(first: bool) {
    gather::about();
    if let (true, Some(out), Some(task)) = (first, &settings::get().out, gather::task_of_environment()) {
        files::remove(out, task);
    }
}
