//! What arrives: each fragment once, packets as soon as they are complete, and what is to
//! be acknowledged.

use super::buffers::{self, Buffer, Buffers};
use super::{Nanos, Parameters};
use crate::wire::datagram::{Fragment, MAP, NO_DELAY};

/// A packet that has arrived.
#[derive(Debug)]
pub struct Arrived {
    /// The packet's head, and behind it its body.
    pub buffer: Buffer,
    /// The length of the head in bytes.
    pub head_len: usize,
    /// The length of head and body.
    pub len: usize,
    /// The room that it takes.
    pub fragments: u16,
}

/// What became of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The fragment is kept.
    Kept,
    /// The fragment completes a packet.
    Complete,
    /// The fragment is a kick.
    Kick,
    /// The fragment had arrived before.
    Duplicate,
    /// There is no room for it, or it does not fit to others of its packet: it has no effect.
    Refused,
}

/// A packet of which a part has arrived.
#[derive(Debug)]
struct Assembly {
    /// The number of its first fragment.
    first: u64,
    count: u16,
    missing: u16,
    head_len: u8,
    len: usize,
    buffer: Buffer,
}

/// One direction of a connection, at its end.
#[derive(Debug)]
pub struct Receiver {
    window: u64,
    /// All fragments before this number have arrived.
    next: u64,
    /// One more than the highest number that has arrived.
    top: u64,
    /// By number modulo their count: whether a fragment from `next` on has arrived.
    seen: Box<[u64]>,
    /// By the number of the first fragment modulo their count.
    assemblies: Box<[Option<Assembly>]>,
    /// Fragments of packets that were released.
    released: u64,
    /// Up to this number the sender knows of room.
    advertised: u64,
    echo: u64,
    echo_at: Nanos,
    /// Fragments that were not acknowledged.
    owed: u16,
    due: Option<Nanos>,
    at_once: bool,
    every: u16,
    delay: Nanos,
}

impl Receiver {
    pub fn new(parameters: &Parameters) -> Self {
        let window = u64::from(parameters.window);
        let places = (2 * window).next_power_of_two() as usize;
        Self {
            window,
            next: 0,
            top: 0,
            seen: vec![0; places.div_ceil(64)].into(),
            assemblies: std::iter::repeat_with(|| None).take(places).collect(),
            released: 0,
            advertised: window,
            echo: 0,
            echo_at: 0,
            owed: 0,
            due: None,
            at_once: false,
            every: parameters.acknowledge_every,
            delay: parameters.acknowledge_after,
        }
    }

    /// Has room as these parameters say; nothing has arrived yet.
    pub fn agree(&mut self, parameters: &Parameters) {
        debug_assert!(self.top == 0);
        if self.window != u64::from(parameters.window) {
            *self = Self::new(parameters);
        }
    }

    /// From now on at most this number of fragments are acknowledged together.
    pub fn acknowledge_every(&mut self, fragments: u16) {
        self.every = fragments;
        self.at_once |= self.owed >= fragments;
    }

    #[cfg(test)]
    pub fn acknowledges_every(&self) -> u16 {
        self.every
    }

    /// All fragments before this number have arrived.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Fragments are accepted up to this number.
    fn limit(&self) -> u64 {
        self.window + self.released.min(self.next)
    }

    fn place(&self, number: u64) -> usize {
        number as usize & (self.assemblies.len() - 1)
    }

    fn has(&self, number: u64) -> bool {
        let at = self.place(number);
        number < self.next || (number < self.top && self.seen[at / 64] >> (at % 64) & 1 != 0)
    }

    /// A datagram has arrived, whatever it carries.
    #[inline]
    pub fn note(&mut self, now: Nanos, transmission: u64) {
        if transmission > self.echo {
            (self.echo, self.echo_at) = (transmission, now);
        }
    }

    /// A fragment has arrived. A packet that it completes is passed to `complete`.
    #[inline]
    pub fn accept(
        &mut self,
        now: Nanos,
        fragment: Fragment,
        payload: &[u8],
        buffers: &mut Buffers,
        complete: impl FnOnce(Arrived),
    ) -> Accepted {
        let number = fragment.number;
        if self.has(number) {
            // The sender does not know it: an acknowledgement was lost, or is on its way.
            self.at_once = true;
            return Accepted::Duplicate;
        }
        let first = number - u64::from(fragment.index);
        // A packet takes no more than the window: two that are not complete never have one place.
        if number >= self.limit() || u64::from(fragment.count) > self.window {
            return Accepted::Refused;
        }
        let accepted = if fragment.packet_len == 0 {
            self.released += 1;
            Accepted::Kick
        } else {
            match self.assemble(first, fragment, payload, buffers) {
                None => return Accepted::Refused,
                Some(None) => Accepted::Kept,
                Some(Some(arrived)) => {
                    complete(arrived);
                    Accepted::Complete
                }
            }
        };
        self.mark(number);
        self.owe(now, fragment.urgent || self.top != self.next);
        accepted
    }

    /// Copies a fragment to its place; `None` when it has none.
    fn assemble(
        &mut self,
        first: u64,
        fragment: Fragment,
        payload: &[u8],
        buffers: &mut Buffers,
    ) -> Option<Option<Arrived>> {
        let range = fragment.place(payload.len())?;
        let len = fragment.packet_len as usize;
        let at = self.place(first);
        let place = &mut self.assemblies[at];
        if place.is_none() {
            *place = Some(Assembly {
                first,
                count: fragment.count,
                missing: fragment.count,
                head_len: fragment.head_len,
                len,
                buffer: buffers.take(len)?,
            });
        }
        let assembly = place.as_mut()?;
        let known = (assembly.first, assembly.count, assembly.head_len, assembly.len);
        if known != (first, fragment.count, fragment.head_len, len) {
            return None;
        }
        let payload = &payload[..range.len()];
        buffers::bytes_mut(&mut assembly.buffer)[range].copy_from_slice(payload);
        assembly.missing -= 1;
        if assembly.missing != 0 {
            return Some(None);
        }
        let Assembly { count, head_len, buffer, .. } = place.take()?;
        Some(Some(Arrived { buffer, head_len: head_len.into(), len, fragments: count }))
    }

    fn mark(&mut self, number: u64) {
        let at = self.place(number);
        self.seen[at / 64] |= 1 << (at % 64);
        self.top = self.top.max(number + 1);
        while self.next < self.top {
            let at = self.place(self.next);
            let bit = 1 << (at % 64);
            if self.seen[at / 64] & bit == 0 {
                break;
            }
            self.seen[at / 64] &= !bit;
            self.next += 1;
        }
    }

    fn owe(&mut self, now: Nanos, urgent: bool) {
        self.owed += 1;
        self.at_once |= urgent || self.owed >= self.every;
        self.due.get_or_insert(now + self.delay);
    }

    /// A packet was given back: there is room for as many fragments more. Returns whether an
    /// acknowledgement must leave at once.
    #[inline]
    pub fn release(&mut self, fragments: u16) -> bool {
        self.released += u64::from(fragments);
        let limit = self.limit();
        let used_up = self.top >= self.advertised && limit > self.advertised;
        self.at_once |= used_up || limit >= self.advertised + self.window / 4;
        self.at_once
    }

    /// The peer waits for an acknowledgement.
    pub fn hurry(&mut self) {
        self.at_once = true;
    }

    /// Nothing will be sent for a while that could carry an acknowledgement.
    pub fn flush(&mut self) {
        self.at_once |= self.due.is_some();
    }

    /// When an acknowledgement must leave.
    pub fn due(&self) -> Option<Nanos> {
        if self.at_once { Some(0) } else { self.due }
    }

    /// What the header of a datagram says that leaves now: the acknowledged number, the echo, the
    /// room and the delay. `map` says whether what is behind the acknowledged number goes with it.
    pub fn report(&mut self, now: Nanos, map: bool) -> (u64, u64, u16, u16) {
        let room = self.limit() - self.next;
        self.advertised = self.advertised.max(self.limit());
        if map || self.top == self.next {
            (self.owed, self.due, self.at_once) = (0, None, false);
        }
        let delay = (now.saturating_sub(self.echo_at) / 8_000).min(NO_DELAY.into()) as u16;
        (self.next, self.echo, room as u16, delay)
    }

    /// The map of what has arrived behind the acknowledged number, in bytes, and how
    /// many these are.
    pub fn map(&self) -> ([u8; 8 * MAP], usize) {
        let mut bytes = [0; 8 * MAP];
        let mut len = 0;
        for number in (self.next + 1..self.top).take(64 * MAP).filter(|&number| self.has(number)) {
            let at = (number - self.next - 1) as usize;
            bytes[at / 8] |= 1 << (at % 8);
            len = 8 * (at / 64 + 1);
        }
        (bytes, len)
    }

    /// Gives back the memory of packets that will never be complete.
    pub fn abandon(&mut self, buffers: &mut Buffers) {
        for assembly in self.assemblies.iter_mut().filter_map(Option::take) {
            buffers.give(assembly.buffer);
        }
    }

    /// Packets of which a part has arrived.
    #[cfg(any(test, feature = "fuzz"))]
    pub fn incomplete(&self) -> usize {
        self.assemblies.iter().flatten().count()
    }

    /// Fragments that have arrived and were not released.
    #[cfg(any(test, feature = "fuzz"))]
    pub fn kept(&self) -> u64 {
        let behind = (self.next..self.top).filter(|&number| self.has(number)).count() as u64;
        self.next + behind - self.released
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
