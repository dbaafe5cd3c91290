//! Programs, and what they are compared with: for the tests and for the fuzz targets.

pub mod assemble;
pub mod interpreter;
pub mod properties;
