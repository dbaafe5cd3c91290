//! LAPI as `lapi_perf` uses it: the calls of the installed library by their names, memory that is
//! laid out alike in every task, and operations that are prepared once and started many times. All
//! `unsafe` of `lapi_perf` is in this folder.

mod cache_line;
mod handlers;
mod library;
mod memory;
mod operation;
mod scattered;
mod task;

pub(super) use cache_line::{CacheLine, Side};
pub(super) use memory::{Counter, Sizes, Word};
pub(super) use operation::{Counters, Prepared, Shape};
pub(super) use scattered::Blocks;
pub(super) use task::Task;
