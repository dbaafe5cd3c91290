//! The report of a job, as data, as a trace and as a page.

mod findings;
mod page;
mod summary;
mod trace;

pub use page::page;
pub use summary::Report;
pub use trace::trace;
