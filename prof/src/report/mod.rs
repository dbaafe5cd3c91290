//! The report of a job, as data, as a trace and as a page.

mod arrows;
mod crowd;
mod findings;
mod lanes;
mod page;
mod summary;
mod thin;
mod trace;

pub use page::page;
pub use summary::Report;
pub use trace::trace;

use crate::part::Part;

/// The report of these parts, with its findings.
pub fn of(parts: &[Part]) -> Report {
    let mut report = Report::of(parts);
    report.findings = findings::findings(&report);
    report
}
