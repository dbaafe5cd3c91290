//! Datagrams on their way out: they are sealed, and many of them are given to the
//! device in one call.

use super::Refusals;
use super::contact::Session;
use super::device::{Datagram, Device};
use super::reliable::{Connection, Content, Nanos, Sending};
use super::seal::{ANNOUNCEMENT, GREETING, Sealer};
use crate::wire::datagram::Hello;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// Memory for the datagrams of one call, in bytes: no train is longer.
const ROOM: usize = 1 << 16;

/// The most datagrams that are given to the device at a time: as many as it makes a train of.
const BATCH: usize = super::device::TRAIN;

/// What probes are filled up with.
static PADDING: [u8; ROOM] = [0; ROOM];

/// The device, and what waits to be given to it.
pub(super) struct Outlet {
    /// None while it receives, and after the end.
    device: Option<Box<dyn Device>>,
    batch: Batch,
    greetings: Vec<(SocketAddr, [u8; GREETING])>,
    receipts: Vec<(SocketAddr, [u8; ANNOUNCEMENT])>,
    /// What has arrived and had no effect.
    pub(super) refusals: Refusals,
}

impl Outlet {
    /// For datagrams of up to `longest` bytes.
    pub(super) fn new(device: Box<dyn Device>, longest: usize) -> Self {
        let (batch, refusals) = (Batch::new(longest), Refusals::default());
        Self { device: Some(device), batch, greetings: Vec::new(), receipts: Vec::new(), refusals }
    }

    /// Takes the device out, so that it receives; `None`: it does, or is closed.
    pub(super) fn take_device(&mut self) -> Option<Box<dyn Device>> {
        self.device.take()
    }

    /// The device has received.
    pub(super) fn put_back(&mut self, device: Box<dyn Device>) {
        self.device = Some(device);
    }

    /// Closes the device.
    pub(super) fn close(&mut self) {
        self.device = None;
    }

    /// Whether the device can send.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.device.is_some()
    }

    /// Whether the device is not this task's any more ([`Device::is_lost`]).
    pub(super) fn is_lost(&self) -> bool {
        self.device.as_deref().is_some_and(|device| device.is_lost())
    }

    /// What is readable when something has arrived.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.device.as_deref().map(|device| device.event_fd())
    }

    /// Whether datagrams wait for room in the device.
    #[inline]
    pub(super) fn is_blocked(&self) -> bool {
        self.batch.is_blocked()
    }

    /// How many datagrams wait for room in the device, and how many greetings to be sent.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.batch.unsent.len(), self.greetings.len())
    }

    /// [`Batch::send`]; `None` while the device cannot send.
    #[inline]
    pub(super) fn send(
        &mut self,
        session: &mut Session,
        to: Option<SocketAddr>,
        now: Nanos,
    ) -> Option<(Option<Hello>, Option<Nanos>)> {
        Some(self.batch.send(&mut **self.device.as_mut()?, session, to, now))
    }

    /// Sends a datagram, if the device has room: what gets none is sent again.
    pub(super) fn send_now(&mut self, to: SocketAddr, datagram: &[u8]) {
        if let Some(device) = &mut self.device {
            self.batch.send_now(&mut **device, to, datagram);
        }
    }

    /// A greeting is to be sent.
    pub(super) fn queue_greeting(&mut self, to: SocketAddr, greeting: [u8; GREETING]) {
        self.greetings.push((to, greeting));
    }

    /// A receipt is to be sent.
    pub(super) fn queue_receipt(&mut self, to: SocketAddr, receipt: [u8; ANNOUNCEMENT]) {
        self.receipts.push((to, receipt));
    }

    /// Sends what waits.
    pub(super) fn send_waiting(&mut self) {
        let Some(device) = &mut self.device else { return };
        self.batch.send_unsent(&mut **device);
        for (to, greeting) in self.greetings.drain(..) {
            self.batch.send_now(&mut **device, to, &greeting);
        }
        for (to, receipt) in self.receipts.drain(..) {
            self.batch.send_now(&mut **device, to, &receipt);
        }
    }
}

/// The datagrams of one call.
struct Batch {
    /// They, one after another.
    sealed: Box<[u8]>,
    /// The longest datagram, in bytes.
    longest: usize,
    /// Datagrams that the device had no room for, in order. While there are some, no other
    /// ones are made.
    unsent: VecDeque<(SocketAddr, Vec<u8>, bool)>,
}

impl Batch {
    /// For datagrams of up to `longest` bytes.
    fn new(longest: usize) -> Self {
        let room = ROOM.min(BATCH * longest).max(longest);
        Self { sealed: vec![0; room].into_boxed_slice(), longest, unsent: VecDeque::new() }
    }

    /// Whether datagrams wait for room in the device.
    fn is_blocked(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends what the session has to send now to where the peer is, until the device has no room.
    /// Returns a hello, which is not sealed with the session's keys and goes elsewhere, and when
    /// there is something to send next.
    #[inline]
    fn send(
        &mut self,
        device: &mut dyn Device,
        session: &mut Session,
        to: Option<SocketAddr>,
        now: Nanos,
    ) -> (Option<Hello>, Option<Nanos>) {
        let (connection, mut sealer) = session.sealing();
        let mut hello = None;
        while self.unsent.is_empty() {
            let Some(sending) = connection.transmit(now) else { break };
            if matches!(sending.content, Content::Hello) {
                hello = Some(*connection.hello());
                continue;
            }
            // Without keys there is no connection, and nothing but hellos.
            let Some(sealer) = &mut sealer else { continue };
            let end = seal(connection, sealer, &sending, &mut self.sealed);
            if connection.is_quiet(now) {
                // What most small messages are: one datagram. When the next one is due is found
                // while it is on its way.
                self.give(device, to, &[end], &[sending.in_parts]);
                return (hello, connection.due(now));
            }
            let due = connection.due(now);
            if due.is_none_or(|due| due > now) {
                self.give(device, to, &[end], &[sending.in_parts]);
                return (hello, due);
            }
            let first = (end, sending.in_parts);
            let more = self.send_several(device, connection, sealer, to, now, first);
            hello = more.or(hello);
        }
        (hello, connection.due(now))
    }

    /// Sends the datagram that was sealed first, which ends there, and in parts if that says so,
    /// with those that follow it, at most [`BATCH`] together.
    #[inline(never)]
    fn send_several(
        &mut self,
        device: &mut dyn Device,
        connection: &mut Connection,
        sealer: &mut Sealer,
        to: Option<SocketAddr>,
        now: Nanos,
        first: (usize, bool),
    ) -> Option<Hello> {
        let (mut hello, mut ends, mut in_parts) = (None, [0; BATCH], [false; BATCH]);
        let (mut count, mut end, mut is_fragment) = (1, first.0, false);
        (ends[0], in_parts[0]) = first;
        while count < BATCH && end + self.longest <= self.sealed.len() {
            let another = if is_fragment { connection.transmit_another(now) } else { None };
            let sending = another.or_else(|| connection.transmit(now));
            match sending {
                Some(Sending { content: Content::Hello, .. }) => hello = Some(*connection.hello()),
                Some(sending) => {
                    end += seal(connection, sealer, &sending, &mut self.sealed[end..]);
                    (ends[count], in_parts[count]) = (end, sending.in_parts);
                    is_fragment = matches!(sending.content, Content::Fragment(..));
                    count += 1;
                }
                None => break,
            }
        }
        self.give(device, to, &ends[..count], &in_parts[..count]);
        hello
    }

    /// Gives what was sealed to the device; the datagrams end at these places, and are sent in
    /// parts or not. Those to an unknown address are lost.
    fn give(&mut self, device: &mut dyn Device, to: Option<SocketAddr>, ends: &[usize], in_parts: &[bool]) {
        let Some(to) = to else { return };
        if in_parts.contains(&true) {
            return self.give_singly(device, to, ends, in_parts);
        }
        let Self { sealed, unsent, .. } = self;
        match *ends {
            [] => {}
            // What most small messages are: the other way would take a tenth of a
            // microsecond longer.
            [end] => {
                let bytes = &sealed[..end];
                if device.send(&[Datagram { to, bytes }]) == 0 {
                    unsent.push_back((to, bytes.to_vec(), false));
                }
            }
            _ => {
                if let Some(segment) = segment(ends) {
                    let bytes = &sealed[..ends[ends.len() - 1]];
                    let taken = device.send_train(to, bytes, segment);
                    let rest = bytes.chunks(segment).skip(taken);
                    return unsent.extend(rest.map(|bytes| (to, bytes.to_vec(), false)));
                }
                let (mut datagrams, mut start) = ([Datagram { to, bytes: &[] }; BATCH], 0);
                for (datagram, &end) in datagrams.iter_mut().zip(ends) {
                    datagram.bytes = &sealed[start..end];
                    start = end;
                }
                let datagrams = &datagrams[..ends.len()];
                let taken = device.send(datagrams);
                let rest = datagrams[taken..].iter();
                unsent.extend(rest.map(|datagram| (to, datagram.bytes.to_vec(), false)));
            }
        }
    }

    /// [`Self::give`] where some of them may have to be sent in parts.
    #[cold]
    fn give_singly(&mut self, device: &mut dyn Device, to: SocketAddr, ends: &[usize], in_parts: &[bool]) {
        let mut start = 0;
        for (&end, &in_parts) in ends.iter().zip(in_parts) {
            let bytes = &self.sealed[start..end];
            start = end;
            if !self.unsent.is_empty() || !send_one(device, Datagram { to, bytes }, in_parts) {
                self.unsent.push_back((to, bytes.to_vec(), in_parts));
            }
        }
    }

    /// Sends a hello, if the device has room: a side that gets none sends its own again.
    fn send_now(&mut self, device: &mut dyn Device, to: SocketAddr, hello: &[u8]) {
        if !self.is_blocked() {
            device.send(&[Datagram { to, bytes: hello }]);
        }
    }

    /// Sends what had no room in the device.
    fn send_unsent(&mut self, device: &mut dyn Device) {
        while let Some((to, bytes, in_parts)) = self.unsent.front() {
            if !send_one(device, Datagram { to: *to, bytes }, *in_parts) {
                return;
            }
            self.unsent.pop_front();
        }
    }
}

/// Whether the device has taken the datagram.
fn send_one(device: &mut dyn Device, datagram: Datagram<'_>, in_parts: bool) -> bool {
    if in_parts { device.send_in_parts(&datagram) } else { device.send(&[datagram]) != 0 }
}

/// How long the datagrams are that end at these places, if all are equally long, but for a
/// shorter last one.
#[inline]
fn segment(ends: &[usize]) -> Option<usize> {
    let (&segment, &last) = (ends.first()?, ends.last()?);
    let before = ends.len() - 1;
    let equal = ends[..before].iter().enumerate().all(|(at, end)| *end == (at + 1) * segment);
    (equal && last <= (before + 1) * segment).then_some(segment)
}

/// Seals a datagram of the connection; returns how long it is.
#[inline]
fn seal(connection: &Connection, sealer: &mut Sealer, sending: &Sending, place: &mut [u8]) -> usize {
    debug_assert_eq!(sealer.next_number(), sending.transmission);
    let content: [&[u8]; 2] = match &sending.content {
        // It goes elsewhere.
        Content::Hello => return 0,
        Content::Header(header) => [header, &[]],
        // It has not arrived: nothing was received since it was handed out.
        Content::Fragment(header, number) => [header, connection.payload(*number).unwrap_or_default()],
        Content::Map(header, len) => [header, &connection.map()[..*len]],
        Content::Padded(header, len) => [header, &PADDING[..*len]],
    };
    sealer.seal(content, place)
}
