//! Headers of messages.

use super::atomic::{Change, Kind};
use super::bytes::Fields;
pub use super::bytes::Header;

/// Bytes of a run in front of a scatter's data, or as a gather's: its offset in the piece and its
/// length, 64 bits each.
pub const RUN: usize = 16;

/// What a vector message touches in a piece of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Elements at equal distances.
    Strided {
        /// Bytes of an element.
        element: u64,
        /// How many.
        count: u64,
        /// Where the first one begins in the piece, in bytes.
        first: u64,
        /// From the beginning of one to that of the next, in bytes.
        stride: u64,
    },
    /// As many runs of bytes, each with its offset and length ([`RUN`]) at the beginning of the
    /// message's data.
    Runs {
        /// How many.
        count: u64,
    },
}

/// The runs at the beginning of data: offset and length. `None`: it has not as many.
pub fn runs(data: &[u8], count: u64) -> Option<impl ExactSizeIterator<Item = (u64, u64)> + Clone + '_> {
    let bytes = usize::try_from(count).ok()?.checked_mul(RUN)?;
    let (all, _) = data.get(..bytes)?.as_chunks::<RUN>();
    Some(all.iter().map(|run| {
        let (offset, length) = run.split_at(8);
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        (number(offset), number(length))
    }))
}

/// A message. Its number is the sender's, and the reply repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Something is asked: the data is an [`Ask`](super::Ask).
    Ask {
        /// The operation.
        number: u64,
    },
    /// The answer: the data is an [`Answer`](super::Answer) or a failure.
    Answer {
        /// The operation.
        number: u64,
    },
    /// The data goes into a piece of an item. Reply: [`Message::Done`].
    Put {
        /// The operation.
        number: u64,
        /// The number that the server has given to the ticket.
        item: u32,
        /// Where in the piece.
        offset: u64,
    },
    /// Bytes of a piece are wanted. Reply: [`Message::Data`], or [`Message::Done`] with a code.
    Get {
        /// The operation.
        number: u64,
        /// The number that the server has given to the ticket.
        item: u32,
        /// Where in the piece.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// The data goes to several places of a piece. Reply: [`Message::Done`].
    Scatter {
        /// The operation.
        number: u64,
        /// The number that the server has given to the ticket.
        item: u32,
        /// Which places.
        shape: Shape,
    },
    /// Bytes of several places of a piece are wanted, one after the other. Reply: as of
    /// [`Message::Get`].
    Gather {
        /// The operation.
        number: u64,
        /// The number that the server has given to the ticket.
        item: u32,
        /// Which places.
        shape: Shape,
    },
    /// A number in a piece changes as one step. Reply: [`Message::Old`], or [`Message::Done`] with
    /// a code.
    Atomic {
        /// The operation.
        number: u64,
        /// The number that the server has given to the ticket.
        item: u32,
        /// Where in the piece.
        offset: u64,
        /// What happens to it.
        change: Change,
        /// What kind of number it is.
        kind: Kind,
        /// By which.
        operand: u128,
        /// Equal to which: of [`Change::CompareSwap`] alone.
        comparand: u128,
    },
    /// An operation has ended.
    Done {
        /// The operation.
        number: u64,
        /// 0, or the code of a [`FamError`](crate::FamError).
        code: i32,
    },
    /// The data that was wanted.
    Data {
        /// The operation.
        number: u64,
    },
    /// What a number was before.
    Old {
        /// The operation.
        number: u64,
        /// In its low bytes; the others are 0.
        value: u128,
    },
}

const ASK: u8 = 1;
const ANSWER: u8 = 2;
const PUT: u8 = 3;
const GET: u8 = 4;
const SCATTER: u8 = 5;
const GATHER: u8 = 6;
const ATOMIC: u8 = 7;
const DONE: u8 = 8;
const DATA: u8 = 9;
const OLD: u8 = 10;

const STRIDED: u8 = 1;
const RUNS: u8 = 2;

impl Shape {
    fn encode(self, header: Header) -> Header {
        match self {
            Self::Strided { element, count, first, stride } => {
                header.with([STRIDED]).u64(element).u64(count).u64(first).u64(stride)
            }
            Self::Runs { count } => header.with([RUNS]).u64(count),
        }
    }

    fn decode(from: &mut Fields<'_>) -> Option<Self> {
        match from.u8()? {
            STRIDED => Some(Self::Strided {
                element: from.u64()?,
                count: from.u64()?,
                first: from.u64()?,
                stride: from.u64()?,
            }),
            RUNS => Some(Self::Runs { count: from.u64()? }),
            _ => None,
        }
    }
}

impl Message {
    /// The operation that it belongs to.
    pub fn number(&self) -> u64 {
        match *self {
            Self::Ask { number }
            | Self::Answer { number }
            | Self::Put { number, .. }
            | Self::Get { number, .. }
            | Self::Scatter { number, .. }
            | Self::Gather { number, .. }
            | Self::Atomic { number, .. }
            | Self::Done { number, .. }
            | Self::Data { number }
            | Self::Old { number, .. } => number,
        }
    }

    /// The header.
    pub fn encode(&self) -> Header {
        let begun = |kind| Header::of(kind).u64(self.number());
        match *self {
            Self::Ask { .. } => begun(ASK),
            Self::Answer { .. } => begun(ANSWER),
            Self::Put { item, offset, .. } => begun(PUT).u32(item).u64(offset),
            Self::Get { item, offset, length, .. } => begun(GET).u32(item).u64(offset).u64(length),
            Self::Scatter { item, shape, .. } => shape.encode(begun(SCATTER).u32(item)),
            Self::Gather { item, shape, .. } => shape.encode(begun(GATHER).u32(item)),
            Self::Atomic { item, offset, change, kind, operand, comparand, .. } => begun(ATOMIC)
                .u32(item)
                .u64(offset)
                .with([change as u8, kind as u8])
                .with(operand.to_le_bytes())
                .with(comparand.to_le_bytes()),
            Self::Done { code, .. } => begun(DONE).with(code.to_le_bytes()),
            Self::Data { .. } => begun(DATA),
            Self::Old { value, .. } => begun(OLD).with(value.to_le_bytes()),
        }
    }

    /// The message of a header; `None`: it is none.
    pub fn decode(header: &[u8]) -> Option<Self> {
        let mut from = Fields(header);
        let (kind, number) = (from.u8()?, from.u64()?);
        let message = match kind {
            ASK => Self::Ask { number },
            ANSWER => Self::Answer { number },
            PUT => Self::Put { number, item: from.u32()?, offset: from.u64()? },
            GET => Self::Get { number, item: from.u32()?, offset: from.u64()?, length: from.u64()? },
            SCATTER => Self::Scatter { number, item: from.u32()?, shape: Shape::decode(&mut from)? },
            GATHER => Self::Gather { number, item: from.u32()?, shape: Shape::decode(&mut from)? },
            ATOMIC => Self::Atomic {
                number,
                item: from.u32()?,
                offset: from.u64()?,
                change: Change::of(from.u8()?)?,
                kind: Kind::of(from.u8()?)?,
                operand: from.u128()?,
                comparand: from.u128()?,
            },
            DONE => Self::Done { number, code: from.u32()?.cast_signed() },
            DATA => Self::Data { number },
            OLD => Self::Old { number, value: from.u128()? },
            _ => return None,
        };
        from.0.is_empty().then_some(message)
    }
}
