//! The heads of packets: what a packet is, and the numbers that go with it.
//!
//! A head is a sequence of 64-bit little-endian words. The first says what follows:
//!
//! | bits | field |
//! |---|---|
//! | 0-7 | kind |
//! | 8-15 | flags: which of the optional words are there |
//! | 16-31 | `small`: the length of the user header, the operation, or the round |
//! | 32-63 | `id`: the message's number between these two tasks |
//!
//! The words after it are in the order of the fields of [`Head`]'s variants; optional ones are left
//! out when they are 0. What bodies hold of the protocol's own (the values of a collective
//! operation, the words of a vector's description) are 64-bit words in the same order of bytes; all
//! machines that the library runs on have it. Addresses are those of the task in which they are
//! used.
//!
//! Fields that many variants have:
//!
//! * `id`: the number of the message.
//! * `uhdr_len`: bytes of the user header.
//! * `handler`: address or index of the header handler.
//! * `tgt_cntr`: the target counter, or 0.
//! * `cookie`: the operation, in the table of the task that made it; it is echoed. 0: the origin
//!   does not want to know of the completion.
//! * `total`: bytes of data in all. 0 in [`Head::Am`], [`Head::Amv`] and [`Head::Put`]: they are no
//!   more than this packet's.

mod code;

pub use code::Encoded;

/// What a packet is. See the module's documentation for the layout and for the common fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the common fields are described once, at the head of the module")]
pub enum Head {
    /// An active message, or its first packet. Body: user header, then data.
    Am {
        id: u32,
        uhdr_len: u16,
        handler: u64,
        tgt_cntr: u64,
        cookie: u64,
        total: u64,
        /// Each packet holds whole atoms of a DGSP.
        atoms: bool,
    },
    /// An active message with a vector header handler, or its first packet. Body: user
    /// header, then data.
    Amv {
        id: u32,
        uhdr_len: u16,
        handler: u64,
        /// Type (upper half) and number of pieces (lower half) of the origin's vector.
        shape: u64,
        tgt_cntr: u64,
        cookie: u64,
        total: u64,
    },
    /// A put or get whose place at the target is a vector, or that goes by bulk transfer. Body: the
    /// vector's description in words (see `engine::transfer::vector_wire`), then, of a put that
    /// fits this packet, the data. What does not fit follows: the rest of the description as data
    /// of this message, the data of a put as data of the message with the next number. With
    /// [`VECTOR_BY_KEYS`] there are, before the description, one word with the number of parts of
    /// the data that the target reads (a put) or writes (a get) in the origin's memory, and these
    /// ([`super::key::Part`]); with [`VECTOR_MORE`] they are not all parts.
    Vector {
        id: u32,
        /// [`VECTOR_PUT`] or [`VECTOR_GET`], plus [`VECTOR_BY_KEYS`] for bulk transfer, plus
        /// [`VECTOR_MORE`] and [`VECTOR_ALONE`].
        op: u16,
        /// Words of the description, and of what is before it.
        words: u32,
        /// Number of the message that brings the data of a put, when this packet does not.
        data: u32,
        total: u64,
        cookie: u64,
        tgt_cntr: u64,
    },
    /// A put, or its first packet. Body: data.
    Put {
        id: u32,
        /// Where the data goes.
        addr: u64,
        tgt_cntr: u64,
        cookie: u64,
        total: u64,
    },
    /// A put, or the end of a get, that the origin has made by itself in the target's memory.
    Placed {
        id: u32,
        /// Bytes that were put there.
        bytes: u64,
        tgt_cntr: u64,
        cookie: u64,
    },
    /// What the origin has put into the target's memory without the target's help: several puts
    /// together, whose completion the origin knows.
    Accessed {
        id: u32,
        /// Bytes that were put there.
        written: u64,
    },
    /// More data of the message `id`. Body: data.
    Data {
        id: u32,
        /// Where in the message these bytes belong.
        offset: u64,
    },
    /// Asks for data. No body.
    Get {
        /// Where the data is.
        addr: u64,
        /// How many bytes.
        len: u64,
        cookie: u64,
        tgt_cntr: u64,
    },
    /// Data that was asked for. Body: data.
    Reply {
        cookie: u64,
        /// Where in the reply these bytes belong.
        offset: u64,
    },
    /// The target has written the data that was asked for into the origin's memory: all that the
    /// origin has exposed.
    Written { cookie: u64 },
    /// An atomic read-modify-write.
    Rmw {
        /// The operation's number, plus [`RMW_WIDE`] for 64 bits.
        op: u16,
        /// The variable's address.
        var: u64,
        /// The value, or the value to compare with.
        value: u64,
        /// The value to swap in (compare-and-swap alone).
        swap: u64,
        cookie: u64,
    },
    /// What the variable was, or whether the swap was done.
    RmwReply {
        cookie: u64,
        /// The reply.
        value: u64,
    },
    /// A message is complete at its target, its completion handler included.
    Done { cookie: u64 },
    /// An active message whose data the target fetches from the origin's memory by its address.
    /// Body: user header.
    RequestToSend {
        id: u32,
        uhdr_len: u16,
        handler: u64,
        /// Where the data is, in the origin's memory.
        addr: u64,
        total: u64,
        cookie: u64,
        tgt_cntr: u64,
    },
    /// An active message of which the target fetches parts from the origin's memory. Body: user
    /// header, then the parts ([`super::key::Part`]).
    PartsToSend {
        id: u32,
        uhdr_len: u16,
        handler: u64,
        /// As in [`Head::Amv`], where the header handler returns a vector.
        shape: Option<u64>,
        total: u64,
        cookie: u64,
        tgt_cntr: u64,
        /// Packets of the data hold whole atoms of a DGSP.
        atoms: bool,
        /// These are not all parts: the target asks for more.
        more: bool,
    },
    /// The target has made its accesses to the parts that it knows, and asks for those that follow.
    NextParts { cookie: u64 },
    /// The parts that follow. Body: the parts ([`super::key::Part`]); none, and no more of them:
    /// what was in no part goes in packets.
    MoreParts {
        cookie: u64,
        /// These are not all.
        more: bool,
    },
    /// The target needs the origin's memory no more. To a get: it cannot have the memory that was
    /// asked for, and sends nothing.
    Fetched {
        cookie: u64,
        /// 0, or the number of bytes that the target has not fetched and that must be sent: all of
        /// them, or those of no part that the origin has exposed.
        refused: u64,
    },
    /// Asks for a reply when the messages before number `count` have all been delivered.
    Fence {
        /// How many messages.
        count: u32,
    },
    /// They have.
    FenceAck {
        /// The number in the question.
        count: u32,
    },
    /// Part of a collective operation. Body: values of this round.
    Collective {
        /// The round.
        round: u16,
        /// Which collective operation, counted by each task alike.
        sequence: u32,
        /// Where in the round's values this body belongs, in bytes.
        offset: u32,
        /// 1 + a task whose call is another one than the sender's; 0: none is known.
        other: u32,
    },
    /// The next collective operation of a task, sent by one that has rejoined. A task that is
    /// behind continues from there.
    CollectiveAt {
        /// Which one.
        sequence: u32,
    },
    /// The sender takes no part any more in collective operations.
    CollectiveFailed {
        /// From which one on.
        sequence: u32,
        /// The task that is missing.
        task: u32,
        /// What the call returns for it.
        code: u32,
    },
    /// The sender wants to part from this task for a checkpoint, and has nothing under way to it:
    /// see `engine::progress::parting`.
    Parting {
        /// How many messages of this task are delivered there.
        count: u32,
        /// The collective operation that comes next there.
        position: u32,
        /// [`PARTING_ASKED`], [`PARTING_DONE`] or [`PARTING_PUT_OFF`].
        step: u16,
    },
    /// The reply to [`PARTING_ASKED`].
    PartingReply {
        /// Nothing is under way to the asker, and nothing more is sent to it.
        granted: bool,
    },
    /// Asks a task that has been silent whether it still looks for packets.
    Ping,
    /// Replies to a ping: the task does look for packets.
    Pong,
}

/// In [`Head::Parting`]'s `step`: nothing more is to be sent to the asker, if nothing is under way.
pub const PARTING_ASKED: u16 = 0;
/// In [`Head::Parting`]'s `step`: all have granted that, and the asker parts.
pub const PARTING_DONE: u16 = 1;
/// In [`Head::Parting`]'s `step`: one has not, and all goes on.
pub const PARTING_PUT_OFF: u16 = 2;

/// In [`Head::Rmw`]'s `op`: the variable has 64 bits, not 32.
pub const RMW_WIDE: u16 = 0x100;

/// In [`Head::Vector`]'s `op`: a put.
pub const VECTOR_PUT: u16 = 0;
/// In [`Head::Vector`]'s `op`: a get.
pub const VECTOR_GET: u16 = 1;
/// In [`Head::Vector`]'s `op`: parts of the data are accessed by keys.
pub const VECTOR_BY_KEYS: u16 = 0x100;
/// In [`Head::Vector`]'s `op`: more parts follow when the target asks for them.
pub const VECTOR_MORE: u16 = 0x200;
/// In [`Head::Vector`]'s `op`: a get whose description is all here. It has no number: with its data
/// it is done, and a fence need not ask the target about it.
pub const VECTOR_ALONE: u16 = 0x400;

#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
