//! What makes a datagram the job's own: each carries an envelope with a tag that only tasks which
//! know the job's secret can make, and no datagram is accepted twice.
//!
//! A sealed datagram is an *envelope* of [`ENVELOPE`] bytes, followed by the content:
//!
//! ```text
//! 0..4    the task that sends                     u32, little-endian
//! 4..8    the number of the connection            u32, little-endian: the low half of the sender's epoch
//! 8..16   the number of the datagram              u64, little-endian: from 1, each once in a connection
//! 16..32  the tag                                 of the envelope before it and of the content
//! 32..    the content                             encrypted, except in the mode `none`
//! ```
//!
//! The tag and the encryption are those of AEGIS-128X2; the nonce follows from the number of the
//! datagram. [`JobKey`] is what both tasks derive from the job's secret. Two tasks that connect
//! exchange messages with [`JobKey::tag`], each of which carries an [`End`]: the random bytes in it
//! make the keys of every connection new, also where two jobs have the same secret. From the two
//! ends follow a [`Sealer`] and an [`Opener`] ([`JobKey::connect`]), with a key for each direction.
//!
//! docs/design/0018-network-security.md has the reasons and the measurements.

mod cipher;
mod hello;
mod key;
mod notice;
mod replay;

pub use crate::config::NetSecurity as Security;
pub use hello::GREETING;
pub use key::{End, JobKey, Opener, Sealer};
pub use notice::{ANNOUNCEMENT, Announcement};

use crate::wire::frame::Task;

/// How many bytes a seal adds to the content of a datagram.
pub const ENVELOPE: usize = 32;

/// How many bytes a tag has.
pub const TAG: usize = 16;

/// Why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The datagram is too short to be sealed, is of another task or connection, or its tag is
    /// wrong: a stranger's, or changed on the way.
    Forged,
    /// The datagram was accepted before, or it is so old that this is not known any more.
    Replayed,
}

/// What the envelope says, before it is known to be true: by this the receiver finds
/// the [`Opener`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The task that claims to have sent it.
    pub from: Task,
    /// The number of the connection: the low half of the sender's epoch.
    pub connection: u32,
    /// The number of the datagram.
    pub number: u64,
}

impl Claim {
    /// Reads it from a datagram; `None` when that is too short to be sealed.
    pub fn of(datagram: &[u8]) -> Option<Self> {
        let envelope: &[u8; ENVELOPE] = datagram.first_chunk()?;
        let (from, rest) = envelope.split_first_chunk()?;
        let (connection, rest) = rest.split_first_chunk()?;
        let (number, _) = rest.split_first_chunk()?;
        Some(Self {
            from: u32::from_le_bytes(*from),
            connection: u32::from_le_bytes(*connection),
            number: u64::from_le_bytes(*number),
        })
    }

    /// The bytes before the tag.
    pub(super) fn bytes(self) -> [u8; ENVELOPE - TAG] {
        let mut bytes = [0; ENVELOPE - TAG];
        bytes[..4].copy_from_slice(&self.from.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.connection.to_le_bytes());
        bytes[8..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests;
