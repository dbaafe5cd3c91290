//! The state of the connections.

#[cfg(doc)]
use super::{Endpoint, RemoteAccess, Wakeup};
use crate::error::Result;
#[cfg(doc)]
use crate::transport::{Door, SendOutcome};
use crate::transport::{Key, Task};

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

/// What a task withdraws from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// One registration made for the peer: after this the memory is not accessed. Has no effect
    /// when there is none with this key.
    Key(Key),
    /// What was taken for the peer, the remote accesses under way with it, and all registrations
    /// made for it: after this no memory of the program is read or written for them, and none is
    /// reported. The packets may arrive or not, and the accesses may have been made or not. A
    /// network without a card cannot end what has begun with a peer that is silent: a packet that
    /// was taken, and parts of at most 1 MiB of accesses that [`RemoteAccess::access`] has started,
    /// may still be read or written if the peer continues later.
    Traffic,
    /// All that, and the connection: nothing more is received from the peer, and to send to it
    /// returns [`SendOutcome::Gone`]. May be withdrawn while a packet of the peer's is not released
    /// yet. Has no effect when the two have parted before.
    Connection,
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

/// What can be seen of a peer without a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// A count that changes when the peer makes progress: whenever a packet from it is taken here,
    /// or a number given ([`Door::signal`]), and sooner or later when it takes packets from here.
    pub progress: u64,
    /// Whether the peer polls. A transport that polled recently may count as polling; a transport
    /// that has no such knowledge says that it does.
    pub polls: bool,
    /// The state of the connection, where there is one that the transport can observe.
    pub connection: Option<ConnectionView>,
}

impl View {
    /// The view of a peer that this task is not connected with.
    pub(crate) const NONE: Self = Self { progress: 0, polls: true, connection: None };
}

/// The peers and the connections with them.
pub trait Peers {
    /// Where the peer stands. May make a system call: not for hot paths.
    fn standing(&self, peer: Task) -> PeerStanding;

    /// Whether the peer takes packets, or will, as far as is known without a system call.
    fn is_open(&self, peer: Task) -> bool;

    /// The progress of the peer, and the state of the connection with it.
    fn view(&self, peer: Task) -> View;

    /// Withdraws something from the peer at once.
    fn withdraw(&mut self, peer: Task, what: Withdrawal);

    /// Lets `peer`, from which this task has parted, rejoin: the same process when it does
    /// likewise, or another one with its number. From now on the peer counts as up, and packets to
    /// it find no room until it has rejoined. It is sent `epoch`.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`: the system lacks what is needed; nothing has changed.
    fn rejoin(&mut self, peer: Task, epoch: u64) -> Result<()>;
}
