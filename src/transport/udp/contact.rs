//! What this task has of one peer, from first contact on.

use super::address_validation::AddressValidation;
use super::reliable::{Connection, Nanos, Parameters, State, Statistics};
use super::seal::{End, JobKey, Opener, Sealer};
use crate::transport::presence::Presence;
use crate::transport::{Tally, Task};
use crate::wire::datagram::Hello;
use std::net::SocketAddr;

/// The epoch in the hello of a task that has begun with the job, and has not parted from the peer.
pub(super) const FIRST_CONTACT: u64 = u64::MAX;

/// The epoch in a hello that only asks whether the other side lives and has the number
/// that it names.
pub(super) const CHALLENGE: u64 = u64::MAX - 1;

/// The epoch in a hello by which a task asks, or tells, whether an address is one of the peer's.
pub(super) const VALIDATION: u64 = u64::MAX - 2;

/// A peer.
#[derive(Default)]
pub(super) struct Peer {
    pub(super) standing: Presence,
    /// The connection; none after this task has parted from the peer.
    pub(super) session: Option<Session>,
    /// Where its datagrams go.
    pub(super) address_validation: AddressValidation,
    /// Where its last hello came from, before the connection was made.
    pub(super) heard_at: Option<SocketAddr>,
    /// Nothing is taken from it now.
    pub(super) held: bool,
    /// The peer has rejoined, and [`crate::transport::Report::Joined`] has not named it yet:
    /// its packets wait.
    pub(super) unnamed: bool,
    /// A packet found no room.
    pub(super) no_room: bool,
    /// Packets from it that were taken.
    pub(super) taken: u64,
    /// When it is served next, at the latest.
    pub(super) alarm: Option<Nanos>,
    /// The peer is among those that are served after what has arrived was noted.
    pub(super) touched: bool,
    /// The peer may be owed an acknowledgement.
    pub(super) owed: bool,
    /// When this task has first wanted something of it.
    pub(super) wanted: Option<Nanos>,
    /// A hello in its name has arrived that was made with another key.
    pub(super) other_key: bool,
    /// In which other opening of LAPI it is, as its last hello says.
    pub(super) other_opening: Option<u16>,
    /// The peer was given up, since it had not replied for too long, and nothing has come
    /// from it since.
    pub(super) given_up: bool,
}

impl Peer {
    /// The connection, where datagrams of it are still exchanged: a peer that has ended LAPI may
    /// not know that this task knows it.
    pub(super) fn live(&mut self) -> Option<&mut Session> {
        let exchanges = !matches!(self.standing, Presence::Dead(_) | Presence::HasParted | Presence::Parted);
        self.session.as_mut().filter(|_| exchanges)
    }

    /// Whether its packets can be handed out.
    pub(super) fn hands_out(&self) -> bool {
        !self.held && !self.unnamed
    }
}

/// One incarnation of the connection, with its keys.
pub(super) struct Session {
    pub(super) connection: Connection,
    /// What the hello of this side has as its epoch.
    pub(super) epoch: u64,
    keys: Option<Keys>,
}

struct Keys {
    /// The number of the other side that they were made for.
    theirs: u128,
    sealer: Sealer,
    opener: Opener,
}

impl Session {
    /// A connection that is to be made, with a new number.
    pub(super) fn new(hello: Hello, parameters: &Parameters, now: Nanos) -> Self {
        Self { connection: Connection::new(hello, parameters, now), epoch: hello.epoch, keys: None }
    }

    /// Makes it a connection with another epoch and number, while it is opening: what was taken is
    /// sent in that one.
    pub(super) fn begin_again(&mut self, hello: Hello, parameters: &Parameters, now: Nanos) {
        self.connection.begin_again(hello, parameters, now);
        (self.epoch, self.keys) = (hello.epoch, None);
    }

    /// The keys of this side's number and that of the other side, as far as it is known.
    pub(super) fn keys(&mut self, key: &JobKey, me: Task, peer: Task) -> Option<(&mut Sealer, &mut Opener)> {
        let (mine, theirs) = (self.connection.mine(), self.connection.theirs());
        if theirs == 0 {
            return None;
        }
        if self.keys.as_ref().is_none_or(|keys| keys.theirs != theirs) {
            let (sealer, opener) = key.connect(&end(me, mine), &end(peer, theirs));
            self.keys = Some(Keys { theirs, sealer, opener });
        }
        self.keys.as_mut().map(|keys| (&mut keys.sealer, &mut keys.opener))
    }

    /// The connection, and what seals its datagrams, once there are keys.
    pub(super) fn sealing(&mut self) -> (&mut Connection, Option<&mut Sealer>) {
        (&mut self.connection, self.keys.as_mut().map(|keys| &mut keys.sealer))
    }

    /// Whether it is not known yet which incarnation of the peer this one is connected with.
    pub(super) fn is_opening(&self) -> bool {
        self.connection.state() == State::Opening
    }

    /// Whether one side may await something of the other: the peer has said hello, or packets for
    /// it were accepted.
    pub(super) fn has_begun(&self) -> bool {
        self.connection.theirs() != 0 || !self.connection.is_empty()
    }

    /// What the connection has counted.
    pub(super) fn tally(&self) -> Tally {
        let Statistics { sent_again, duplicates, refused, acknowledgements, acknowledged, .. } =
            self.connection.statistics();
        Tally {
            outstanding: 0,
            sent_again,
            duplicates,
            refused,
            acknowledgements_sent: acknowledgements,
            acknowledgements_received: acknowledged,
            fetched: 0,
        }
    }
}

/// The side of a connection that has drawn this number.
fn end(task: Task, number: u128) -> End {
    End { task, epoch: number as u64, nonce: number.to_le_bytes() }
}
