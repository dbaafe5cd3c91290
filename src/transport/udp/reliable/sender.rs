//! What leaves: packets cut into fragments, each kept until it is acknowledged; which of them are lost, and what may be sent now.

#[cfg(any(test, feature = "fuzz"))]
mod check;
mod choice;
mod loss;
mod timing;

use super::buffers::{self, Buffer, Buffers};
use super::path::{News, Path};
use super::round_trip::GRANULARITY;
use super::{Nanos, OVERHEAD, Parameters, Statistics};
use crate::wire::datagram::{Fragment, NO_DELAY};
use std::collections::VecDeque;

/// A datagram is lost when one has arrived that was sent this many later, at most: on a network that was seen not to keep the order.
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
    len: u16,
    fate: Fate,
    /// It was sent more than once.
    again: bool,
    /// By which path it was sent.
    path: u8,
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
    /// The path that its fragments use while that works.
    path: u8,
}

/// What the sender wants to send, and by which path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It may be longer than the path takes, if the last part says so.
    Fragment(Fragment, u8, bool),
    /// The peer is to say whether it has room now.
    Ping(u8),
    /// The peer is to reply by the same path, with this number. This number of bytes goes with it.
    Probe(u64, u8, usize),
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
    /// At least one.
    paths: Box<[Path]>,
    /// The path for what fits into one datagram, while it works.
    home: usize,
    /// A ping is to be sent, by this path.
    ping: Option<u8>,
    /// The path of the last ping, and its number.
    pinged: Option<(u8, u64)>,
    /// A packet found no room since the peer has said how much it has.
    awaits_room: bool,
    /// The pacers hold up the next fragment until then.
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
            paths: (0..parameters.paths.max(1)).map(|_| Path::new(parameters)).collect(),
            home: 0,
            ping: None,
            pinged: None,
            awaits_room: false,
            paced: None,
            peer_delay: parameters.acknowledge_after,
            longest: parameters.longest_interval,
        }
    }

    /// Cuts again what was taken; nothing was sent yet. There may be more fragments than are kept otherwise: they are not longer together.
    pub fn agree(&mut self, parameters: &Parameters) {
        debug_assert!(self.unsent == 0 && self.first == 0);
        if self.longest_unit == parameters.unit && self.most == usize::from(parameters.window) {
            return;
        }
        let former = std::mem::replace(self, Self::new(parameters));
        let since = former.paths[0].since;
        self.paths.iter_mut().zip(&former.paths).for_each(|(path, before)| path.agree(before));
        (self.home, self.awaits_room, self.longest) = (former.home, former.awaits_room, former.longest);
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
        if len <= self.unit() { 1 } else { len.div_ceil(self.unit()) }
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
            self.start(now);
        }
    }

    /// Takes a packet: `len` bytes of the buffer, `head_len` of them its head. All of its fragments are equally long, so that the kernel can
    /// send them as one train, also with those of the next packet: zeros fill the last one up.
    #[inline]
    pub fn push(&mut self, now: Nanos, mut buffer: Buffer, head_len: usize, len: usize) {
        if self.pieces.is_empty() {
            self.start(now);
        }
        let count = self.fragments(len);
        if count > 1 {
            self.paths.iter_mut().for_each(|path| path.length.want());
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
                path: 0,
                transmission: 0,
                sent: 0,
            });
        }
        let (head_len, count) = (head_len as u8, count as u16);
        self.packets.push_back(Packet { buffer, len, head_len, unit, count, missing: count, path: 0 });
    }

    /// There is something to wait for after a while without: the timers count from now.
    fn start(&mut self, now: Nanos) {
        for path in &mut self.paths {
            path.since = now;
            path.wake();
        }
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
        self.paths.iter_mut().for_each(|path| path.news = News::default());
        for number in self.first..report.acknowledged {
            self.note_arrival(number, report.echo);
        }
        for (at, byte) in report.map.iter().enumerate() {
            let mut bits = *byte;
            while bits != 0 {
                let number = report.acknowledged + 1 + 8 * at as u64 + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                if number < self.unsent {
                    self.note_arrival(number, report.echo);
                }
            }
        }
        self.drop_arrived(buffers);
        self.limit = self.limit.max(report.acknowledged + u64::from(report.room));
        self.awaits_room &= self.limit == before.1;
        let mut new = before != (self.first, self.limit);
        let only = self.paths.len() == 1;
        for at in 0..self.paths.len() {
            let path = &mut self.paths[at];
            if only {
                path.highest = path.highest.max(report.echo);
            }
            if let Some(sent) = path.news.sample.filter(|_| report.delay != NO_DELAY) {
                path.round_trip.note(now.saturating_sub(sent), u64::from(report.delay) * 8_000);
            }
            let News { bytes, sent, sure, .. } = path.news;
            if bytes != 0 {
                new = true;
                if std::mem::take(&mut path.limited) {
                    path.congestion.note_arrival(now, bytes, sent, path.round_trip.smoothed());
                }
                self.find_lost(now, at, statistics);
                self.paths[at].set_pace(now);
            }
            let pinged = self.pinged.is_some_and(|own| own == (at as u8, report.echo));
            if sure || pinged || only && new {
                self.paths[at].prove(now);
            }
        }
        if new {
            self.ping = None;
            // The pace may be another one.
            self.paced = None;
        }
        new
    }

    fn note_arrival(&mut self, number: u64, echo: u64) {
        let Some(piece) = self.piece_mut(number) else { return };
        let fate = std::mem::replace(&mut piece.fate, Fate::Arrived);
        let Piece { len, sent, packet, transmission, again, path, .. } = *piece;
        let (len, exact) = (usize::from(len) + OVERHEAD, transmission == echo);
        let path = &mut self.paths[usize::from(path)];
        match fate {
            Fate::Arrived => return,
            Fate::InFlight => path.in_flight -= len,
            // It was only late: this network reorders.
            Fate::Lost if path.ends == 0 => path.reordered = (2 * path.reordered).min(MOST_REORDERED),
            Fate::Lost | Fate::Waiting => {}
        }
        path.news.bytes += len;
        path.news.sent = path.news.sent.max(sent);
        if exact || !again {
            path.news.sure = true;
            path.length.note_arrival(len - OVERHEAD);
            path.highest = path.highest.max(transmission);
        }
        if exact {
            path.news.sample = Some(sent);
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
        (0..self.paths.len()).for_each(|path| self.prune(path));
    }

    /// Bytes in flight on all paths.
    fn in_flight(&self) -> usize {
        self.paths.iter().map(|path| path.in_flight).sum()
    }

    /// Whether the peer's room is all that is waited for.
    fn is_refused(&self) -> bool {
        // The list may have fragments that have arrived after all.
        let is_lost = |&number: &u64| self.piece(number).is_some_and(|piece| piece.fate == Fate::Lost);
        // What was cut again for shorter datagrams may be more than the peer has room for, too.
        let waits = self.awaits_room || self.unsent == self.limit && self.unsent < self.end();
        waits && self.in_flight() == 0 && !self.lost.iter().any(is_lost)
    }

    /// Does what time demands of a path.
    fn advance(&mut self, now: Nanos, at: usize, statistics: &mut Statistics) {
        if self.paths[at].loss.is_some_and(|loss| loss <= now) {
            self.find_lost(now, at, statistics);
        }
        // No timer is shorter.
        let shortest = self.longest.min(GRANULARITY);
        if now < self.paths[at].since + shortest || self.timer(at).is_none_or(|end| end > now) {
            return;
        }
        let refused = self.is_refused();
        self.note_end(now, at);
        if refused {
            self.ping = Some(at as u8);
            // From now on the timer of this one runs.
            let usual = self.usual();
            self.paths[usual].since = now;
            return;
        }
        if self.paths[at].ends == 2 {
            self.paths[at].congestion.collapse(now);
            self.paths[at].set_pace(now);
        }
        self.lose_oldest(now, at);
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
        for at in 0..self.paths.len() {
            self.advance(now, at, statistics);
        }
        if let Some(path) = self.ping.take() {
            self.paths[usize::from(path)].since = now;
            self.pinged = Some((path, transmission));
            return Some(Next::Ping(path));
        }
        if let Some((path, padding)) = self.probe(now, transmission) {
            return Some(Next::Probe(transmission, path, padding));
        }
        let (fragment, path, in_parts) = self.next_fragment(now, transmission, statistics)?;
        Some(Next::Fragment(fragment, path, in_parts))
    }

    /// The fragment that is to be sent now, if any, its path, and whether it may be longer than that takes. While [`Self::next`] has fragments at
    /// one moment, it has nothing else.
    #[inline]
    pub fn next_fragment(
        &mut self,
        now: Nanos,
        transmission: u64,
        statistics: &mut Statistics,
    ) -> Option<(Fragment, u8, bool)> {
        self.paced = None;
        let Some(number) = self.candidate() else {
            self.paths.iter_mut().for_each(|path| path.probes = 0);
            return None;
        };
        let len = usize::from(self.piece(number)?.len) + OVERHEAD;
        let Some(path) = self.choose(now, number, len) else {
            // One that may not be used has none.
            self.paths.iter_mut().for_each(|path| path.probes = 0);
            return None;
        };
        self.paths[path].pacer.spend(len);
        let in_parts = len > self.paths[path].length.proven() + OVERHEAD;
        let fragment = self.send(now, number, path, transmission, statistics)?;
        Some((fragment, path as u8, in_parts))
    }

    #[inline]
    fn send(
        &mut self,
        now: Nanos,
        number: u64,
        at: usize,
        transmission: u64,
        statistics: &mut Statistics,
    ) -> Option<Fragment> {
        let piece = self.piece_mut(number)?;
        let again = piece.fate == Fate::Lost;
        (piece.fate, piece.transmission, piece.sent) = (Fate::InFlight, transmission, now);
        (piece.again, piece.path) = (again, at as u8);
        let (index, serial, len) = (piece.index, piece.packet, usize::from(piece.len) + OVERHEAD);
        if again {
            self.lost.pop_front();
            statistics.sent_again += 1;
        } else {
            self.unsent = number + 1;
            statistics.sent += 1;
        }
        let path = &mut self.paths[at];
        path.in_flight += len;
        path.order.push_back((transmission, number));
        path.since = now;
        // Nothing more can be sent until this is acknowledged.
        let full = path.is_full(path.length.proven() + OVERHEAD);
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
        self.paths.iter_mut().for_each(Path::abandon);
        (self.ping, self.awaits_room) = (None, false);
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
