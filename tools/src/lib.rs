//! The tools that come with the library. [`poe`] starts jobs, [`lapi_info`] shows the settings in effect, [`lapi_perf`]
//! measures.

pub mod lapi_info;
pub mod lapi_perf;
mod patient;
pub mod poe;
mod spelling;
