//! Datagrams on their way out: they are sealed, and many of them are given to the device in one call.

use super::contact::Session;
use super::device::{Datagram, Device};
use super::reliable::{Connection, Content, Sending};
use super::seal::Sealer;
use super::whereabouts::Whereabouts;
use crate::wire::datagram::Hello;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Memory for the datagrams of one call, in bytes: no train is longer.
const TRAIN: usize = 1 << 16;

/// The most datagrams that are given to the device at a time: as many as it makes a train of.
const BATCH: usize = 64;

/// The datagrams of one call.
pub(super) struct Batch {
    /// They, one after another.
    sealed: Box<[u8]>,
    /// The longest datagram, in bytes.
    longest: usize,
    /// Datagrams that the device had no room for, in order. While there are some, no other ones are made.
    unsent: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl Batch {
    /// For datagrams of up to `longest` bytes.
    pub(super) fn new(longest: usize) -> Self {
        let room = TRAIN.min(BATCH * longest).max(longest);
        Self { sealed: vec![0; room].into_boxed_slice(), longest, unsent: VecDeque::new() }
    }

    /// Whether datagrams wait for room in the device.
    pub(super) fn is_blocked(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Datagrams that wait for room in the device.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.unsent.len()
    }

    /// Sends what the session has to send now to where the peer is, until the device has no room. A hello is returned: it is not sealed with the
    /// session's keys, and goes elsewhere.
    pub(super) fn send(
        &mut self,
        device: &mut dyn Device,
        session: &mut Session,
        peer: &Whereabouts,
        now: u64,
    ) -> Option<Hello> {
        let (mut hello, mut more) = (None, true);
        while more && self.unsent.is_empty() {
            let (connection, mut sealer) = session.sealing();
            let (mut ends, mut paths, mut count, mut end) = ([0; BATCH], [0; BATCH], 0, 0);
            while count < BATCH && end + self.longest <= self.sealed.len() {
                match connection.transmit(now) {
                    Some(Sending { content: Content::Hello(own), .. }) => hello = Some(own),
                    Some(sending) => {
                        // Without keys there is no connection, and nothing but hellos.
                        let Some(sealer) = &mut sealer else { continue };
                        end += seal(connection, sealer, &sending, &mut self.sealed[end..]);
                        (ends[count], paths[count]) = (end, sending.path);
                        count += 1;
                    }
                    None => {
                        more = false;
                        break;
                    }
                }
            }
            self.give(device, peer, &ends[..count], &paths[..count]);
        }
        hello
    }

    /// Gives what was sealed to the device; the datagrams end at these places, and take these paths. Those to an unknown address are lost.
    fn give(&mut self, device: &mut dyn Device, peer: &Whereabouts, ends: &[usize], paths: &[u8]) {
        let Self { sealed, unsent, .. } = self;
        match *ends {
            [] => {}
            // What most small messages are: the other way would take a tenth of a microsecond longer.
            [end] => {
                let (bytes, Some(to)) = (&sealed[..end], peer.on(paths[0])) else { return };
                if device.send(&[Datagram { to, bytes }]) == 0 {
                    unsent.push_back((to, bytes.to_vec()));
                }
            }
            _ => {
                let Some(first) = peer.on(paths[0]) else { return };
                let (mut datagrams, mut start) = ([Datagram { to: first, bytes: &[] }; BATCH], 0);
                for ((datagram, &end), &path) in datagrams.iter_mut().zip(ends).zip(paths) {
                    *datagram = Datagram { to: peer.on(path).unwrap_or(first), bytes: &sealed[start..end] };
                    start = end;
                }
                let datagrams = &datagrams[..ends.len()];
                let taken = device.send(datagrams);
                unsent
                    .extend(datagrams[taken..].iter().map(|datagram| (datagram.to, datagram.bytes.to_vec())));
            }
        }
    }

    /// Sends a hello, if the device has room: a side that gets none sends its own again.
    pub(super) fn send_now(&mut self, device: &mut dyn Device, to: SocketAddr, hello: &[u8]) {
        if !self.is_blocked() {
            device.send(&[Datagram { to, bytes: hello }]);
        }
    }

    /// Sends what had no room in the device.
    pub(super) fn send_unsent(&mut self, device: &mut dyn Device) {
        while let Some((to, bytes)) = self.unsent.front() {
            if device.send(&[Datagram { to: *to, bytes }]) == 0 {
                return;
            }
            self.unsent.pop_front();
        }
    }
}

/// Seals a datagram of the connection; returns how long it is.
#[inline]
fn seal(connection: &Connection, sealer: &mut Sealer, sending: &Sending, place: &mut [u8]) -> usize {
    debug_assert_eq!(sealer.next_number(), sending.transmission);
    let content: [&[u8]; 2] = match &sending.content {
        // It goes elsewhere.
        Content::Hello(_) => return 0,
        Content::Header(header) => [header, &[]],
        // It has not arrived: nothing was received since it was handed out.
        Content::Fragment(header, number) => [header, connection.payload(*number).unwrap_or_default()],
        Content::Map(header, map, len) => [header, &map[..*len]],
    };
    sealer.seal(content, place)
}
