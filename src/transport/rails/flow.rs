//! Packets to and from one peer over several rails: numbers, acknowledgements, what must be sent
//! again, what is a duplicate. Without a clock or a socket.
//!
//! Packets are accepted in the order of their numbers. What arrives too early is kept: it is
//! bounded by the sender's window.

use std::collections::{BTreeMap, VecDeque};

/// Packets that are not acknowledged, at most.
pub(super) const WINDOW: u32 = 64;

/// What to do with a packet that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The packet is the next one: it was accepted.
    Next,
    /// The packet is to be kept ([`Flow::keep`]) until those before it have arrived.
    Early,
    /// The packet has arrived before.
    Duplicate,
}

/// A packet that was not acknowledged yet.
struct Sent<P> {
    /// `None` while it is taken.
    packet: Option<P>,
    /// The rail over which it was sent; `None`: it is to be sent.
    rail: Option<usize>,
}

/// The packets between this task and one peer. `P` is a packet that is kept.
pub(super) struct Flow<P> {
    /// What was not acknowledged, oldest first. The last one has the number before `next`.
    sent: VecDeque<Sent<P>>,
    next: u32,
    /// How many of them are to be sent.
    unsent: usize,
    /// The number of the next packet from the peer.
    expected: u32,
    early: BTreeMap<u32, P>,
    /// What the peer was last sent as acknowledgement.
    acknowledged: u32,
    /// The peer has sent again what was acknowledged before.
    again: bool,
}

impl<P> Default for Flow<P> {
    fn default() -> Self {
        Self {
            sent: VecDeque::new(),
            next: 0,
            unsent: 0,
            expected: 0,
            early: BTreeMap::new(),
            acknowledged: 0,
            again: false,
        }
    }
}

impl<P> Flow<P> {
    /// Whether another packet may be sent.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.sent.len() < WINDOW as usize
    }

    /// Packets that are not acknowledged.
    pub(super) fn unacknowledged(&self) -> usize {
        self.sent.len()
    }

    /// Whether packets are to be sent: new ones come after them.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        self.unsent != 0
    }

    /// The number of the next packet.
    #[inline]
    pub(super) fn next_number(&self) -> u32 {
        self.next
    }

    /// The next packet, sent over this rail or, without one, to be sent. There must be room.
    #[inline]
    pub(super) fn push(&mut self, packet: P, rail: Option<usize>) {
        debug_assert!(self.has_room());
        self.unsent += usize::from(rail.is_none());
        self.sent.push_back(Sent { packet: Some(packet), rail });
        self.next = self.next.wrapping_add(1);
    }

    /// Takes the first packet that is to be sent, and its number. It must be put back.
    pub(super) fn take_unsent(&mut self) -> Option<(u32, P)> {
        if self.unsent == 0 {
            return None;
        }
        let waits = |sent: &Sent<P>| sent.rail.is_none() && sent.packet.is_some();
        let at = self.sent.iter().position(waits)?;
        let packet = self.sent[at].packet.take()?;
        Some((self.oldest().wrapping_add(at as u32), packet))
    }

    /// Puts back what was taken: it was sent over the rail, or is still to be sent.
    pub(super) fn put_back(&mut self, number: u32, packet: P, rail: Option<usize>) {
        let at = number.wrapping_sub(self.oldest()) as usize;
        if let Some(sent) = self.sent.get_mut(at) {
            sent.packet = Some(packet);
            sent.rail = rail;
            self.unsent -= usize::from(rail.is_some());
        }
    }

    /// What was sent over this rail is to be sent again: how many packets.
    pub(super) fn lose(&mut self, rail: usize) -> usize {
        let mut count = 0;
        for sent in self.sent.iter_mut().filter(|sent| sent.rail == Some(rail)) {
            sent.rail = None;
            count += 1;
        }
        self.unsent += count;
        count
    }

    /// The peer has accepted all packets before this number: they are given to `free`. Whether
    /// there were any.
    #[inline]
    pub(super) fn note_accepted(&mut self, number: u32, mut free: impl FnMut(P)) -> bool {
        let count = number.wrapping_sub(self.oldest()) as usize;
        // A number of before, or of another connection.
        if count > self.sent.len() {
            return false;
        }
        for sent in self.sent.drain(..count) {
            self.unsent -= usize::from(sent.rail.is_none());
            sent.packet.map(&mut free);
        }
        count != 0
    }

    /// A packet with this number has arrived.
    #[inline]
    pub(super) fn arrived(&mut self, number: u32) -> Arrival {
        if number == self.expected && self.early.is_empty() {
            self.expected = self.expected.wrapping_add(1);
            return Arrival::Next;
        }
        self.arrived_out_of_order(number)
    }

    #[cold]
    fn arrived_out_of_order(&mut self, number: u32) -> Arrival {
        let ahead = number.wrapping_sub(self.expected);
        if ahead == 0 {
            self.expected = self.expected.wrapping_add(1);
            return Arrival::Next;
        }
        if ahead >= WINDOW || self.early.contains_key(&number) {
            self.again = true;
            return Arrival::Duplicate;
        }
        Arrival::Early
    }

    /// Keeps a packet that has arrived ([`Arrival::Early`]).
    pub(super) fn keep(&mut self, number: u32, packet: P) {
        self.early.insert(number, packet);
    }

    /// The next of the packets that were kept, if it is its turn: it was accepted.
    pub(super) fn take_early(&mut self) -> Option<P> {
        let packet = self.early.remove(&self.expected)?;
        self.expected = self.expected.wrapping_add(1);
        Some(packet)
    }

    /// All packets of the peer before this number were accepted. The peer is sent this number now.
    #[inline]
    pub(super) fn acknowledge(&mut self) -> u32 {
        self.acknowledged = self.expected;
        self.again = false;
        self.expected
    }

    /// All packets of the peer before this number were accepted.
    pub(super) fn accepted(&self) -> u32 {
        self.expected
    }

    /// The acknowledgement that the peer was sent last.
    pub(super) fn last_acknowledged(&self) -> u32 {
        self.acknowledged
    }

    /// Packets that were accepted and not acknowledged yet.
    #[inline]
    pub(super) fn owed(&self) -> u32 {
        self.expected.wrapping_sub(self.acknowledged) + u32::from(self.again)
    }

    fn oldest(&self) -> u32 {
        self.next.wrapping_sub(self.sent.len() as u32)
    }
}
