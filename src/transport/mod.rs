//! How bytes travel between tasks.
//!
//! A transport moves packets and does not interpret them: a packet is a short *head* (at most
//! [`HEAD_MAX`] bytes, always present) and a *body* (possibly empty). The protocol above decides
//! what they contain; it never sees a transport, and the engine joins the two. What a task holds of
//! a transport has four sides: [`Endpoint`] moves packets, [`Wakeup`] lets a thread sleep until
//! something happens, [`Peers`] knows the state of the connections, and [`RemoteAccess`], where the
//! transport can, reads and writes a peer's memory without the peer's help.
//!
//! The contract of every transport, which the conformance suite tests on each of them:
//!
//! * **Exactly once.** A packet that was accepted arrives exactly once while the peer is up, whole
//!   and unchanged. Loss and duplication are repaired below this wall, because the protocol above
//!   does not repair them. Order between two packets of one sender is kept only where
//!   [`Limits::ordered`] is set.
//! * **No waiting.** [`Endpoint::try_send`] never blocks and never allocates on its common path.
//!   Without room it changes nothing and returns [`SendOutcome::NoRoom`].
//! * **In place.** The head and the body of an [`Inbound`] start at an address that is a multiple
//!   of 8 and stay valid until the packet is given back with [`Endpoint::release`].
//! * **Taking.** An endpoint may send from the program's memory: it takes the packet, and reports
//!   later that the memory is free ([`SendOutcome::Taken`], [`Endpoint::completed`]). The message's
//!   origin counter and send completion handler follow then.
//! * **Time.** [`Endpoint::due`] names the next moment at which something must be sent again or
//!   acknowledged. A thread that waits wakes by then; and where the program computes with
//!   INTERRUPT_SET off, the library's own thread serves the endpoint without running the
//!   program's handlers. It looks every few milliseconds, so that a deadline nearer than that may
//!   be served as much late.
//! * **Waiting for others.** A packet that was accepted may wait, to be sent with those that follow
//!   ([`SendOutcome::Held`]). It is sent by [`Endpoint::flush`], by [`Endpoint::serve`], which is
//!   due then, and by [`Wakeup::arm`]. Without room it stays: then it is sent when there is some,
//!   in any of the endpoint's methods, and [`Endpoint::due`] names no deadline for it.
//! * **Ending.** LAPI_Term waits, as long as it waits for anything, until the endpoint has
//!   [`Endpoint::settled`]. [`Endpoint::close`] lingers for what is left.
//! * **Sleeping.** Between [`Wakeup::arm`] (which returned `true`) and [`Wakeup::disarm`], an
//!   arriving packet or number ([`Peers::signal`]), room after `NoRoom`, a report of a taken
//!   packet or of a remote access, or a [`Wakeup::wake`] makes the event descriptor readable. No
//!   wake-up is lost. The descriptor is readable only when it was armed, woken or kicked since the
//!   last `disarm`.
//! * **Remote access** may be asynchronous. An access that is done has *placed* its bytes: what
//!   the engine announces to the peer is there ([`RemoteAccess::start`]). An access is given to
//!   the transport whole, however long it is: the transport splits it, bounds what is in flight,
//!   and reports it once. Also when the peer leaves: an access that is under way then, and
//!   cannot be made any more, has failed. Only what the task itself recalls
//!   ([`Endpoint::recall`]) is not reported.
//! * **Keys.** Where the memory of a peer is reached by keys ([`Reach::Keyed`]), the peer
//!   registers it for this task and sends the key. The key gives access to nothing else, and to
//!   nothing after the registration was withdrawn; but where the owner's processor stores what
//!   peers write, because the network has no card, the rest of a write that it had begun to
//!   receive may still be stored if the peer lives and sends it later. What had arrived is stored
//!   before [`Peers::part`] returns.
//! * **Departure.** A task that closes or drops its end is closed or dead for its peers, which are
//!   woken. Nothing that was sent before two tasks parted ([`Peers::part`]) arrives after they have
//!   rejoined ([`Peers::rejoin`], on both sides).
//! * **Limits per peer.** [`Endpoint::limits`], and what [`RemoteAccess`] reaches, may differ
//!   between peers; limits never change. What arrives before it is received has a bound:
//!   [`Limits::window`] packets of each peer.
//! * **Short packets.** Every packet holds a head and at least [`MIN_BODY`] bytes of body, so
//!   that the longest user header fits: a transport whose network has shorter packets splits and
//!   joins them itself.
//! * **Byte order.** Heads are little-endian. Bodies are bytes to the transport; what the library
//!   itself puts into them (descriptions of vectors, values of collective operations) has the byte
//!   order of the machine, so that the tasks of a job run on machines of one byte order.

pub mod coalescing;
#[cfg(test)]
pub(crate) mod conformance;
mod deaths;
pub mod fabric;
#[cfg(test)]
pub mod faults;
pub(crate) mod forward;
pub mod link_state;
#[cfg(test)]
pub mod mem;
mod parcel;
mod poll_pause;
mod presence;
pub mod rails;
pub mod route;
pub mod shm;
mod sleeper;
pub mod udp;

use crate::error::Result;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

pub use crate::base::bytes::{Piece, pad8};
pub use crate::wire::frame::{HEAD_MAX, Outgoing, SendError, SendOutcome, Task, Ticket};
pub use crate::wire::key::Key;

/// One task's end of a transport: all sides of it behind one table of functions.
pub trait Transport: Endpoint + Wakeup + Peers + RemoteAccess {}

impl<T: Endpoint + Wakeup + Peers + RemoteAccess + ?Sized> Transport for T {}

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

/// What never changes of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// A short name, for messages and statistics.
    pub name: &'static str,
    /// Whether [`Endpoint::due`] can ever name a deadline.
    pub keeps_time: bool,
    /// Whether [`RemoteAccess::standing_key`] can ever return one.
    pub standing_keys: bool,
}

/// Moves packets. See the module's documentation for the contract.
pub trait Endpoint: Send {
    /// What never changes of it.
    fn properties(&self) -> Properties;

    /// What it carries to and from `peer`.
    fn limits(&self, peer: Task) -> Limits;

    /// Offers one packet to `peer`, which is never this task itself.
    ///
    /// # Safety
    /// The pieces of `packet` must be readable during the call, and a second piece that may be
    /// taken ([`Outgoing::lendable`]) until the packet is reported, recalled, or known to be lost
    /// with its peer.
    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> SendOutcome;

    /// The next of the packets that were taken ([`SendOutcome::Taken`]) whose memory is free; each
    /// is named once.
    fn completed(&mut self) -> Option<Ticket>;

    /// Gives up what was taken for `peer`, and the remote accesses under way with it, and
    /// withdraws the registrations made for it: after this call no memory of the program is read
    /// or written for them, and none is reported. The packets may arrive or not, and the
    /// accesses may have been made or not. A network without a card cannot end what has begun
    /// with a peer that is silent: a packet that was taken, and parts of at most 1 MiB of
    /// accesses that [`RemoteAccess::start`] has started, may still be read or written if the
    /// peer continues later.
    fn recall(&mut self, peer: Task);

    /// The next packet that has arrived, if any. It must be released before the next call.
    fn recv(&mut self) -> Option<Inbound>;

    /// Whether [`Self::recv`] may find something, as far as is known at once. A transport looks at
    /// one of its peers in each call, by turns, so that a caller calls [`Self::recv`] in some
    /// calls in any case.
    fn may_receive(&mut self) -> bool {
        true
    }

    /// Whether the next [`Self::recv`] would find nothing and have nothing else to do; `false`
    /// where that is not known without it.
    fn is_idle(&mut self) -> bool {
        false
    }

    /// Takes no packets from `peer` from now on, or takes them again: they stay where they are, and
    /// the peer finds no room once its ring is full. A packet that is held back does not keep
    /// [`Wakeup::arm`] from arming. A peer that rejoins is not held.
    fn hold(&mut self, peer: Task, held: bool);

    /// Gives a packet back.
    fn release(&mut self, packet: Inbound);

    /// Sends the packets that wait for others ([`SendOutcome::Held`]).
    fn flush(&mut self);

    /// When the endpoint must be served next, at the latest: something must be sent again or
    /// acknowledged then.
    fn due(&self) -> Option<Instant>;

    /// Does what is due, and hands out no packet. [`Self::recv`] does it, too.
    fn serve(&mut self);

    /// Whether the peers have everything that was sent to them. While it is false, [`Self::due`]
    /// names a deadline, or a packet that was taken is not reported yet, or packets that wait for
    /// others have found no room.
    fn settled(&self) -> bool;

    /// From now on a transport with acknowledgements of its own sends one for this number of
    /// datagrams, at most (ACK_THRESHOLD).
    fn acknowledge_every(&mut self, datagrams: u16);

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
    /// ([`RemoteAccess::count_fetched`]).
    pub fetched: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.sent_again += other.sent_again;
        self.duplicates += other.duplicates;
        self.refused += other.refused;
        self.acknowledgements_sent += other.acknowledgements_sent;
        self.acknowledgements_received += other.acknowledgements_received;
        self.fetched += other.fetched;
    }
}

/// Lets one thread of a task sleep until something happens.
pub trait Wakeup {
    /// Gets ready to sleep: `true` when the caller may now sleep on [`Self::event_fd`], `false`
    /// when something has arrived meanwhile (then nothing is armed).
    fn arm(&mut self) -> bool;

    /// Ends what [`Self::arm`] began, and empties the event descriptor.
    fn disarm(&mut self);

    /// The descriptor that becomes readable.
    fn event_fd(&self) -> BorrowedFd<'_>;

    /// Makes this task's own event descriptor readable, armed or not.
    fn wake(&self);
}

/// The state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// The peer takes packets.
    Up,
    /// The peer ended LAPI in an orderly way.
    Closed,
    /// The peer died, or cannot be reached any more, or one of the two has parted from the other.
    Dead,
    /// This task is not connected with it yet: packets to it find no room. See
    /// [`PeerStanding::absence`].
    Connecting,
}

/// What can be seen of the connection with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionView {
    /// Packets on their way to the peer: it has not acknowledged them yet.
    pub in_flight: u64,
    /// How many of these there can be.
    pub window: u64,
    /// A packet found no room, and no room has been made since.
    pub no_room: bool,
    /// The peer sleeps, as far as is known here, and must be woken.
    pub asleep: bool,
    /// A packet from it has arrived here and was not taken yet.
    pub arrived: bool,
}

/// The epoch of a task that itself rejoins the job and has no knowledge of it yet. See
/// [`Peers::rejoin`].
pub const NO_EPOCH: u64 = 0;

/// What has happened to a peer that has parted from this task, as a clause that follows
/// the peer's name.
pub(crate) const HAS_PURGED: &str = "has purged this task (LAPI_Purge_totask)";

/// Where a peer stands, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStanding {
    /// Whether it takes packets, and whether that can change.
    pub state: PeerState,
    /// Why this task is not connected with the peer: a clause that follows the peer's name.
    /// `None` when it is.
    pub absence: Option<String>,
    /// The peer has parted from this task, and lets it rejoin ([`Peers::rejoin`]), while this task
    /// has not parted from the peer. What was sent to it is lost, nothing arrives from it, and it
    /// counts as dead until this task has done the same.
    pub has_parted: bool,
}

impl PeerStanding {
    /// The standing of a peer that is connected, or will be as soon as it is needed.
    pub(crate) const UP: Self = Self { state: PeerState::Up, absence: None, has_parted: false };
}

/// What this task wants of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A connection, if that has not begun: this task awaits something from the peer.
    Connection,
    /// The peer is to look for packets soon, although it may be computing or may have stopped
    /// looking, as far as the transport can do that: a hint.
    Attention,
}

/// What can be seen of a peer without a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// A count that changes when the peer makes progress: whenever a packet from it is taken here,
    /// or a number given ([`Peers::signal`]), and sooner or later when it takes packets from here.
    pub progress: u64,
    /// The state of the connection, where there is one that the transport can observe.
    pub connection: Option<ConnectionView>,
}

/// The peers and the connections with them.
pub trait Peers {
    /// Where the peer stands. May make a system call: not for hot paths.
    fn standing(&self, peer: Task) -> PeerStanding;

    /// Asks the peer for this, or sees to it.
    fn want(&mut self, peer: Task, what: Want);

    /// Whether the peer takes packets, or will, as far as is known without a system call.
    fn is_open(&self, peer: Task) -> bool;

    /// The progress of the peer, and the state of the connection with it.
    fn view(&self, peer: Task) -> View;

    /// Informs the peers whether this task polls from now on: a hint. `now` is the time in ticks;
    /// with `false`, this task has polled until now.
    fn set_polling(&mut self, polling: bool, now: u64);

    /// Whether the peer polls, as far as is known here. A transport that polled recently may count
    /// as polling; a transport that has no such knowledge returns `true`.
    fn polls(&self, peer: Task) -> bool;

    /// Gives the peer a number without a packet, in place of the last one that was even or odd as
    /// this one is, and wakes the peer as a packet would. `false`: there is no way for that, or not
    /// now; nothing has changed. What was written before is seen by a peer that has found the
    /// number. It may pass packets.
    fn signal(&mut self, _peer: Task, _number: u32) -> bool {
        false
    }

    /// Whether the peer has given this task the number since they were connected, and no later one
    /// has its place. It stays until then, so that it keeps no thread awake: one that waits for a
    /// number looks for it between [`Wakeup::arm`] and its sleep.
    fn signalled(&self, _peer: Task, _number: u32) -> bool {
        false
    }

    /// Recalls what is under way with `peer` ([`Endpoint::recall`]) and cuts the connection:
    /// nothing more is received from it, and to send to it returns [`SendOutcome::Gone`]. May be
    /// called while a packet of the peer's is not released yet. Has no effect when they have
    /// parted before.
    fn part(&mut self, peer: Task);

    /// Lets `peer`, from which this task has parted, rejoin: the same process when it does
    /// likewise, or another one with its number. From now on the peer counts as up, and packets to
    /// it find no room until it has rejoined. It is sent `epoch`.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`: the system lacks what is needed; nothing has changed.
    fn rejoin(&mut self, peer: Task, epoch: u64) -> Result<()>;

    /// A peer that has rejoined, or one that has let this task rejoin, with its epoch; each is
    /// named once. No packet of it is received before.
    fn rejoined(&mut self) -> Option<(Task, u64)>;
}

/// One copy between this address space and a peer's.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// The address here.
    pub local: *mut u8,
    /// The address there, as the peer's program knows it.
    pub remote: u64,
    /// How many bytes.
    pub len: usize,
}

/// The direction of a remote access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// From the peer's memory to here.
    Read,
    /// From here to the peer's memory.
    Write,
}

/// Names a remote access that has been started. No two that were not reported yet have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessId(pub u64);

/// The state of a remote access after [`RemoteAccess::start`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// All bytes are in place.
    Done,
    /// [`RemoteAccess::poll`] will report it.
    Pending(AccessId),
}

/// A write that [`RemoteAccess::write`] has started, and that has ended.
#[derive(Debug)]
pub struct EndedWrite {
    /// Whose memory was at the other end.
    pub peer: Task,
    /// What the caller calls it.
    pub cookie: u64,
    /// What was to be written.
    pub copy: Copy,
    /// How it went.
    pub outcome: io::Result<()>,
    /// The data, where it was copied and the write has failed.
    pub data: Option<Box<[u8]>>,
}

/// Bytes that [`RemoteAccess::write`] copies, at most.
pub const COPIED_MAX: usize = 128;

/// How the memory of a peer is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Not at all.
    None,
    /// All of it, by its addresses.
    Open,
    /// What the peer has registered for this task, by the key.
    Keyed,
}

/// What a peer may do with memory that is exposed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// What the peer will do: [`Access::Read`] takes bytes from here.
    pub access: Access,
    /// The peer's accesses are not to be striped: where it has several ways to this memory, it
    /// uses one of them.
    pub one_rail: bool,
}

/// Reads and writes the memory of peers without their help.
pub trait RemoteAccess {
    /// How the peer's memory can be reached, as far as is known. Between two tasks with one
    /// transport both find the same, or one of them finds [`Reach::None`].
    fn reach(&mut self, peer: Task) -> Reach;

    /// Lets `peer` access this memory of the program, until it is withdrawn, recalled
    /// ([`Endpoint::recall`]), or the endpoint is closed. Makes no system call that waits for the
    /// peer. Two registrations may have equal keys: each is withdrawn on its own.
    ///
    /// # Errors
    /// The system or the network refuses it; nothing is registered. Always where the memory of this
    /// task is not reached by keys.
    ///
    /// # Safety
    /// The memory must be readable and, for [`Access::Write`], writable until the
    /// registration is withdrawn.
    unsafe fn expose(&mut self, peer: Task, memory: Piece, exposure: Exposure) -> io::Result<Key>;

    /// The key of all memory of the peer, by its addresses there, where the peer needs to
    /// register nothing for an access. `None`: the peer's memory is not reached in that way, or
    /// not yet, or not any more.
    fn standing_key(&mut self, peer: Task) -> Option<Key>;

    /// Withdraws one registration made for `peer`: after this call the memory is not accessed. Has
    /// no effect when there is none with this key.
    fn withdraw(&mut self, peer: Task, key: Key);

    /// Starts the copies. An access that is done, now or when it is reported, has placed all bytes
    /// where they belong: the program at the other end may get a report of them. `key` is that of
    /// the peer's memory, in which all remote places lie, where the peer is reached by keys
    /// ([`Reach::Keyed`]); elsewhere it is ignored.
    ///
    /// A peer that has ended, or has parted from this task ([`Peers::part`] has returned there), is
    /// not accessed, whether or not this task knows of that. Where this task's processor makes the
    /// copies ([`Reach::Open`]), those of one call that had looked before may still be made: the
    /// peer does not wait for them, because this process may have been stopped.
    ///
    /// # Errors
    /// The copies may have been made in part.
    ///
    /// # Safety
    /// Each local place must be readable and, for [`Access::Read`], writable for its length, until
    /// the access is done or was recalled ([`Endpoint::recall`]).
    unsafe fn start(
        &mut self,
        access: Access,
        peer: Task,
        key: Option<Key>,
        copies: &[Copy],
    ) -> io::Result<Started>;

    /// Starts a write by the peer's standing key, without memory of its own; [`Self::ended_write`]
    /// reports it, with this cookie. What is said of [`Self::start`] holds for it. With `copied`
    /// it writes a copy of at most [`COPIED_MAX`] bytes: they may be changed at once. `false`: it
    /// was not started, because there is no such key, or no room now, or it is too long, or a
    /// packet is better now.
    ///
    /// # Safety
    /// The conditions of [`Self::start`] hold; with `copied` the local place must be readable now.
    unsafe fn write(&mut self, peer: Task, copy: Copy, cookie: u64, copied: bool) -> bool;

    /// The next of those writes that has ended; each is named once, unless it is recalled.
    fn ended_write(&mut self) -> Option<EndedWrite>;

    /// How many of them were started and neither reported nor recalled.
    fn unreported_writes(&mut self) -> usize;

    /// The next pending access that is done, and how it went; each is named once, unless it is
    /// recalled. An access that has failed reads and writes nothing more. One whose peer has closed
    /// or died fails, if it was not done before.
    fn poll(&mut self) -> Option<(AccessId, io::Result<()>)>;

    /// Counts, for the peer's statistics, bytes that were read out of its memory. Counts nothing
    /// where the peer cannot see it.
    fn count_fetched(&mut self, peer: Task, bytes: u64);
}
