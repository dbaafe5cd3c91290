//! What a job inherits from whoever starts it: signals, descriptors, limits, folders.

mod inherited;
mod limits;
mod terminals;
mod words;
