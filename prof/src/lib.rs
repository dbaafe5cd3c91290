//! liblapiprof.so: a profiler of LAPI programs.
//!
//! It exports every call of LAPI by its own name, makes the call by its other name (PLAPI_X, the
//! manual's chapter 9), and counts and times it. It is linked before LAPI's library or preloaded.
//! docs/profiling.md lists what it measures, and what it cannot measure.
//!
//! `calls` lists what is counted separately, `record` is what a call writes, `wrap` and
//! `handlers` are what the program and LAPI call, `places` is where a program in Python calls,
//! `identity` is the task's number, `process` decides when to report, `watcher`, `signals` (with
//! `signal_sets`) and `exit` report for a task that is interrupted, `part` is what one task
//! reports, and `merge` and `report` make one report of all tasks.

mod calls;
mod exit;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod handlers;
mod identity;
mod long_calls;
mod memory;
pub mod merge;
mod part;
mod places;
mod process;
mod real;
mod record;
mod report;
mod settings;
mod signal_sets;
mod signals;
mod site;
pub mod symbols;
mod watcher;
mod wrap;
