//! What a job inherits from the process that starts it: signals, descriptors, limits, folders.

mod inherited;
mod limits;
mod terminals;
mod words;
