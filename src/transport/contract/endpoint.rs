//! Packets: what a transport carries, what the engine wants of it, and what it reports.

use super::{AccessId, EndedWrite};
#[cfg(doc)]
use super::{RemoteAccess, Transfer, Wakeup};
use crate::transport::{Door, Outgoing, SendOutcome, Task, Ticket};
use std::io;
use std::time::Instant;

/// The least that [`Limits::max_body`] may be: the longest user header.
pub const MIN_BODY: usize = 1024;

/// A packet that has arrived, in place. It belongs to the transport until it is released.
#[derive(Debug)]
pub struct Inbound {
    /// The task that sent it.
    pub src: Task,
    /// Where its head starts (8-byte aligned).
    pub head: *const u8,
    /// How long its head is.
    pub head_len: usize,
    /// Where its body starts (8-byte aligned; dangling when `body_len` is 0).
    pub body: *const u8,
    /// How long its body is.
    pub body_len: usize,
    /// The transport's own note, for `release`.
    pub token: u64,
}

/// What the transport carries between this task and one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The name of what carries it, for messages and statistics.
    pub name: &'static str,
    /// Whether [`Endpoint::due`] can ever name a deadline because of it.
    pub keeps_time: bool,
    /// Whether [`super::Reach::Keyed`] can ever have a key of all memory of the peer.
    pub standing_keys: bool,
    /// The longest body of one packet, in bytes.
    pub max_body: usize,
    /// The longest body of a packet between whatever tasks of the job: the same for all of them, at
    /// most `max_body`.
    pub job_body: usize,
    /// Packets from the peer arrive in the order in which they were sent.
    pub ordered: bool,
    /// Packets that can be on their way to the peer at a time.
    pub window: usize,
    /// Bytes of memory that hold packets from the peer until they are taken.
    pub receive_buffer: usize,
}

/// How far [`Endpoint::look`] looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// At one of the peers, by turns: the caller receives in some calls in any case.
    One,
    /// At everything: [`Seen::Nothing`] means that the next [`Endpoint::recv`] would find nothing
    /// and have nothing else to do.
    All,
    /// At everything, for a task that has polled until this moment, in ticks, as by
    /// [`Want::Polling`].
    Polled(u64),
    /// At everything, after several looks in vain: where the next packet crosses in parts, the look
    /// asks for another part of it besides, so that they cross together. A sender in the middle of
    /// a stream would lose what it is writing.
    InVain,
}

/// What [`Endpoint::look`] has found.
pub enum Seen<'a> {
    /// [`Endpoint::recv`] would find nothing where the look was, and have nothing else to do.
    Nothing,
    /// [`Endpoint::recv`] would return the packet of this peer that [`Door::arrived`] shows. It may
    /// be taken through the door instead.
    Packet(Task, &'a mut Door),
    /// [`Endpoint::recv`] may find something, or have something else to do.
    Something,
}

impl Seen<'_> {
    /// Whether it is [`Self::Nothing`].
    #[inline(always)]
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

/// What this task wants of the transport. None of it has a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A connection with the peer, if that has not begun: this task awaits something from it.
    Connection(Task),
    /// What a peer that is not connected has sent to connect is read now, where the transport would
    /// read it later: the peer may have sent packets after that, and have ended.
    Settle(Task),
    /// The peer is to look for packets soon, although it may be computing or may have stopped
    /// looking, as far as the transport can do that: a hint.
    Attention(Task),
    /// No packets are taken from the peer from now on, or with `false` they are taken again: they
    /// stay where they are, and the peer finds no room once its ring is full. A packet that is held
    /// back does not keep [`Wakeup::arm`] from arming. A peer that rejoins is not held.
    Hold(Task, bool),
    /// So many bytes, which were read out of the peer's memory, are counted for its statistics,
    /// where the peer can see that.
    Fetched(Task, u64),
    /// The packets that wait for others are sent ([`SendOutcome::Held`]).
    Flush,
    /// What is due is done, and no packet handed out. [`Endpoint::recv`] does it, too.
    Serve,
    /// Peers learn that this task polls from now on, or with `false` that it has polled until now:
    /// a hint. The second value is the time in ticks.
    Polling(bool, u64),
    /// From now on a transport with acknowledgements of its own sends one for this number of
    /// datagrams, at most (ACK_THRESHOLD).
    AcknowledgeEvery(u16),
    /// This task's own event descriptor becomes readable, armed or not.
    Wake,
}

impl Want {
    /// The peer that it concerns, if it is one.
    pub(crate) fn peer(self) -> Option<Task> {
        match self {
            Self::Connection(peer)
            | Self::Settle(peer)
            | Self::Attention(peer)
            | Self::Hold(peer, _)
            | Self::Fetched(peer, _) => Some(peer),
            Self::Flush | Self::Serve | Self::Polling(..) | Self::AcknowledgeEvery(_) | Self::Wake => None,
        }
    }
}

/// What a transport reports. Each thing is named once, unless it is recalled before.
#[derive(Debug)]
pub enum Report {
    /// The memory of a packet that was taken is free ([`SendOutcome::Taken`]).
    Free(Ticket),
    /// A pending access is over, and how it went. One that has failed reads and writes nothing
    /// more. One whose peer has closed or died fails, if it was not done before.
    Accessed(AccessId, io::Result<()>),
    /// A write by the peer's standing key has ended.
    Written(EndedWrite),
    /// A peer has rejoined, or has let this task rejoin, with this epoch. No packet of it is
    /// received before that is reported.
    Joined(Task, u64),
}

/// Moves packets. See the module's documentation for the contract.
pub trait Endpoint: Send {
    /// What it carries to and from `peer`.
    fn limits(&self, peer: Task) -> Limits;

    /// Offers one packet to `peer`, which is never this task itself.
    ///
    /// # Safety
    /// The pieces of `packet` must be readable during the call, and a second piece that may be
    /// taken ([`Outgoing::lendable`]) until the packet is reported, recalled, or known to be lost
    /// with its peer.
    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> SendOutcome;

    /// What a small packet to `peer` can be written through at once, as [`Self::try_send`] would
    /// send it. `None` where there is none, or not now.
    fn door(&mut self, peer: Task) -> Option<&mut Door>;

    /// The next packet that has arrived, if any. It must be released before the next call.
    fn recv(&mut self) -> Option<Inbound>;

    /// Whether [`Self::recv`] may find something, as far as is known at once. A network that knows
    /// that only by receiving says that it may.
    fn look(&mut self, look: Look) -> Seen<'_>;

    /// Gives a packet back.
    fn release(&mut self, packet: Inbound);

    /// The next of what has happened to something that this task has begun.
    fn report(&mut self) -> Option<Report>;

    /// What this task wants from now on, or now.
    fn want(&mut self, what: Want);

    /// When the endpoint must be served next, at the latest: something must be sent again or
    /// acknowledged then.
    fn due(&self) -> Option<Instant>;

    /// What the transport has counted below the packets.
    fn tally(&self) -> Tally;

    /// Ends LAPI for this task and notifies the peers. What was sent before still arrives; nothing
    /// is sent after it. What was taken is not read any more when this returns, and every
    /// registration is withdrawn. Called again, it has no effect.
    fn close(&mut self);
}

/// What a transport counts that no packet of the protocol shows. A transport without a
/// count leaves it 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How much of what was sent the peers do not have yet, by whatever unit; 0 when they have
    /// everything. While it is not, [`Endpoint::due`] names a deadline, or a packet that was taken
    /// is not reported yet, or packets that wait for others have found no room.
    pub outstanding: u64,
    /// Packets that were sent again.
    pub sent_again: u64,
    /// Packets that had arrived before.
    pub duplicates: u64,
    /// What was refused because no task of the job has made it, or not in this connection.
    pub refused: u64,
    /// Acknowledgements that were sent alone.
    pub acknowledgements_sent: u64,
    /// Acknowledgements that have arrived alone.
    pub acknowledgements_received: u64,
    /// Bytes that peers have read out of this task's memory, as they have counted them
    /// ([`Want::Fetched`]).
    pub fetched: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.outstanding += other.outstanding;
        self.sent_again += other.sent_again;
        self.duplicates += other.duplicates;
        self.refused += other.refused;
        self.acknowledgements_sent += other.acknowledgements_sent;
        self.acknowledgements_received += other.acknowledgements_received;
        self.fetched += other.fetched;
    }
}
