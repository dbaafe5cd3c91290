//! The tools that come with the library. [`poe`] starts jobs, [`lapi_info`] shows the settings in effect.

pub mod lapi_info;
pub mod poe;
mod spelling;
