//! Tickets: what a keeper lets a user do to an item, and where the item lies. A server of memory
//! believes one by its seal.

use super::MOST_SERVERS;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Bytes of the secret of a pool.
pub const SECRET: usize = 32;
/// The right to read.
pub const READ: u8 = 1;
/// The right to write.
pub const WRITE: u8 = 2;

/// The part of an item that lies on one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The server's number in the pool.
    pub server: u64,
    /// The part of a region there.
    pub part: u64,
    /// Where the piece begins in the part, in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
}

/// What a user may do to an item, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The item; no other one has had its number.
    pub item: u64,
    /// The number of the user who may show it.
    pub user: u32,
    /// [`READ`] and [`WRITE`].
    pub rights: u8,
    /// Bytes of the item.
    pub size: u64,
    /// Bytes of a block: block b lies in piece b mod n of n, as block b / n there. Of an item in
    /// one piece, its size.
    pub block: u64,
    /// The pieces.
    pub pieces: Vec<Piece>,
}

/// A range of an item that lies in one piece without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The piece, as its place among [`Ticket::pieces`].
    pub piece: usize,
    /// Where the range begins in the piece, in bytes.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

impl Ticket {
    /// The lengths of the pieces of an item of `size` bytes in blocks, over as many servers.
    pub fn lengths(size: u64, block: u64, servers: usize) -> Vec<u64> {
        let (servers, whole) = (servers as u64, size / block);
        let length = |piece: u64| {
            let blocks = whole / servers + u64::from(piece < whole % servers);
            blocks * block + if piece == whole % servers { size % block } else { 0 }
        };
        (0..servers).map(length).collect()
    }

    /// Where a range lies, in the order of the item's bytes. The range must be within the item.
    pub fn segments(&self, offset: u64, length: u64) -> impl Iterator<Item = Segment> + '_ {
        let (mut at, end, pieces) = (offset, offset + length, self.pieces.len() as u64);
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (number, within) = (at / self.block, at % self.block);
            // One piece has all that follows.
            let rest = if pieces == 1 { end - at } else { self.block - within };
            let length = rest.min(end - at);
            at += length;
            let offset = number / pieces * self.block + within;
            Some(Segment { piece: (number % pieces) as usize, offset, length })
        })
    }

    /// Whether a range is within the item.
    pub fn has(&self, offset: u64, length: u64) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.size)
    }

    /// Whether its numbers fit together.
    fn is_sound(&self) -> bool {
        let servers = self.pieces.len();
        self.block != 0
            && self.size != 0
            && (1..=MOST_SERVERS).contains(&servers)
            && self.rights & !(READ | WRITE) == 0
            && (servers == 1 || self.block.is_power_of_two())
            && self.pieces.iter().map(|piece| piece.length).eq(Self::lengths(self.size, self.block, servers))
            && self.pieces.iter().all(|piece| piece.offset.checked_add(piece.length).is_some())
    }
}

/// A ticket and its seal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    ticket: Vec<u8>,
    seal: [u8; 32],
}

fn keyed(secret: &[u8; SECRET], ticket: &[u8]) -> Hmac<Sha256> {
    // A key of any length is one.
    let mut hmac = <Hmac<Sha256> as Mac>::new_from_slice(secret).expect("a key of any length");
    hmac.update(b"OpenFAM ticket\0");
    hmac.update(ticket);
    hmac
}

impl Sealed {
    /// A ticket with a seal by the secret of the pool.
    pub fn new(ticket: &Ticket, secret: &[u8; SECRET]) -> Self {
        let ticket = postcard::to_allocvec(ticket).unwrap_or_default();
        let seal = keyed(secret, &ticket).finalize().into_bytes().into();
        Self { ticket, seal }
    }

    /// The ticket, if the secret has sealed it.
    pub fn open(&self, secret: &[u8; SECRET]) -> Option<Ticket> {
        keyed(secret, &self.ticket).verify_slice(&self.seal).ok()?;
        self.read()
    }

    /// The ticket of a keeper that is trusted; `None`: it is none.
    pub fn read(&self) -> Option<Ticket> {
        let (ticket, rest) = postcard::take_from_bytes::<Ticket>(&self.ticket).ok()?;
        (rest.is_empty() && ticket.is_sound()).then_some(ticket)
    }
}
