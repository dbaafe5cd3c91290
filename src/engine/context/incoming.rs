//! What has arrived: messages on their way into this task, and what is known of them
//! while they are.

use crate::abi::{LAPI_NORMAL, compl_hndlr_p, lapi_ret_flags_t};
use crate::base::clock::has_come;
use crate::engine::context::request::Message;
use crate::memory::bytes::{self, Piece, pad8};
use crate::proto::content::Content;
use crate::transport::Task;
use crate::wire::key::Part;
use std::collections::VecDeque;

/// What the head of an active message contains.
#[derive(Clone, Copy, Debug)]
pub struct ActiveMessage {
    /// The task that sent it.
    pub src: Task,
    /// The message's number; `None` when it comes from this task itself.
    pub id: Option<u32>,
    /// Address or index of its header handler.
    pub handler: u64,
    /// Type (upper half) and number of pieces (lower half) of the origin's vector, when the handler
    /// returns a vector.
    pub shape: Option<u64>,
    /// The packets hold whole atoms of a DGSP.
    pub atoms: bool,
    /// Target counter, or 0.
    pub tgt_cntr: u64,
    /// The origin's operation, or 0.
    pub cookie: u64,
}

impl ActiveMessage {
    /// What follows when its data, of `bytes` bytes in all, is where it belongs, unless its header
    /// handler wants more.
    #[inline]
    pub(crate) fn delivery(&self, bytes: u64) -> Delivery {
        // The origin of exposed data always has an operation; the completion is reported to it in
        // any case.
        let delivery = Delivery::without_handler(self.src, 0, self.tgt_cntr, self.cookie, bytes);
        Delivery { id: self.id, ..delivery }
    }
}

/// Where the data of an active message is.
#[derive(Clone, Debug)]
pub enum Data {
    /// All of it here, in one packet.
    Here(Piece),
    /// All of it here, too long for what counts as one packet. The number is that of the
    /// bytes of an atom.
    Local(Content, usize),
    /// The beginning is here, the rest is to come.
    Begun {
        /// What is here.
        first: Piece,
        /// Bytes in all.
        total: u64,
    },
    /// In the origin's memory.
    Remote {
        /// The data's address there.
        addr: u64,
        /// The data's length.
        total: u64,
    },
    /// In the origin's memory, in parts: what is in none of them will be sent.
    Parts {
        /// The parts.
        parts: Parts,
        /// Bytes in all.
        total: u64,
    },
}

/// Parts of a message in the memory of its origin.
#[derive(Clone, Debug)]
pub struct Parts {
    /// In the order of the message.
    pub list: Box<[Part]>,
    /// Whether others follow when they are asked for.
    pub more: bool,
}

impl Parts {
    /// A list of one part.
    pub fn one(part: Part) -> Self {
        Self { list: [part].into(), more: false }
    }

    /// Those in a body, of a message of `total` bytes: they lie behind byte `end`. `None` when they
    /// are malformed.
    pub fn read(body: Piece, more: bool, end: u64, total: u64) -> Option<Self> {
        // SAFETY: a part of the body of a packet that is not released.
        let words = unsafe { bytes::aligned(body) };
        Some(Self { list: Part::list_from(&words[..body.len / 8], end, total)?, more })
    }
}

impl Data {
    /// User header and data of a packet's body. `None` when the lengths cannot be.
    #[inline]
    pub fn in_packet(body: Piece, uhdr_len: u16, total: u64) -> Option<(Piece, Self)> {
        let (header, data) = Self::parts_of(body, uhdr_len)?;
        let data = match total {
            0 => Self::Here(data),
            total if (data.len as u64) < total => Self::Begun { first: data, total },
            // Longer than what counts as one packet, and yet it has found room in one.
            total if data.len as u64 == total => Self::Local(Content::Piece(data), 0),
            _ => return None,
        };
        Some((header, data))
    }

    /// User header and data of the body of a packet that is a whole message. `None` when the length
    /// of the header cannot be.
    #[inline(always)]
    pub fn parts_of(body: Piece, uhdr_len: u16) -> Option<(Piece, Piece)> {
        let header = usize::from(uhdr_len);
        if header > body.len {
            return None;
        }
        let from = pad8(header).min(body.len);
        Some((body.part(0, header), body.part(from, body.len - from)))
    }

    /// Data of `total` bytes at `addr` in the origin's memory. `None` when no memory has these
    /// bytes.
    pub fn remote(addr: u64, total: u64) -> Option<Self> {
        addr.checked_add(total).is_some().then_some(Self::Remote { addr, total })
    }

    /// The body as the parts of data of `total` bytes that the origin has exposed. `None` when they
    /// are malformed.
    pub fn as_parts(&self, more: bool, total: u64) -> Option<Self> {
        let Self::Here(piece) = self else { return None };
        let parts = if more && piece.len == 0 {
            Parts { list: Box::default(), more }
        } else {
            Parts::read(*piece, more, 0, total)?
        };
        Some(Self::Parts { parts, total })
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Here(data) => data.len as u64,
            Self::Local(data, _) => data.len() as u64,
            Self::Begun { total, .. } | Self::Remote { total, .. } | Self::Parts { total, .. } => *total,
        }
    }
}

/// What follows when all data of a message is where it belongs.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    pub(crate) src: Task,
    pub(crate) id: Option<u32>,
    pub(crate) tgt_cntr: u64,
    pub(crate) cookie: u64,
    pub(crate) handler: compl_hndlr_p,
    pub(crate) parameter: usize,
    pub(crate) ret_flags: lapi_ret_flags_t,
    pub(crate) bytes: u64,
}

impl Delivery {
    /// The delivery of the data of a put, of `bytes` bytes in all: no handler runs.
    #[inline(always)]
    pub(crate) fn without_handler(src: Task, id: u32, tgt_cntr: u64, cookie: u64, bytes: u64) -> Self {
        Self {
            src,
            id: Some(id),
            tgt_cntr,
            cookie,
            handler: None,
            parameter: 0,
            ret_flags: LAPI_NORMAL,
            bytes,
        }
    }
}

/// What follows when an assembly is complete.
pub enum Then {
    /// The message has delivered.
    Deliver(Delivery),
    /// The description of a vector is there.
    Describe(Box<Incoming>),
}

/// A description on its way in.
pub struct Incoming {
    pub(crate) words: Box<[u64]>,
    /// As in [`crate::wire::packet::Head::Vector`].
    pub(crate) op: u16,
    pub(crate) data: u32,
    pub(crate) total: u64,
    pub(crate) cookie: u64,
    pub(crate) tgt_cntr: u64,
}

/// What the first packet of a put contains.
#[derive(Clone, Copy, Debug)]
pub struct IncomingPut {
    /// The task that sent it.
    pub src: Task,
    /// The message's number.
    pub id: u32,
    /// Where the data goes.
    pub addr: u64,
    /// Target counter, or 0.
    pub tgt_cntr: u64,
    /// The origin's operation, or 0.
    pub cookie: u64,
    /// Bytes in all, when they are more than this packet's; else 0.
    pub total: u64,
}

/// A message that its header handler has refused for now, or whose header handler is not set yet:
/// kept, and offered again.
pub struct Dropped {
    pub(crate) message: ActiveMessage,
    pub(crate) header: Box<[u64]>,
    pub(crate) header_len: usize,
    pub(crate) here: Box<[u64]>,
    pub(crate) data: Data,
    pub(crate) stay: Stay,
}

/// For how long a message is kept, whether it is offered meanwhile or not.
#[derive(Clone, Copy, Debug)]
pub struct Stay {
    /// The moment at which it was first kept; 0: it never was.
    pub(crate) since: u32,
    /// Of a message of this task to itself its number among these, in the order in which they were
    /// first kept, from 1 on; else 0.
    pub(crate) number: u64,
}

impl Stay {
    /// The stay of a message that has just arrived.
    pub const NONE: Self = Self { since: 0, number: 0 };
}

/// The messages that header handlers have refused for now. They are offered again: at once while
/// they are accepted, then after ever longer pauses.
#[derive(Default)]
pub struct Kept {
    list: VecDeque<Dropped>,
    /// The last number that a message of this task to itself has got.
    numbered: u64,
    /// How many consecutive offers were refused.
    vain: u32,
    /// The next offer comes not before this, in ticks.
    due: u64,
}

impl Kept {
    /// How many messages are offered in one round at most.
    pub const BATCH: usize = 64;
    /// How many rounds without success offer at once.
    const AT_ONCE: u32 = 32;
    /// The longest pause in ticks, some tenths of a millisecond, as a power of two.
    const LONGEST: u32 = 20;

    /// Keeps a message. One of this task to itself gets a number, unless it was kept before.
    pub fn keep(&mut self, mut message: Dropped) {
        if message.message.id.is_none() && message.stay.number == 0 {
            self.numbered += 1;
            message.stay.number = self.numbered;
        }
        self.list.push_back(message);
    }

    /// The number of the message of this task to itself that was the last to be kept first.
    pub fn last_own(&self) -> u64 {
        self.numbered
    }

    /// Takes out the message that was kept or offered for longest.
    pub fn take_first(&mut self) -> Option<Dropped> {
        self.list.pop_front()
    }

    /// How many messages are kept.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether none is kept.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The senders of the messages.
    pub fn senders(&self) -> impl Iterator<Item = Task> {
        self.list.iter().map(|dropped| dropped.message.src)
    }

    /// Whether one of them comes from this task itself and has a number up to this one.
    #[inline]
    pub fn has_own(&self, last: u64) -> bool {
        let is_own = |dropped: &Dropped| dropped.message.id.is_none() && dropped.stay.number <= last;
        !self.list.is_empty() && self.list.iter().any(is_own)
    }

    /// Forgets those of a peer.
    pub fn forget(&mut self, peer: Task) {
        self.list.retain(|dropped| dropped.message.src != peer);
    }

    /// Whether messages are to be offered now, in ticks.
    pub fn is_due(&self, now: u64) -> bool {
        self.vain < Self::AT_ONCE || has_come(self.due, 1 << Self::LONGEST, now)
    }

    /// Messages were offered at `now`, in ticks, and some of them accepted or none.
    pub fn note_offer(&mut self, now: u64, accepted: bool) {
        self.vain = if accepted { 0 } else { self.vain.saturating_add(1) };
        let pause = 1u64 << (self.vain.saturating_sub(Self::AT_ONCE) + 10).min(Self::LONGEST);
        self.due = now.wrapping_add(pause);
    }
}

impl Dropped {
    /// The bytes that it takes here.
    pub fn bytes(&self) -> usize {
        let parts = if let Data::Parts { parts, .. } = &self.data { size_of_val(&*parts.list) } else { 0 };
        size_of::<Self>() + 8 * (self.header.len() + self.here.len()) + parts
    }
}

/// A message to oneself that a handler has sent: it is delivered when the handler has returned.
pub struct SelfMessage {
    pub(crate) message: Message,
    /// The user header, and the data when it was short enough to be copied.
    pub(crate) header: Box<[u64]>,
    pub(crate) copy: Option<Box<[u64]>>,
}
