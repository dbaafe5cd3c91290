//! What leaves: packets cut into fragments, each kept until it is acknowledged; which of them are
//! lost, and what may be sent now.

#[cfg(any(test, feature = "fuzz"))]
mod check;
mod loss;
mod timing;

use super::buffers::{self, Buffer, Buffers};
use super::path::Path;
use super::{Nanos, OVERHEAD, Parameters, Statistics};
use crate::wire::datagram::{Fragment, NO_DELAY};
use std::collections::VecDeque;

/// A datagram is lost when one has arrived that was sent this many later, at most: on a network
/// that was seen not to keep the order.
const MOST_REORDERED: u64 = 64;

/// Fragments that the timer sends again.
const PROBES: u8 = 2;

/// What one acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    pub acknowledged: u64,
    pub echo: u64,
    pub room: u16,
    pub delay: u16,
    /// The map behind the acknowledged number.
    pub map: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The fragment was not sent yet.
    Waiting,
    InFlight,
    /// The fragment is to be sent again.
    Lost,
    Arrived,
}

#[derive(Debug)]
struct Piece {
    /// The number of its packet.
    packet: u64,
    index: u16,
    len: u16,
    fate: Fate,
    /// The fragment was sent more than once.
    again: bool,
    transmission: u64,
    sent: Nanos,
}

#[derive(Debug)]
struct Packet {
    buffer: Buffer,
    len: usize,
    head_len: u8,
    /// Bytes of each of its fragments.
    unit: usize,
    count: u16,
    /// The packet's fragments that were not acknowledged.
    missing: u16,
}

/// What one acknowledgement has shown.
#[derive(Default)]
struct News {
    /// Bytes that have arrived.
    bytes: usize,
    /// When the latest of them was sent.
    sent: Nanos,
    /// When the transmission was sent that has caused the acknowledgement.
    sample: Option<Nanos>,
}

/// What the sender wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A fragment; it may be longer than the path takes, if the last part says so.
    Fragment(Fragment, bool),
    /// The peer is to say whether it has room now.
    Ping,
    /// The peer is to reply with this number. This number of bytes goes with it.
    Probe(u64, usize),
}

/// One direction of a connection, at its beginning.
#[derive(Debug)]
pub struct Sender {
    /// The most bytes that a fragment ever has.
    longest_unit: usize,
    /// Fragments that are kept, at most.
    most: usize,
    packets: VecDeque<Packet>,
    /// The number of the first of them.
    first_packet: u64,
    pieces: VecDeque<Piece>,
    /// The number of the first of them: all before have arrived.
    first: u64,
    /// The number of the first fragment that was not sent yet.
    unsent: u64,
    /// Fragments before this number have room at the peer.
    limit: u64,
    lost: VecDeque<u64>,
    path: Path,
    /// A ping is to be sent.
    ping: bool,
    /// The number of the last ping.
    pinged: Option<u64>,
    /// A packet found no room since the peer has said how much it has.
    awaits_room: bool,
    /// The pacer holds up the next fragment until then.
    paced: Option<Nanos>,
    peer_delay: Nanos,
    longest: Nanos,
}

impl Sender {
    pub fn new(parameters: &Parameters) -> Self {
        let most = usize::from(parameters.window);
        Self {
            longest_unit: parameters.unit,
            most,
            packets: VecDeque::with_capacity(most),
            first_packet: 0,
            pieces: VecDeque::with_capacity(most),
            first: 0,
            unsent: 0,
            limit: u64::from(parameters.window),
            lost: VecDeque::with_capacity(most),
            path: Path::new(parameters),
            ping: false,
            pinged: None,
            awaits_room: false,
            paced: None,
            peer_delay: parameters.acknowledge_after,
            longest: parameters.longest_interval,
        }
    }

    /// Cuts again what was taken; nothing was sent yet. There may be more fragments than are kept
    /// otherwise: they are not longer together.
    pub fn agree(&mut self, parameters: &Parameters) {
        debug_assert!(self.unsent == 0 && self.first == 0);
        if self.longest_unit == parameters.unit && self.most == usize::from(parameters.window) {
            return;
        }
        let former = std::mem::replace(self, Self::new(parameters));
        let since = former.path.since;
        (self.path.round_trip, self.path.since) = (former.path.round_trip, since);
        (self.awaits_room, self.longest) = (former.awaits_room, former.longest);
        for Packet { buffer, len, head_len, .. } in former.packets {
            self.push(since, buffer, head_len.into(), len);
        }
    }

    /// What is lost is sent again at least this often from now on.
    pub fn limit_interval(&mut self, most: Nanos) {
        self.longest = self.longest.min(most);
    }

    /// How many fragments a packet of this length has.
    #[inline]
    fn fragments(&self, len: usize) -> usize {
        // What most packets are; a division takes longer.
        let unit = self.path.length.used();
        if len <= unit { 1 } else { len.div_ceil(unit) }
    }

    /// Whether a packet of this length can be taken now: this side has room for it, and the peer.
    #[inline]
    pub fn has_room(&self, len: usize) -> bool {
        let fragments = self.fragments(len);
        self.pieces.len() + fragments <= self.most && self.end() + fragments as u64 <= self.limit
    }

    /// A packet found no room: the peer is asked whether it has room when the timer ends, since
    /// what it says may be lost.
    pub fn await_room(&mut self, now: Nanos) {
        if !std::mem::replace(&mut self.awaits_room, true) && self.pieces.is_empty() {
            self.path.since = now;
        }
    }

    /// Takes a packet: `len` bytes of the buffer, `head_len` of them its head. All of its fragments
    /// are equally long, so that the kernel can send them as one train, also with those of the next
    /// packet: zeros fill the last one up.
    #[inline]
    pub fn push(&mut self, now: Nanos, mut buffer: Buffer, head_len: usize, len: usize) {
        if self.pieces.is_empty() {
            self.path.since = now;
        }
        let count = self.fragments(len);
        if count > 1 {
            self.path.length.want();
        }
        let unit = if count == 1 { len } else { len.div_ceil(count) };
        buffers::bytes_mut(&mut buffer)[len..count * unit].fill(0);
        let packet = self.first_packet + self.packets.len() as u64;
        for index in 0..count as u16 {
            self.pieces.push_back(Piece {
                packet,
                index,
                len: unit as u16,
                fate: Fate::Waiting,
                again: false,
                transmission: 0,
                sent: 0,
            });
        }
        let (head_len, count) = (head_len as u8, count as u16);
        self.packets.push_back(Packet { buffer, len, head_len, unit, count, missing: count });
    }

    /// The connection has come up. `sample`: the time of a round trip.
    pub fn prove(&mut self, now: Nanos, sample: Option<Nanos>) {
        if let Some(sample) = sample {
            self.path.round_trip.note(sample, 0);
        }
        self.path.prove(now);
    }

    /// The peer has replied to a probe. Whether that is news.
    pub fn note_reply(&mut self, now: Nanos, number: u64) -> bool {
        self.path.length.replied(now, number)
    }

    /// How many fragments the peer has, or has had, room for.
    pub fn granted(&self) -> u64 {
        self.limit
    }

    /// The number after that of the last fragment that was taken.
    pub fn end(&self) -> u64 {
        self.first + self.pieces.len() as u64
    }

    /// Whether all that was taken has arrived.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Fragments that were sent and not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.unsent - self.first
    }

    fn piece(&self, number: u64) -> Option<&Piece> {
        self.pieces.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn piece_mut(&mut self, number: u64) -> Option<&mut Piece> {
        self.pieces.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The bytes of a fragment; `None` when it has arrived.
    #[inline]
    pub fn payload(&self, number: u64) -> Option<&[u8]> {
        let piece = self.piece(number).filter(|piece| piece.fate != Fate::Arrived)?;
        let packet = self.packets.get((piece.packet - self.first_packet) as usize)?;
        let from = usize::from(piece.index) * packet.unit;
        Some(&buffers::bytes(&packet.buffer, from + packet.unit)[from..])
    }

    /// An acknowledgement has arrived. `last` is the number of the last transmission. Returns
    /// whether it says anything new.
    pub fn note(&mut self, now: Nanos, report: &Report<'_>, last: u64, buffers: &mut Buffers) -> bool {
        if report.acknowledged > self.unsent || report.echo > last {
            // No correct peer says so.
            return false;
        }
        let before = (self.first, self.limit);
        let mut news = News::default();
        for number in self.first..report.acknowledged {
            self.note_arrival(number, report.echo, &mut news);
        }
        for (at, byte) in report.map.iter().enumerate() {
            let mut bits = *byte;
            while bits != 0 {
                let number = report.acknowledged + 1 + 8 * at as u64 + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                if number < self.unsent {
                    self.note_arrival(number, report.echo, &mut news);
                }
            }
        }
        self.drop_arrived(buffers);
        self.limit = self.limit.max(report.acknowledged + u64::from(report.room));
        self.awaits_room &= self.limit == before.1;
        let mut new = before != (self.first, self.limit);
        let path = &mut self.path;
        path.highest = path.highest.max(report.echo);
        if let Some(sent) = news.sample.filter(|_| report.delay != NO_DELAY) {
            path.round_trip.note(now.saturating_sub(sent), u64::from(report.delay) * 8_000);
        }
        if news.bytes != 0 {
            new = true;
            if std::mem::take(&mut path.limited) {
                path.congestion.note_arrival(now, news.bytes, news.sent, path.round_trip.smoothed());
            }
            self.find_lost(now);
            self.path.set_pace(now);
        }
        if new || self.pinged == Some(report.echo) {
            self.path.prove(now);
        }
        if new {
            self.ping = false;
            // The pace may be another one.
            self.paced = None;
        }
        new
    }

    fn note_arrival(&mut self, number: u64, echo: u64, news: &mut News) {
        let Some(piece) = self.piece_mut(number) else { return };
        let fate = std::mem::replace(&mut piece.fate, Fate::Arrived);
        let Piece { len, sent, packet, transmission, again, .. } = *piece;
        let (len, exact) = (usize::from(len) + OVERHEAD, transmission == echo);
        let path = &mut self.path;
        match fate {
            Fate::Arrived => return,
            Fate::InFlight => path.in_flight -= len,
            // It was only late: this network reorders.
            Fate::Lost if path.ends == 0 => path.reordered = (2 * path.reordered).min(MOST_REORDERED),
            Fate::Lost | Fate::Waiting => {}
        }
        news.bytes += len;
        news.sent = news.sent.max(sent);
        if exact || !again {
            path.length.note_arrival(len - OVERHEAD);
        }
        if exact {
            news.sample = Some(sent);
        }
        if let Some(packet) = self.packets.get_mut((packet - self.first_packet) as usize) {
            packet.missing -= 1;
        }
    }

    /// Forgets what has arrived, from the front.
    fn drop_arrived(&mut self, buffers: &mut Buffers) {
        while self.pieces.front().is_some_and(|piece| piece.fate == Fate::Arrived) {
            self.pieces.pop_front();
            self.first += 1;
        }
        while self.packets.front().is_some_and(|packet| packet.missing == 0) {
            buffers.give(self.packets.pop_front().expect("looked at").buffer);
            self.first_packet += 1;
        }
        self.prune();
    }

    /// Whether the peer's room is all that is waited for.
    fn is_refused(&self) -> bool {
        // The list may have fragments that have arrived after all.
        let is_lost = |&number: &u64| self.piece(number).is_some_and(|piece| piece.fate == Fate::Lost);
        // What was cut again for shorter datagrams may be more than the peer has room for, too.
        let waits = self.awaits_room || self.unsent == self.limit && self.unsent < self.end();
        waits && self.path.in_flight == 0 && !self.lost.iter().any(is_lost)
    }

    /// The number of a fragment to be sent now: one that is lost, or the next.
    fn candidate(&mut self) -> Option<u64> {
        while let Some(&number) = self.lost.front() {
            if self.piece(number).is_some_and(|piece| piece.fate == Fate::Lost) {
                return Some(number);
            }
            self.lost.pop_front();
        }
        (self.unsent < self.limit.min(self.end())).then_some(self.unsent)
    }

    /// What is to be sent now, as transmission `transmission`, if anything.
    #[inline]
    pub fn next(&mut self, now: Nanos, transmission: u64, statistics: &mut Statistics) -> Option<Next> {
        self.advance(now);
        if std::mem::take(&mut self.ping) {
            self.path.since = now;
            self.pinged = Some(transmission);
            return Some(Next::Ping);
        }
        if let Some(padding) = self.probe(now, transmission) {
            return Some(Next::Probe(transmission, padding));
        }
        let (fragment, in_parts) = self.next_fragment(now, transmission, statistics)?;
        Some(Next::Fragment(fragment, in_parts))
    }

    /// The fragment that is to be sent now, if any, and whether it may be longer than the path
    /// takes. While [`Self::next`] has fragments at one moment, it has nothing else.
    #[inline]
    pub fn next_fragment(
        &mut self,
        now: Nanos,
        transmission: u64,
        statistics: &mut Statistics,
    ) -> Option<(Fragment, bool)> {
        self.paced = None;
        let Some(number) = self.candidate() else {
            self.path.probes = 0;
            return None;
        };
        let len = usize::from(self.piece(number)?.len) + OVERHEAD;
        if !self.admits(now, len) {
            return None;
        }
        self.path.pacer.spend(len);
        let in_parts = len > self.path.length.used() + OVERHEAD;
        let fragment = self.send(now, number, transmission, statistics)?;
        Some((fragment, in_parts))
    }

    /// Whether a datagram of this length may leave now.
    #[inline]
    fn admits(&mut self, now: Nanos, len: usize) -> bool {
        let path = &mut self.path;
        if path.probes != 0 {
            path.probes -= 1;
            return true;
        }
        if path.is_full(len) {
            path.limited = true;
            return false;
        }
        if let Err(later) = path.pacer.look(now) {
            path.limited = true;
            self.paced = Some(later);
            return false;
        }
        true
    }

    #[inline]
    fn send(
        &mut self,
        now: Nanos,
        number: u64,
        transmission: u64,
        statistics: &mut Statistics,
    ) -> Option<Fragment> {
        let piece = self.piece_mut(number)?;
        let again = piece.fate == Fate::Lost;
        (piece.fate, piece.transmission, piece.sent) = (Fate::InFlight, transmission, now);
        piece.again = again;
        let (index, serial, len) = (piece.index, piece.packet, usize::from(piece.len) + OVERHEAD);
        if again {
            self.lost.pop_front();
            statistics.sent_again += 1;
        } else {
            self.unsent = number + 1;
        }
        let path = &mut self.path;
        path.in_flight += len;
        path.order.push_back((transmission, number));
        path.since = now;
        // Nothing more can be sent until this is acknowledged.
        let full = path.is_full(path.length.used() + OVERHEAD);
        path.limited |= full;
        let packet = self.packets.get((serial - self.first_packet) as usize)?;
        let (count, head_len, packet_len) = (packet.count, packet.head_len, packet.len as u32);
        let urgent = again || full || self.unsent == self.limit;
        Some(Fragment { number, index, count, head_len, packet_len, urgent })
    }

    /// Nothing is to arrive any more.
    pub fn abandon(&mut self, buffers: &mut Buffers) {
        self.first = self.end();
        self.unsent = self.first;
        self.limit = self.limit.max(self.first);
        self.first_packet += self.packets.len() as u64;
        self.pieces.clear();
        self.packets.drain(..).for_each(|packet| buffers.give(packet.buffer));
        self.lost.clear();
        self.path.abandon();
        (self.ping, self.awaits_room) = (false, false);
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
