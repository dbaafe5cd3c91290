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

/// The version of all that two processes send each other, or have in memory that they share:
/// hellos, cards, packets, datagrams, rings, and what sessions say on their channel. It changes
/// whenever something of that changes, so that the first message of all shows it.
pub const VERSION: u16 = 23;
