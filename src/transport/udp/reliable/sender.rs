//! What leaves: packets cut into fragments, each kept until it is acknowledged; which of them are lost, and what may be sent now.

#[cfg(any(test, feature = "fuzz"))]
mod check;
mod loss;

use super::buffers::{self, Buffer, Buffers};
use super::congestion::Congestion;
use super::pacer::Pacer;
use super::round_trip::RoundTrip;
use super::{Nanos, OVERHEAD, Parameters, Statistics};
use crate::wire::datagram::{Fragment, NO_DELAY};
use std::collections::VecDeque;

/// A datagram is lost when one has arrived that was sent this many later, on a network that keeps the order.
const REORDERED: u64 = 3;
/// The same where the network was seen not to keep it, at most.
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
    /// It was not sent yet.
    Waiting,
    InFlight,
    /// It is to be sent again.
    Lost,
    Arrived,
}

#[derive(Debug)]
struct Piece {
    /// The number of its packet.
    packet: u64,
    index: u16,
    fate: Fate,
    len: u32,
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
    /// Its fragments that were not acknowledged.
    missing: u16,
}

/// What the sender wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Fragment(Fragment),
    /// The peer is to say whether it has room now.
    Ping,
}

/// One direction of a connection, at its beginning.
#[derive(Debug)]
pub struct Sender {
    unit: usize,
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
    /// What is in flight, by transmission: its number, and the fragment's.
    order: VecDeque<(u64, u64)>,
    in_flight: usize,
    /// The highest transmission that has arrived.
    highest: u64,
    reordered: u64,
    /// When something is found lost if nothing arrives before.
    loss: Option<Nanos>,
    /// The timer counts from this moment.
    since: Nanos,
    /// Consecutive ends of the timer.
    ends: u32,
    probes: u8,
    ping: bool,
    /// A packet found no room since the peer has said how much it has.
    awaits_room: bool,
    /// The congestion window, or the pacer, has held something up since the last acknowledgement.
    limited: bool,
    paced: Option<Nanos>,
    round_trip: RoundTrip,
    congestion: Congestion,
    pacer: Pacer,
    peer_delay: Nanos,
    longest: Nanos,
}

impl Sender {
    pub fn new(parameters: &Parameters) -> Self {
        let (most, datagram) = (usize::from(parameters.window), parameters.unit + OVERHEAD);
        Self {
            unit: parameters.unit,
            most,
            packets: VecDeque::with_capacity(most),
            first_packet: 0,
            pieces: VecDeque::with_capacity(most),
            first: 0,
            unsent: 0,
            limit: u64::from(parameters.window),
            lost: VecDeque::with_capacity(most),
            order: VecDeque::with_capacity(2 * most),
            in_flight: 0,
            highest: 0,
            reordered: REORDERED,
            loss: None,
            since: 0,
            ends: 0,
            probes: 0,
            ping: false,
            awaits_room: false,
            limited: false,
            paced: None,
            round_trip: RoundTrip::default(),
            congestion: Congestion::new(datagram, most),
            pacer: Pacer::new(datagram),
            peer_delay: parameters.acknowledge_after,
            longest: parameters.longest_interval,
        }
    }

    /// Cuts what was taken anew; nothing was sent yet. There may be more fragments than are kept otherwise: they are not longer together.
    pub fn agree(&mut self, parameters: &Parameters) {
        debug_assert!(self.unsent == 0 && self.first == 0);
        if self.unit == parameters.unit && self.most == usize::from(parameters.window) {
            return;
        }
        let former = std::mem::replace(self, Self::new(parameters));
        (self.since, self.awaits_room, self.longest) = (former.since, former.awaits_room, former.longest);
        for Packet { buffer, len, head_len, .. } in former.packets {
            self.push(former.since, buffer, head_len.into(), len);
        }
    }

    /// What is lost is sent again at least this often from now on.
    pub fn limit_interval(&mut self, most: Nanos) {
        self.longest = self.longest.min(most);
    }

    /// How many fragments a packet of this length has.
    #[inline]
    fn fragments(&self, len: usize) -> usize {
        len.div_ceil(self.unit).max(1)
    }

    /// Whether a packet of this length can be taken now: this side has room for it, and the peer.
    #[inline]
    pub fn has_room(&self, len: usize) -> bool {
        let fragments = self.fragments(len);
        self.pieces.len() + fragments <= self.most && self.end() + fragments as u64 <= self.limit
    }

    /// A packet found no room: the peer is asked whether it has room when the timer ends, since what it says may be lost.
    pub fn await_room(&mut self, now: Nanos) {
        if !std::mem::replace(&mut self.awaits_room, true) && self.pieces.is_empty() {
            self.since = now;
        }
    }

    /// Takes a packet: `len` bytes of the buffer, `head_len` of them its head. All of its fragments are equally long, so that the kernel can
    /// send them as one train, also with those of the next packet: zeros fill the last one up.
    #[inline]
    pub fn push(&mut self, now: Nanos, mut buffer: Buffer, head_len: usize, len: usize) {
        if self.pieces.is_empty() {
            self.since = now;
        }
        let count = self.fragments(len);
        let unit = len.div_ceil(count);
        buffers::bytes_mut(&mut buffer)[len..count * unit].fill(0);
        let packet = self.first_packet + self.packets.len() as u64;
        for index in 0..count as u16 {
            self.pieces.push_back(Piece {
                packet,
                index,
                fate: Fate::Waiting,
                len: unit as u32,
                transmission: 0,
                sent: 0,
            });
        }
        let (head_len, count) = (head_len as u8, count as u16);
        self.packets.push_back(Packet { buffer, len, head_len, unit, count, missing: count });
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

    /// The estimate of the round trip.
    pub fn round_trip_mut(&mut self) -> &mut RoundTrip {
        &mut self.round_trip
    }

    /// An acknowledgement has arrived. `last` is the number of the last transmission. Returns whether it says anything new.
    pub fn note(
        &mut self,
        now: Nanos,
        report: &Report<'_>,
        last: u64,
        buffers: &mut Buffers,
        statistics: &mut Statistics,
    ) -> bool {
        if report.acknowledged > self.unsent || report.echo > last {
            // No correct peer says so.
            return false;
        }
        let before = (self.first, self.limit);
        let mut arrived = Arrivals { bytes: 0, sent: 0, sample: None };
        for number in self.first..report.acknowledged {
            self.note_arrival(number, report.echo, &mut arrived);
        }
        for (at, byte) in report.map.iter().enumerate() {
            let mut bits = *byte;
            while bits != 0 {
                let number = report.acknowledged + 1 + 8 * at as u64 + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                if number < self.unsent {
                    self.note_arrival(number, report.echo, &mut arrived);
                }
            }
        }
        self.drop_arrived(buffers);
        self.limit = self.limit.max(report.acknowledged + u64::from(report.room));
        self.awaits_room &= self.limit == before.1;
        self.highest = self.highest.max(report.echo);
        if let Some(sent) = arrived.sample.filter(|_| report.delay != NO_DELAY) {
            self.round_trip.note(now.saturating_sub(sent), u64::from(report.delay) * 8_000);
        }
        if arrived.bytes != 0 {
            if std::mem::take(&mut self.limited) {
                let trip = self.round_trip.smoothed();
                self.congestion.note_arrival(now, arrived.bytes, arrived.sent, trip);
            }
            self.find_lost(now, statistics);
            self.set_pace(now);
        }
        let new = arrived.bytes != 0 || before != (self.first, self.limit);
        if new {
            (self.ends, self.probes, self.ping, self.since) = (0, 0, false, now);
        }
        new
    }

    fn note_arrival(&mut self, number: u64, echo: u64, arrived: &mut Arrivals) {
        let Some(piece) = self.piece_mut(number) else { return };
        let fate = std::mem::replace(&mut piece.fate, Fate::Arrived);
        let (len, sent, packet) = (piece.len as usize + OVERHEAD, piece.sent, piece.packet);
        let exact = piece.transmission == echo;
        match fate {
            Fate::Arrived => return,
            Fate::InFlight => self.in_flight -= len,
            // It was only late: this network reorders.
            Fate::Lost if self.ends == 0 => self.reordered = (2 * self.reordered).min(MOST_REORDERED),
            Fate::Lost | Fate::Waiting => {}
        }
        arrived.bytes += len;
        arrived.sent = arrived.sent.max(sent);
        if exact {
            arrived.sample = Some(sent);
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

    fn set_pace(&mut self, now: Nanos) {
        let (window, trip) = (self.congestion.window(), self.round_trip.smoothed());
        self.pacer.set(now, window, trip, self.congestion.is_starting());
    }

    /// Whether the peer's room is all that is waited for.
    fn is_refused(&self) -> bool {
        self.in_flight == 0 && self.lost.is_empty() && self.awaits_room
    }

    /// When the timer ends.
    fn timer(&self) -> Option<Nanos> {
        let runs = self.in_flight != 0 || self.is_refused();
        let interval = (self.round_trip.timeout() + self.peer_delay) << self.ends.min(10);
        // A way that is longer than the bound is not interrupted all the time; a peer that seldom looks does not count as such.
        let longest = self.longest.max(2 * self.round_trip.least());
        (runs && self.probes == 0 && !self.ping).then(|| self.since + interval.min(longest))
    }

    /// Does what time demands.
    fn advance(&mut self, now: Nanos, statistics: &mut Statistics) {
        if self.loss.is_some_and(|at| at <= now) {
            self.find_lost(now, statistics);
        }
        if self.timer().is_some_and(|at| at <= now) {
            self.ends += 1;
            if self.is_refused() {
                self.ping = true;
                return;
            }
            if self.ends == 2 {
                self.congestion.collapse(now);
                self.set_pace(now);
            }
            self.probes = PROBES;
            for _ in 0..PROBES {
                self.prune();
                let Some(&(_, number)) = self.order.front() else { break };
                self.lose(number);
            }
            self.prune();
        }
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
        self.advance(now, statistics);
        if std::mem::take(&mut self.ping) {
            self.since = now;
            return Some(Next::Ping);
        }
        self.paced = None;
        let Some(number) = self.candidate() else {
            self.probes = 0;
            return None;
        };
        let len = self.piece(number)?.len as usize + OVERHEAD;
        if self.probes != 0 {
            self.probes -= 1;
        } else {
            if self.in_flight != 0 && self.in_flight + len > self.congestion.window() {
                self.limited = true;
                return None;
            }
            if let Err(later) = self.pacer.look(now) {
                self.limited = true;
                self.paced = Some(later);
                return None;
            }
        }
        self.pacer.spend(len);
        Some(Next::Fragment(self.send(now, number, transmission, statistics)?))
    }

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
        let (index, serial, len) = (piece.index, piece.packet, piece.len as usize + OVERHEAD);
        if again {
            self.lost.pop_front();
            statistics.sent_again += 1;
        } else {
            self.unsent = number + 1;
            statistics.sent += 1;
        }
        self.in_flight += len;
        self.order.push_back((transmission, number));
        self.since = now;
        let packet = self.packets.get((serial - self.first_packet) as usize)?;
        let (count, head_len, packet_len) = (packet.count, packet.head_len, packet.len as u32);
        // Nothing more can be sent until this is acknowledged.
        let full = self.in_flight + self.unit + OVERHEAD > self.congestion.window();
        let urgent = again || full || self.unsent == self.limit;
        self.limited |= full;
        Some(Fragment { number, index, count, head_len, packet_len, urgent })
    }

    /// When [`Self::next`] has something next, if nothing arrives.
    pub fn due(&self, now: Nanos) -> Option<Nanos> {
        let mut lost = self.lost.iter().filter_map(|&number| self.piece(number));
        let lost = lost.find(|piece| piece.fate == Fate::Lost);
        let new = (self.unsent < self.limit.min(self.end())).then(|| self.piece(self.unsent)).flatten();
        let fits = |piece: &Piece| {
            self.in_flight == 0 || self.in_flight + piece.len as usize + OVERHEAD <= self.congestion.window()
        };
        let ready = self.ping || self.probes != 0 || lost.or(new).is_some_and(fits);
        let send = ready.then(|| self.paced.unwrap_or(now));
        [send, self.loss, self.timer()].into_iter().flatten().min()
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
        self.order.clear();
        (self.in_flight, self.loss, self.probes) = (0, None, 0);
        (self.ping, self.awaits_room) = (false, false);
    }
}

/// What one acknowledgement has shown.
struct Arrivals {
    bytes: usize,
    /// When the latest of them was sent.
    sent: Nanos,
    /// When the transmission was sent that has caused the acknowledgement.
    sample: Option<Nanos>,
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
