//! Byte layouts of what tasks send each other.

pub mod frame;
pub mod packet;
pub mod reunion;
