//! The tools that come with the library. [`poe`] starts jobs.

pub mod poe;
