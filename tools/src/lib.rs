//! The tools that come with the library. [`poe`] starts jobs, [`lapi_info`] shows the settings in
//! effect, [`lapi_perf`] measures, [`lapi_top`] shows what the tasks of a job do.

pub mod lapi_info;
pub mod lapi_perf;
pub mod lapi_top;
mod named_file;
pub mod poe;
mod prefix;
mod said;
mod spelling;
