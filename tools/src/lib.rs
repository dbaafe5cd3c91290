//! The tools that come with the library. [`poe`] starts jobs, [`lapi_info`] tells what a job would find here.

pub mod lapi_info;
pub mod poe;
