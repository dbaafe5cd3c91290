//! A packet as transports see it: a short head and a body, whatever they mean.

use crate::base::bytes::{Piece, Source, pad8};

/// A task of the job: 0 up to the number of tasks.
pub type Task = u32;

/// The longest head of a packet, in bytes. Heads are a multiple of 8 bytes long.
pub const HEAD_MAX: usize = 48;

/// A packet on its way out. The body that arrives is `first`, padded to a multiple of 8 bytes when `second` is
/// not empty, followed by `second`.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The head: at most [`HEAD_MAX`] bytes, a multiple of 8.
    pub head: &'a [u8],
    /// The first piece of the body.
    pub first: Piece,
    /// The second piece of the body.
    pub second: Source<'a>,
}

impl Outgoing<'_> {
    /// The length of the body in bytes, the padding between its two pieces included.
    pub fn body_len(&self) -> usize {
        if self.second.is_empty() { self.first.len } else { pad8(self.first.len) + self.second.len() }
    }
}

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// No room now; nothing was changed. Try again after the peer has made progress.
    NoRoom,
    /// The peer has left: no packet will ever reach it.
    PeerGone,
}
