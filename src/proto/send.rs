//! What is asked of the [outbox](super::outbox), and what it returns: how a message is sent, what
//! becomes of it, and what follows when the memory it was sent from is free.

use super::content::Content;
use crate::memory::bytes::Piece;
use crate::wire::frame::Task;

/// What follows when the memory that a message was sent from is free again. The protocol
/// only carries it.
#[derive(Clone, Copy, Debug)]
pub struct SendDone {
    /// Address of the origin counter, or 0.
    pub org_cntr: usize,
    /// Address of the send completion handler, or 0.
    pub handler: usize,
    /// The handler's parameter.
    pub info: usize,
    /// The peer of the message.
    pub peer: Task,
    /// 0, or the error that ended the message.
    pub error: i32,
    /// Bytes of the program's data.
    pub bytes: u64,
    /// Whether it is a send operation of the program; the library sends messages of its own, too.
    pub user: bool,
}

impl SendDone {
    /// Nothing follows.
    pub const fn nothing(peer: Task) -> Self {
        Self { org_cntr: 0, handler: 0, info: 0, peer, error: 0, bytes: 0, user: false }
    }
}

/// What became of a message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The message is out, or copied: the program's memory is free.
    Free,
    /// The message refers to the program's memory; its [`SendDone`] will be reported.
    Queued,
    /// The peer has left.
    Gone,
    /// Memory to keep it until the transport has room is exhausted: it was not sent.
    NoMemory,
}

/// The two pieces of a packet's body.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// The user header.
    pub header: Piece,
    /// The data.
    pub data: &'a Content,
}

impl<'a> Body<'a> {
    /// No body.
    pub const EMPTY: Self = Self { header: Piece::EMPTY, data: &Content::EMPTY };

    /// Data without a user header.
    pub fn data(data: &'a Content) -> Self {
        Self { header: Piece::EMPTY, data }
    }

    pub(super) fn len(&self) -> usize {
        self.header.len + self.data.len()
    }
}

/// How the packets of a stream after the first are headed.
#[derive(Clone, Copy, Debug)]
pub enum Continuation {
    /// As data of a message of ours.
    Message(u32),
    /// As data that the peer's operation asked for.
    Reply(u64),
}

/// How a stream is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streaming {
    /// The data is copied at once.
    pub copied: bool,
    /// Packets hold whole multiples of this many bytes; 0: any number.
    pub atom: usize,
}

/// What is on its way to one peer, for reports of what waits.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// The peer.
    pub peer: Task,
    /// Packets that wait for room.
    pub parked: usize,
    /// Their bytes, user headers and data.
    pub parked_bytes: usize,
    /// Streams: bytes sent, and bytes in all.
    pub streams: Vec<(usize, usize)>,
    /// How many messages were numbered.
    pub messages: u64,
    /// Of how many of them a fence has asked whether they are delivered, when the reply has
    /// not arrived yet.
    pub asked: Option<u64>,
    /// The moment at which [`super::outbox::Outbox::mark`] first saw that something waits for
    /// room; 0: not yet.
    pub seen: u32,
    /// The peer has left.
    pub gone: bool,
}
