//! The heads of packets as bytes.

use super::Head;
use crate::base::ring::Filling;
use crate::wire::frame::HEAD_MAX;

// Bodies are written and read as words of memory.
const _: () = assert!(cfg!(target_endian = "little"), "packets hold little-endian words");

mod kind {
    pub const AM: u8 = 1;
    pub const PUT: u8 = 2;
    pub const DATA: u8 = 3;
    pub const GET: u8 = 4;
    pub const REPLY: u8 = 5;
    pub const RMW: u8 = 6;
    pub const RMW_REPLY: u8 = 7;
    pub const DONE: u8 = 8;
    pub const REQUEST_TO_SEND: u8 = 9;
    pub const FETCHED: u8 = 10;
    pub const FENCE: u8 = 11;
    pub const FENCE_ACK: u8 = 12;
    pub const COLLECTIVE: u8 = 13;
    pub const AMV: u8 = 14;
    pub const VECTOR: u8 = 15;
    pub const PLACED: u8 = 16;
    pub const WRITTEN: u8 = 18;
    pub const COLLECTIVE_FAILED: u8 = 20;
    pub const COLLECTIVE_AT: u8 = 23;
    pub const PING: u8 = 21;
    pub const PONG: u8 = 22;
    pub const PARTS_TO_SEND: u8 = 24;
    pub const NEXT_PARTS: u8 = 25;
    pub const MORE_PARTS: u8 = 26;
    pub const ACCESSED: u8 = 27;
    pub const PARTING: u8 = 28;
    pub const PARTING_REPLY: u8 = 29;
}

const TGT_CNTR: u8 = 1;
const COOKIE: u8 = 2;
const TOTAL: u8 = 4;
const ATOMS: u8 = 8;
const SHAPE: u8 = 16;
const MORE: u8 = 32;

/// The words that a head is written in: more than it can have, so that an optional word is written
/// before it is known to count.
const WORDS: usize = (HEAD_MAX / 8 + 1).next_power_of_two();

/// Where the words of a head are written, one after the other.
pub trait Words: Sized {
    /// The next word.
    fn word(self, value: u64) -> Self;

    /// The next word, unless it is 0.
    fn optional(self, value: u64) -> Self;
}

impl Words for Filling<'_> {
    #[inline(always)]
    fn word(self, value: u64) -> Self {
        Filling::word(self, value)
    }

    #[inline(always)]
    fn optional(self, value: u64) -> Self {
        Filling::optional(self, value)
    }
}

/// A head as it travels.
pub struct Encoded {
    words: [u64; WORDS],
    len: usize,
}

impl Encoded {
    /// The packet's first bytes, as they are sent.
    #[inline(always)]
    pub fn as_bytes(&self) -> &[u8] {
        &bytemuck::bytes_of(&self.words)[..self.len * 8]
    }
}

impl Words for Encoded {
    #[inline(always)]
    fn word(mut self, value: u64) -> Self {
        self.words[self.len % WORDS] = value;
        self.len += 1;
        self
    }

    #[inline(always)]
    fn optional(mut self, value: u64) -> Self {
        self.words[self.len % WORDS] = value;
        self.len += usize::from(value != 0);
        self
    }
}

/// The first word of a head.
#[inline(always)]
fn first(kind: u8, flags: u8, small: u16, id: u32) -> u64 {
    u64::from(kind) | u64::from(flags) << 8 | u64::from(small) << 16 | u64::from(id) << 32
}

#[inline]
fn flags(tgt_cntr: u64, cookie: u64, total: u64) -> u8 {
    let flag = |value: u64, flag: u8| if value == 0 { 0 } else { flag };
    flag(tgt_cntr, TGT_CNTR) | flag(cookie, COOKIE) | flag(total, TOTAL)
}

#[inline]
fn more_flag(more: bool) -> u8 {
    if more { MORE } else { 0 }
}

impl Head {
    /// The head as it travels.
    #[inline(always)]
    pub fn encode(&self) -> Encoded {
        self.write(Encoded { words: [0; WORDS], len: 0 })
    }

    /// Writes the head as it travels. Where the kind is known, few instructions are left of this.
    #[inline(always)]
    pub fn write<W: Words>(&self, to: W) -> W {
        match *self {
            Head::Am { id, uhdr_len, handler, tgt_cntr, cookie, total, atoms } => {
                let flags = flags(tgt_cntr, cookie, total) | if atoms { ATOMS } else { 0 };
                to.word(first(kind::AM, flags, uhdr_len, id))
                    .word(handler)
                    .optional(tgt_cntr)
                    .optional(cookie)
                    .optional(total)
            }
            Head::Amv { id, uhdr_len, handler, shape, tgt_cntr, cookie, total } => to
                .word(first(kind::AMV, flags(tgt_cntr, cookie, total), uhdr_len, id))
                .word(handler)
                .word(shape)
                .optional(tgt_cntr)
                .optional(cookie)
                .optional(total),
            Head::Vector { id, op, words, data, total, cookie, tgt_cntr } => to
                .word(first(kind::VECTOR, flags(tgt_cntr, cookie, 0), op, id))
                .word(u64::from(words) | u64::from(data) << 32)
                .word(total)
                .optional(tgt_cntr)
                .optional(cookie),
            Head::Put { id, addr, tgt_cntr, cookie, total } => to
                .word(first(kind::PUT, flags(tgt_cntr, cookie, total), 0, id))
                .word(addr)
                .optional(tgt_cntr)
                .optional(cookie)
                .optional(total),
            Head::Placed { id, bytes, tgt_cntr, cookie } => to
                .word(first(kind::PLACED, flags(tgt_cntr, cookie, 0), 0, id))
                .word(bytes)
                .optional(tgt_cntr)
                .optional(cookie),
            Head::Accessed { id, written } => to.word(first(kind::ACCESSED, 0, 0, id)).word(written),
            Head::Written { cookie } => to.word(first(kind::WRITTEN, 0, 0, 0)).word(cookie),
            Head::Data { id, offset } => to.word(first(kind::DATA, 0, 0, id)).word(offset),
            Head::Get { addr, len, cookie, tgt_cntr } => to
                .word(first(kind::GET, flags(tgt_cntr, 0, 0), 0, 0))
                .word(addr)
                .word(len)
                .word(cookie)
                .optional(tgt_cntr),
            Head::Reply { cookie, offset } => to.word(first(kind::REPLY, 0, 0, 0)).word(cookie).word(offset),
            Head::Rmw { op, var, value, swap, cookie } => {
                to.word(first(kind::RMW, 0, op, 0)).word(var).word(value).word(swap).word(cookie)
            }
            Head::RmwReply { cookie, value } => {
                to.word(first(kind::RMW_REPLY, 0, 0, 0)).word(cookie).word(value)
            }
            Head::Done { cookie } => to.word(first(kind::DONE, 0, 0, 0)).word(cookie),
            Head::RequestToSend { id, uhdr_len, handler, addr, total, cookie, tgt_cntr } => to
                .word(first(kind::REQUEST_TO_SEND, flags(tgt_cntr, 0, 0), uhdr_len, id))
                .word(handler)
                .word(addr)
                .word(total)
                .word(cookie)
                .optional(tgt_cntr),
            Head::PartsToSend { id, uhdr_len, handler, shape, total, cookie, tgt_cntr, atoms, more } => {
                let shaped = if shape.is_some() { SHAPE } else { 0 };
                let atoms = if atoms { ATOMS } else { 0 };
                let flags = flags(tgt_cntr, 0, 0) | shaped | atoms | more_flag(more);
                let start = to.word(first(kind::PARTS_TO_SEND, flags, uhdr_len, id)).word(handler);
                let shaped = match shape {
                    Some(shape) => start.word(shape),
                    None => start,
                };
                shaped.word(total).word(cookie).optional(tgt_cntr)
            }
            Head::NextParts { cookie } => to.word(first(kind::NEXT_PARTS, 0, 0, 0)).word(cookie),
            Head::MoreParts { cookie, more } => {
                to.word(first(kind::MORE_PARTS, more_flag(more), 0, 0)).word(cookie)
            }
            Head::Fetched { cookie, refused } => {
                to.word(first(kind::FETCHED, flags(0, 0, refused), 0, 0)).word(cookie).optional(refused)
            }
            Head::Fence { count } => to.word(first(kind::FENCE, 0, 0, count)),
            Head::FenceAck { count } => to.word(first(kind::FENCE_ACK, 0, 0, count)),
            Head::Collective { round, sequence, offset, other } => to
                .word(first(kind::COLLECTIVE, 0, round, sequence))
                .word(u64::from(offset) | u64::from(other) << 32),
            Head::CollectiveFailed { sequence, task, code } => to
                .word(first(kind::COLLECTIVE_FAILED, 0, 0, sequence))
                .word(u64::from(task) | u64::from(code) << 32),
            Head::CollectiveAt { sequence } => to.word(first(kind::COLLECTIVE_AT, 0, 0, sequence)),
            Head::Parting { count, position, step } => {
                to.word(first(kind::PARTING, 0, step, count)).word(u64::from(position))
            }
            Head::PartingReply { granted } => to.word(first(kind::PARTING_REPLY, 0, u16::from(granted), 0)),
            Head::Ping => to.word(first(kind::PING, 0, 0, 0)),
            Head::Pong => to.word(first(kind::PONG, 0, 0, 0)),
        }
    }

    /// Reads a head if it is one of those that small messages have: [`Head::Am`], [`Head::Put`],
    /// [`Head::Done`], [`Head::Get`], [`Head::Reply`]. `None` for all others, and when the bytes
    /// are no head. Inlined, so that no head is built where its fields are used.
    #[inline(always)]
    pub fn decode_frequent(bytes: &[u8]) -> Option<Self> {
        let mut words = Cursor { bytes };
        let first = words.next()?;
        let (kind, flags) = (first as u8, (first >> 8) as u8);
        let (small, id) = ((first >> 16) as u16, (first >> 32) as u32);
        match kind {
            kind::PUT => Some(Head::Put {
                id,
                addr: words.next()?,
                tgt_cntr: words.optional(flags & TGT_CNTR)?,
                cookie: words.optional(flags & COOKIE)?,
                total: words.optional(flags & TOTAL)?,
            }),
            kind::AM => Some(Head::Am {
                id,
                uhdr_len: small,
                handler: words.next()?,
                tgt_cntr: words.optional(flags & TGT_CNTR)?,
                cookie: words.optional(flags & COOKIE)?,
                total: words.optional(flags & TOTAL)?,
                atoms: flags & ATOMS != 0,
            }),
            kind::DONE => Some(Head::Done { cookie: words.next()? }),
            kind::GET => Some(Head::Get {
                addr: words.next()?,
                len: words.next()?,
                cookie: words.next()?,
                tgt_cntr: words.optional(flags & TGT_CNTR)?,
            }),
            kind::REPLY => Some(Head::Reply { cookie: words.next()?, offset: words.next()? }),
            _ => None,
        }
    }

    /// Reads a head. `None` when the bytes are not one: nothing in them is believed before this.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = Cursor { bytes };
        let first = words.next()?;
        let (kind, flags) = (first as u8, (first >> 8) as u8);
        let (small, id) = ((first >> 16) as u16, (first >> 32) as u32);
        Some(match kind {
            kind::AM | kind::PUT | kind::DONE | kind::GET | kind::REPLY => Head::decode_frequent(bytes)?,
            kind::AMV => Head::Amv {
                id,
                uhdr_len: small,
                handler: words.next()?,
                shape: words.next()?,
                tgt_cntr: words.optional(flags & TGT_CNTR)?,
                cookie: words.optional(flags & COOKIE)?,
                total: words.optional(flags & TOTAL)?,
            },
            kind::VECTOR => {
                let (counts, total) = (words.next()?, words.next()?);
                let tgt_cntr = words.optional(flags & TGT_CNTR)?;
                let cookie = words.optional(flags & COOKIE)?;
                let (count, data) = (counts as u32, (counts >> 32) as u32);
                Head::Vector { id, op: small, words: count, data, total, tgt_cntr, cookie }
            }
            kind::PLACED => Head::Placed {
                id,
                bytes: words.next()?,
                tgt_cntr: words.optional(flags & TGT_CNTR)?,
                cookie: words.optional(flags & COOKIE)?,
            },
            kind::ACCESSED => Head::Accessed { id, written: words.next()? },
            kind::WRITTEN => Head::Written { cookie: words.next()? },
            kind::DATA => Head::Data { id, offset: words.next()? },
            kind::RMW => Head::Rmw {
                op: small,
                var: words.next()?,
                value: words.next()?,
                swap: words.next()?,
                cookie: words.next()?,
            },
            kind::RMW_REPLY => Head::RmwReply { cookie: words.next()?, value: words.next()? },
            kind::REQUEST_TO_SEND => Head::RequestToSend {
                id,
                uhdr_len: small,
                handler: words.next()?,
                addr: words.next()?,
                total: words.next()?,
                cookie: words.next()?,
                tgt_cntr: words.optional(flags & TGT_CNTR)?,
            },
            kind::PARTS_TO_SEND => Head::PartsToSend {
                id,
                uhdr_len: small,
                handler: words.next()?,
                shape: if flags & SHAPE == 0 { None } else { Some(words.next()?) },
                total: words.next()?,
                cookie: words.next()?,
                tgt_cntr: words.optional(flags & TGT_CNTR)?,
                atoms: flags & ATOMS != 0,
                more: flags & MORE != 0,
            },
            kind::NEXT_PARTS => Head::NextParts { cookie: words.next()? },
            kind::MORE_PARTS => Head::MoreParts { cookie: words.next()?, more: flags & MORE != 0 },
            kind::FETCHED => Head::Fetched { cookie: words.next()?, refused: words.optional(flags & TOTAL)? },
            kind::FENCE => Head::Fence { count: id },
            kind::FENCE_ACK => Head::FenceAck { count: id },
            kind::COLLECTIVE => {
                let word = words.next()?;
                let (offset, other) = (word as u32, (word >> 32) as u32);
                Head::Collective { round: small, sequence: id, offset, other }
            }
            kind::COLLECTIVE_FAILED => {
                let word = words.next()?;
                let (task, code) = (word as u32, (word >> 32) as u32);
                Head::CollectiveFailed { sequence: id, task, code }
            }
            kind::COLLECTIVE_AT => Head::CollectiveAt { sequence: id },
            kind::PING => Head::Ping,
            kind::PONG => Head::Pong,
            kind::PARTING => {
                let position = u32::try_from(words.next()?).ok()?;
                Head::Parting { count: id, position, step: small }
            }
            kind::PARTING_REPLY => Head::PartingReply { granted: small != 0 },
            _ => return None,
        })
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
}

impl Cursor<'_> {
    #[inline]
    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.bytes.split_first_chunk::<8>()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*word))
    }

    #[inline]
    fn optional(&mut self, there: u8) -> Option<u64> {
        if there == 0 { Some(0) } else { self.next() }
    }
}
