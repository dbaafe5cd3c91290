//! Byte layouts of what tasks send each other, and the text between a task and its launcher.

pub mod board;
pub mod bytes;
pub mod card;
pub mod coalesced;
pub mod datagram;
pub mod exchange;
pub mod frame;
pub mod hello;
pub mod key;
pub mod launcher;
pub mod network;
pub mod packet;
pub mod rails;
pub mod user_header;
