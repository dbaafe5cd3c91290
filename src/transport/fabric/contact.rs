//! What this task has of one peer, from first contact on.

use super::ofi::Address;
use super::receive::Arrived;
use crate::transport::Key;
use crate::transport::presence::Presence;
use crate::wire::network::Rejoin;
use std::cell::Cell;
use std::collections::VecDeque;
use std::time::Instant;

/// A peer.
#[derive(Default)]
pub(super) struct Peer {
    /// What the peer has published, and where that is in the address vector.
    pub(super) published: Box<[u8]>,
    /// What the directory had for it last.
    pub(super) listed: Box<[u8]>,
    pub(super) address: Option<Address>,
    pub(super) standing: Presence,
    /// The tags of frames from the peer and to it.
    pub(super) mine: u32,
    pub(super) theirs: u32,
    /// Packets sent in this connection and received in it, modulo 2^32.
    pub(super) sent: u32,
    pub(super) received: u32,
    /// Packets that were sent and whose credits were not returned.
    pub(super) in_flight: u32,
    /// Packets that were released and whose credits were not returned.
    pub(super) owed: Cell<u16>,
    /// Messages to it that wait for room in the endpoint.
    pub(super) queued: u32,
    /// A packet found no room.
    pub(super) no_room: bool,
    /// A message was sent to it or came from it in this connection: it is informed when this
    /// task ends LAPI.
    pub(super) met: bool,
    /// Something has come from it in this connection: so it lets this task access its memory, if it
    /// does so at all.
    pub(super) heard: bool,
    /// The key of all memory of this task that it may use.
    pub(super) own_key: Option<Key>,
    /// The key of all of its memory, and the tag that it follows from.
    pub(super) its_key: Option<(u32, Key)>,
    /// An access to its memory has failed in this connection.
    pub(super) has_refused: bool,
    /// A message could not be sent: the peer, or only the connection, has ended.
    pub(super) broken: bool,
    /// The rails' owner has contact with it, by this rail or another one.
    pub(super) known: bool,
    /// Nothing is taken from it now.
    pub(super) held: bool,
    /// The peer's packets that are not to be taken yet: it is held, or this task does not know yet
    /// that it has rejoined.
    pub(super) aside: VecDeque<Arrived>,
    /// The peer's packets that have arrived and were not taken.
    pub(super) waiting: u32,
    pub(super) progress: u64,
    /// The transport's own messages that are to be sent: bits of [`super::own::Wants`].
    pub(super) wants: Cell<u8>,
    /// When it was to be sent last that its departure was seen.
    pub(super) seen_owed: Cell<Option<Instant>>,
    /// The peer was sent a [`Hello`](crate::wire::network::FrameKind::Hello) in this connection.
    pub(super) hello_sent: Cell<bool>,
    /// The peer departs when this number of packets has been received.
    pub(super) departs_after: Option<u32>,
    /// The peer has everything that this task sent, and knows that this task has ended LAPI.
    pub(super) knows_departure: bool,
    /// The epoch that it is sent.
    pub(super) epoch: u64,
    /// The peer wants to rejoin.
    pub(super) hello: Option<Rejoin>,
    /// The peer has rejoined, and [`crate::transport::Report::Joined`] has not named it yet: what
    /// is known of the connection before is still in use, so its packets wait.
    pub(super) unnamed: bool,
}

impl Peer {
    pub(super) fn new(first_tag: u32) -> Self {
        Self { mine: first_tag, theirs: first_tag, ..Self::default() }
    }

    #[inline]
    pub(super) fn is_up(&self) -> bool {
        self.standing == Presence::Up
    }

    /// Nothing is known to be on its way. What it is owed is taken back beforehand.
    pub(super) fn reset(&mut self) {
        (self.sent, self.received, self.in_flight) = (0, 0, 0);
        self.owed.set(0);
        (self.no_room, self.met, self.held, self.knows_departure) = (false, false, false, false);
        self.departs_after = None;
        (self.unnamed, self.known) = (false, false);
        (self.heard, self.has_refused, self.broken) = (false, false, false);
        self.hello_sent.set(false);
    }

    /// Whether the peer has ended LAPI or died.
    pub(super) fn has_left(&self) -> bool {
        matches!(self.standing, Presence::Closed | Presence::Dead(_))
    }

    /// Whether it knows of this task, or this task of it: they report their ends to each other.
    pub(super) fn has_met(&self) -> bool {
        self.met || self.hello_sent.get()
    }

    /// Whether this task has had contact with it: what another process with its number sends is not
    /// accepted before they have parted.
    pub(super) fn is_known(&self) -> bool {
        self.has_met() || self.known
    }

    /// A packet was accepted; its frame returns all credits.
    #[inline]
    pub(super) fn note_sent(&mut self) {
        self.sent = self.sent.wrapping_add(1);
        self.in_flight += 1;
        self.owed.set(0);
        self.no_room = false;
        self.met = true;
    }
}
