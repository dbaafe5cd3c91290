//! What the library and the daemon say to each other: headers of the session's messages. Numbers
//! are little endian.
//!
//! The library begins with [`Request::Start`], and the daemon answers with [`Answer::Started`].
//! Then each persist, drain, change of the attributes and the end has one [`Answer::Done`], which
//! names the lane.

use crate::attributes::Attributes;
use crate::bytes::{Bytes, Fields};

/// The version of these messages. Sides that differ refuse each other by EPROTONOSUPPORT.
pub const VERSION: u32 = 1;
/// The first number of [`Request::Start`], and of its answer.
const MAGIC: u32 = 0x4d45_4d52;
/// The longest name of a pool set, in bytes: PATH_MAX.
pub const LONGEST_NAME: usize = 4096;
/// The most lanes of a pool.
pub const MOST_LANES: u32 = 1024;
/// The most bytes that travel with the request, and land as a whole.
pub const WHOLE: usize = 8192;
/// The lane of answers to [`Request::SetAttributes`] and [`Request::Close`].
pub const NO_LANE: u32 = u32::MAX;

/// Whether the name of a set is a path below the daemon's folder of sets.
pub fn is_below(set: &str) -> bool {
    !set.is_empty() && !set.starts_with('/') && set.split('/').all(|name| name != "..")
}

/// How a range of the pool is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// As it is usual for the pool's files.
    Usual,
    /// By msync in any case.
    Deep,
}

/// A range of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// From the beginning of the pool, in bytes.
    pub offset: u64,
    /// In bytes.
    pub length: u64,
}

/// What the library asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The daemon opens a pool. The name of the set is the message's data.
    Start {
        /// The library's [`VERSION`].
        version: u32,
        /// The size of the local pool, in bytes.
        size: u64,
        /// How many lanes there will be.
        lanes: u32,
        /// The pool is created, with these attributes.
        create: Option<Attributes>,
    },
    /// The range is made durable, and an answer is sent. Data of the message goes there first.
    Persist {
        /// The lane that the answer names.
        lane: u32,
        /// Where.
        range: Range,
        /// How.
        depth: Depth,
    },
    /// The range is made durable by the lane's next drain. Data of the message goes there first.
    Flush {
        /// The lane.
        lane: u32,
        /// Where.
        range: Range,
    },
    /// An answer is sent when this many flushes of the lane since the last one are durable.
    Drain {
        /// The lane.
        lane: u32,
        /// How many.
        flushes: u64,
    },
    /// The attributes in the pool's headers change.
    SetAttributes(Attributes),
    /// The pool is closed.
    Close,
}

/// What the daemon answers. The text of a failure is the message's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The pool is open, or `errno` says why not.
    Started {
        /// The daemon's [`VERSION`].
        version: u32,
        /// 0, or the failure.
        errno: i32,
        /// The address of the pool in the daemon.
        base: u64,
        /// Whether the first 4096 bytes are a header.
        has_header: bool,
        /// The attributes of the pool; zeros without a header.
        attributes: Attributes,
    },
    /// A request is done.
    Done {
        /// Whose, or [`NO_LANE`].
        lane: u32,
        /// 0, or the failure.
        errno: i32,
    },
}

const START: u32 = 1;
const PERSIST: u32 = 2;
const DEEP: u32 = 3;
const FLUSH: u32 = 4;
const DRAIN: u32 = 5;
const SET_ATTRIBUTES: u32 = 6;
const CLOSE: u32 = 7;
const STARTED: u32 = 8;
const DONE: u32 = 9;

fn range(from: &mut Fields<'_>) -> Option<Range> {
    Some(Range { offset: from.u64()?, length: from.u64()? })
}

impl Request {
    /// The header of a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Bytes::default();
        match self {
            Self::Start { version, size, lanes, create } => {
                to.u32s([START, MAGIC, *version]);
                to.u64(*size);
                to.u32(*lanes);
                if let Some(attributes) = create {
                    attributes.encode(&mut to);
                }
            }
            Self::Persist { lane, range, depth } => {
                to.u32(if *depth == Depth::Deep { DEEP } else { PERSIST });
                to.u32(*lane);
                to.u64s([range.offset, range.length]);
            }
            Self::Flush { lane, range } => {
                to.u32s([FLUSH, *lane]);
                to.u64s([range.offset, range.length]);
            }
            Self::Drain { lane, flushes } => {
                to.u32s([DRAIN, *lane]);
                to.u64(*flushes);
            }
            Self::SetAttributes(attributes) => {
                to.u32(SET_ATTRIBUTES);
                attributes.encode(&mut to);
            }
            Self::Close => to.u32(CLOSE),
        }
        to.0
    }

    /// The request of a header; `None`: it is none. Of another version's start, only the version
    /// is read.
    pub fn decode(header: &[u8]) -> Option<Self> {
        let mut from = Fields(header);
        let request = match from.u32()? {
            START => return Self::start(from),
            kind @ (PERSIST | DEEP) => {
                let depth = if kind == DEEP { Depth::Deep } else { Depth::Usual };
                Self::Persist { lane: from.u32()?, range: range(&mut from)?, depth }
            }
            FLUSH => Self::Flush { lane: from.u32()?, range: range(&mut from)? },
            DRAIN => Self::Drain { lane: from.u32()?, flushes: from.u64()? },
            SET_ATTRIBUTES => Self::SetAttributes(Attributes::decode(&mut from)?),
            CLOSE => Self::Close,
            _ => return None,
        };
        from.ended(request)
    }

    fn start(mut from: Fields<'_>) -> Option<Self> {
        if from.u32()? != MAGIC {
            return None;
        }
        let version = from.u32()?;
        if version != VERSION {
            return Some(Self::Start { version, size: 0, lanes: 0, create: None });
        }
        let (size, lanes) = (from.u64()?, from.u32()?);
        let create = if from.0.is_empty() { None } else { Some(Attributes::decode(&mut from)?) };
        from.ended(Self::Start { version, size, lanes, create })
    }
}

impl Answer {
    /// The header of a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Bytes::default();
        match self {
            Self::Started { version, errno, base, has_header, attributes } => {
                to.u32s([STARTED, MAGIC, *version, errno.cast_unsigned()]);
                to.u64(*base);
                to.u32(u32::from(*has_header));
                attributes.encode(&mut to);
            }
            Self::Done { lane, errno } => {
                to.u32s([DONE, *lane, errno.cast_unsigned()]);
            }
        }
        to.0
    }

    /// The answer of a header; `None`: it is none.
    pub fn decode(header: &[u8]) -> Option<Self> {
        let mut from = Fields(header);
        let answer = match from.u32()? {
            STARTED => {
                if from.u32()? != MAGIC {
                    return None;
                }
                let (version, errno) = (from.u32()?, from.u32()?.cast_signed());
                let (base, has_header) = (from.u64()?, from.u32()? != 0);
                let attributes = Attributes::decode(&mut from)?;
                Self::Started { version, errno, base, has_header, attributes }
            }
            DONE => Self::Done { lane: from.u32()?, errno: from.u32()?.cast_signed() },
            _ => return None,
        };
        from.ended(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let attributes =
            Attributes { signature: *b"PMEMOBJ\0", major: 6, user_flags: [9; 16], ..Default::default() };
        let range = Range { offset: 1 << 40, length: 77 };
        let requests = [
            Request::Start { version: VERSION, size: 5 << 33, lanes: 1024, create: None },
            Request::Start { version: VERSION, size: 8192, lanes: 1, create: Some(attributes) },
            Request::Persist { lane: 7, range, depth: Depth::Usual },
            Request::Persist { lane: 0, range, depth: Depth::Deep },
            Request::Flush { lane: 3, range },
            Request::Drain { lane: 3, flushes: 1 << 35 },
            Request::SetAttributes(attributes),
            Request::Close,
        ];
        for request in requests {
            let header = request.encode();
            assert_eq!(Request::decode(&header), Some(request.clone()));
            for end in 0..header.len() {
                assert_ne!(Request::decode(&header[..end]), Some(request.clone()), "cut at {end}");
            }
            assert_eq!(Request::decode(&[&header[..], &[0]].concat()), None, "{request:?} and more");
        }
        for answer in [
            Answer::Started { version: 2, errno: libc::EBUSY, base: 1 << 46, has_header: true, attributes },
            Answer::Done { lane: NO_LANE, errno: 0 },
        ] {
            let header = answer.encode();
            assert_eq!(Answer::decode(&header), Some(answer.clone()));
            assert!((0..header.len()).all(|end| Answer::decode(&header[..end]).is_none()), "{answer:?}");
        }
    }

    #[test]
    fn a_start_of_another_version_is_one() {
        let mut header = Request::Start { version: 9, size: 1, lanes: 1, create: None }.encode();
        header.extend(b"what only version 9 knows");
        assert_eq!(
            Request::decode(&header),
            Some(Request::Start { version: 9, size: 0, lanes: 0, create: None })
        );
    }
}
