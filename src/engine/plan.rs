//! The way of an operation to another task: a pure function of what is asked, of the peer, and
//! of the settings.
//!
//! A long message goes as a stream of packets, so that both processors copy at the same time; in
//! one copy across address spaces (see [`crate::engine::transfer::direct`]), which needs no help
//! from the peer; or, to a peer whose memory is reached by keys, by bulk transfer
//! ([`crate::engine::transfer::parts`]).
//! What executes a plan chooses nothing: it tries the ways in turn.

use crate::engine::context::request::{Hint, Policy, Preference};
use crate::transport::{COPIED_MAX, Reach};

/// Bytes from which on the kernel copies a piece sooner than a peer is woken to take it.
const LONG_PIECE: u32 = 1024;

/// One way of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A packet, or a stream of them.
    Packets {
        /// All of it is copied when it has to wait, so that the program may change
        /// its data at once.
        copied: bool,
    },
    /// One copy across address spaces, made by the task that knows both places.
    Copy,
    /// One write into the peer's memory by the key of all of it, of data that is copied
    /// before, or not.
    Write {
        /// The data is copied.
        copied: bool,
    },
    /// Writes by the key of all the peer's memory, of data of any length, in as many as it takes.
    WriteLong,
    /// The address of contiguous data is sent; the peer makes the copy.
    Offer,
    /// Keys of the long parts of data are sent, and the peer makes the accesses; the rest goes in
    /// packets.
    OfferParts,
}

/// The ways of an operation, in order: a way that is refused is followed by the next one. The last
/// one is never refused.
pub type Plan = [Option<Way>; 3];

/// What an operation is, as far as its way depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Which operation.
    pub kind: OperationKind,
    /// Bytes of data.
    pub len: usize,
    /// Bytes of a piece of the data, on average; 0 for contiguous data.
    pub piece: u32,
    /// The program's hint.
    pub hint: Hint,
}

/// The operations that have more than one way.
#[derive(Clone, Copy, Debug)]
pub enum OperationKind {
    /// A put.
    Put {
        /// The program waits for its completion here.
        completion: bool,
        /// A counter at the target says that the data is there.
        target_counter: bool,
        /// The program gets to know when its data may be changed.
        reports: bool,
    },
    /// A get.
    Get,
    /// An active message.
    Am {
        /// Bytes of its user header.
        header: usize,
        /// The header handler returns a buffer, and packets may have any length.
        plain: bool,
        /// Header and data may be changed when the call returns.
        copied: bool,
    },
}

/// What this task can do, whichever peer it is.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// The longest body of a packet to whatever peer.
    pub body: usize,
    /// User header and data of a packet, however long each is: MAX_PKT_SZ.
    pub packet: usize,
    /// Messages of up to this many bytes are copied when they have to wait: LAPI_COPY_LIMIT.
    pub copy_limit: usize,
    /// There is a buffer for such a copy now.
    pub buffer: bool,
    /// Peers may have given a key of all their memory.
    pub keys: bool,
    /// What the program and its environment want of long messages.
    pub policy: Policy,
}

/// What the way depends on of the peer.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// How its memory is reached.
    pub reach: Reach,
    /// The peer looks for packets.
    pub polls: bool,
    /// The longest body of a packet to it.
    pub room: usize,
}

impl Means {
    /// Whether data of `len` bytes is copied when it has to wait.
    #[inline]
    fn copies(&self, len: usize) -> bool {
        len <= self.copy_limit && self.buffer
    }
}

/// The ways of an operation. The peer is asked about only where its state matters: a short message
/// costs no question.
#[inline]
pub fn plan(op: &Operation, means: &Means, peer: impl FnOnce() -> Peer) -> Plan {
    match op.kind {
        OperationKind::Put { completion, target_counter, reports } => {
            let alone = means.keys && !target_counter;
            if op.is_short(means) && !(alone && completion) {
                return [Some(Way::Packets { copied: means.copies(op.len) }), None, None];
            }
            put(op, (completion, target_counter, reports), means, &peer())
        }
        OperationKind::Get => get(op, means, &peer()),
        OperationKind::Am { header, plain, copied } => {
            let short = header + op.len <= means.packet;
            let copied = copied || header + op.len <= means.copy_limit && (short || means.buffer);
            let packets = Some(Way::Packets { copied });
            if short || copied {
                return [packets, None, None];
            }
            [active_message(op, plain, means, &peer()), packets, None]
        }
    }
}

fn put(op: &Operation, waits: (bool, bool, bool), means: &Means, peer: &Peer) -> Plan {
    let (completion, target_counter, reports) = waits;
    let (contiguous, copied) = (op.piece == 0, means.copies(op.len));
    // The target has nothing to do when the data is there.
    let alone = contiguous && !target_counter && matches!(peer.reach, Reach::Keyed(Some(_)));
    let wanted = op.hint.path() != Hint::Packets && means.policy.preference != Preference::Packets;
    let write = match copied {
        _ if !alone || !completion || !wanted || op.len == 0 => None,
        true => (op.len <= COPIED_MAX).then_some(Way::Write { copied }),
        // The data of a packet is the program's again sooner than that of a write.
        false => (!reports || op.len > peer.room).then_some(Way::Write { copied }),
    };
    let long = match peer.reach {
        _ if op.is_short(means) || contiguous && copied => None,
        Reach::Open => is_copied(op, means, peer).then_some(Way::Copy),
        Reach::Keyed(_) if !copied && by_key(op, means, peer) => {
            Some(if alone { Way::WriteLong } else { Way::OfferParts })
        }
        Reach::Keyed(_) | Reach::None => None,
    };
    [write, long, Some(Way::Packets { copied })]
}

fn get(op: &Operation, means: &Means, peer: &Peer) -> Plan {
    let long = match peer.reach {
        Reach::Open => is_copied(op, means, peer).then_some(Way::Copy),
        Reach::Keyed(_) => by_key(op, means, peer).then_some(Way::OfferParts),
        Reach::None => None,
    };
    [long, Some(Way::Packets { copied: false }), None]
}

/// The way of a long active message other than by packets. The target fetches contiguous data, for
/// a header handler that returns a buffer.
fn active_message(op: &Operation, plain: bool, means: &Means, peer: &Peer) -> Option<Way> {
    match peer.reach {
        Reach::Open => (plain && op.piece == 0 && is_copied(op, means, peer)).then_some(Way::Offer),
        Reach::Keyed(_) => by_key(op, means, peer).then_some(Way::OfferParts),
        Reach::None => None,
    }
}

impl Operation {
    /// Whether its data is contiguous and fits a packet to whatever peer.
    #[inline]
    fn is_short(&self, means: &Means) -> bool {
        self.piece == 0 && self.len <= means.body
    }
}

/// Whether the program wants bulk transfer by keys. The hint of the message is independent of its
/// settings for the task, except that what fits a packet goes in one.
fn by_key(op: &Operation, means: &Means, peer: &Peer) -> bool {
    let Policy { by_key, minimum, .. } = means.policy;
    match op.hint.path() {
        Hint::Packets => false,
        Hint::Bulk => op.len > peer.room,
        _ => by_key && op.len >= minimum && op.len > peer.room,
    }
}

/// Whether a copy across address spaces is better than packets. Where both tasks are at work a
/// stream of packets is: each processor copies a half (docs/design/0004-long-messages.md has the
/// figures). A peer that does not look for packets would have to be woken for a stream, and with
/// more tasks than processors the two tasks would run in turn.
fn is_copied(op: &Operation, means: &Means, peer: &Peer) -> bool {
    let Policy { preference, crowded, .. } = means.policy;
    let (contiguous, polls, fits) = (op.piece == 0, peer.polls, op.len <= peer.room);
    match (preference, op.hint.path()) {
        _ if op.len == 0 => false,
        (Preference::Packets, _) | (Preference::Auto, Hint::Packets) => false,
        (Preference::Attach, _) => !contiguous || !fits,
        // What fits a packet costs less than a system call, if the peer looks for it.
        (Preference::Auto, _) if contiguous && polls && fits => false,
        (Preference::Auto, Hint::Bulk) => true,
        (Preference::Auto, _) if polls && (fits || !crowded) => false,
        (Preference::Auto, _) => contiguous || op.piece >= LONG_PIECE,
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
