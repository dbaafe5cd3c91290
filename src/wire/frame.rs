//! A packet as transports see it: a short head and a body, whatever they mean.

use crate::memory::bytes::{Piece, Source, pad8};

/// A task of the job: 0 up to the number of tasks.
pub type Task = u32;

/// The longest head of a packet, in bytes. Heads are a multiple of 8 bytes long.
pub const HEAD_MAX: usize = 48;

/// A packet on its way out. The body that arrives is `first`, padded to a multiple of 8 bytes when
/// `second` is not empty, followed by `second`.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The head: at most [`HEAD_MAX`] bytes, a multiple of 8.
    pub head: &'a [u8],
    /// The first piece of the body.
    pub first: Piece,
    /// The second piece of the body.
    pub second: Source<'a>,
    /// With more bytes than this in the second piece, its memory stays readable and unchanged until
    /// the packet is reported, so that the packet may be taken ([`SendOutcome::Taken`]).
    /// `usize::MAX`: never.
    pub copy_limit: usize,
}

impl Outgoing<'_> {
    /// The second piece, when the packet may be taken: longer than `copy_limit`, and contiguous.
    pub fn lendable(&self) -> Option<Piece> {
        match self.second {
            Source::Piece(piece) if piece.len > self.copy_limit => Some(piece),
            Source::Piece(_) | Source::Gathered { .. } => None,
        }
    }

    /// The length of the body in bytes, the padding between its two pieces included.
    pub fn body_len(&self) -> usize {
        if self.second.is_empty() { self.first.len } else { pad8(self.first.len) + self.second.len() }
    }
}

/// Names a packet that an endpoint has taken. No two that it has not reported yet have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// The outcome of an attempt to send a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The packet was accepted, and its memory is free.
    Sent,
    /// The packet was accepted, its memory is free, and it waits here for others, to be
    /// sent with them.
    Held,
    /// The packet was accepted, but its second piece is read until the ticket is reported. Head and
    /// first piece were copied.
    Taken(Ticket),
    /// No room now; nothing was changed. Try again after the peer has made progress.
    NoRoom,
    /// The peer has left: no packet will ever reach it. Nothing that was taken for it is read or
    /// reported any more.
    Gone,
}

impl SendOutcome {
    /// The ticket of an accepted packet, if it was taken.
    ///
    /// # Errors
    /// The packet was not accepted.
    #[inline]
    pub fn accepted(self) -> Result<Option<Ticket>, SendError> {
        match self {
            Self::Sent | Self::Held => Ok(None),
            Self::Taken(ticket) => Ok(Some(ticket)),
            Self::NoRoom => Err(SendError::NoRoom),
            Self::Gone => Err(SendError::PeerGone),
        }
    }
}

/// Why a packet was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// No room now; nothing was changed. Try again after the peer has made progress.
    NoRoom,
    /// The peer has left: no packet will ever reach it.
    PeerGone,
}
