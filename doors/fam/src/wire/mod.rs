//! What the library and the daemons say to each other: messages of sessions. The header of a
//! message says what it is ([`Message`]); what is asked and answered travels as its data
//! ([`Ask`], [`Answer`]), and so does what is moved.

mod asked;
mod atomic;
mod body;
mod bytes;
mod message;
#[cfg(test)]
mod tests;
mod ticket;

pub use asked::{Answer, Ask, Attributes, BackupFacts, ItemFacts, PartKind, RegionFacts, Role, Server};
pub use atomic::{Change, Kind};
pub use body::{LONGEST_BODY, decode, decode_answer, encode, encode_answer};
pub use message::{Header, Message, RUN, Shape, runs};
pub use ticket::{Piece, READ, SECRET, Sealed, Segment, Ticket, WRITE};

/// The version of the messages. Sides with different ones part.
pub const VERSION: u32 = 2;
/// The most bytes of a vector message that does not fit a packet, and of the reply to a gather;
/// longer ones are [`FamError::Resource`](crate::FamError), and go in several.
pub const MOST_VECTOR: usize = 64 << 20;
/// The longest name of a region, an item or a backup, in characters.
pub const LONGEST_NAME: usize = 40;
/// The most servers of memory of a pool.
pub const MOST_SERVERS: usize = 256;
