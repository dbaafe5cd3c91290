//! liblapiprof.so: a profiler of LAPI programs.
//!
//! It has every call of LAPI by its own name, makes it by the other one (PLAPI_X, the manual's chapter 9), and counts
//! and times what it sees. It is linked before LAPI's library or preloaded. docs/profiling.md says what it measures, and
//! what it cannot.
//!
//! `calls` says what is told apart, `record` is what a call writes, `wrap` and `handlers` are what the program and LAPI
//! call, `identity` who this task is, `process` knows when it is time to report, `part` is what one task reports, and `merge` and `report` make one
//! of all tasks.

mod calls;
mod handlers;
mod identity;
mod memory;
pub mod merge;
mod part;
mod process;
mod real;
mod record;
mod report;
mod settings;
mod site;
mod symbols;
mod wrap;
