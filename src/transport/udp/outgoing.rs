//! Datagrams on their way out: they are sealed, and many of them are given to the device in one call.

use super::contact::Session;
use super::device::{Datagram, Device};
use super::reliable::{Content, Sending};
use super::seal::ENVELOPE;
use crate::wire::datagram::Hello;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The most datagrams that are given to the device at a time.
const BATCH: usize = 32;

/// The datagrams of one call.
pub(super) struct Batch {
    envelopes: Box<[[u8; ENVELOPE]; BATCH]>,
    /// What each of them contains once it is encrypted, one after another.
    sealed: Box<[u8]>,
    /// The longest content of a datagram, in bytes; 0 where nothing is encrypted.
    longest: usize,
    sendings: Vec<Sending>,
    /// Datagrams that the device had no room for, in order. While there are some, no other ones are made.
    unsent: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl Batch {
    /// For contents of up to `longest` bytes, which are written to other memory when they are sealed if that is not 0.
    pub(super) fn new(longest: usize) -> Self {
        Self {
            envelopes: Box::new([[0; ENVELOPE]; BATCH]),
            sealed: vec![0; BATCH * longest].into_boxed_slice(),
            longest,
            sendings: Vec::with_capacity(BATCH),
            unsent: VecDeque::new(),
        }
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

    /// Sends what the session has to send now to `to`, until the device has no room. A hello is returned: it is not sealed with the
    /// session's keys, and goes elsewhere.
    pub(super) fn send(
        &mut self,
        device: &mut dyn Device,
        session: &mut Session,
        to: Option<SocketAddr>,
        now: u64,
    ) -> Option<Hello> {
        let mut hello = None;
        let mut more = true;
        while more && self.unsent.is_empty() {
            self.sendings.clear();
            while more && self.sendings.len() < BATCH {
                match session.connection.transmit(now) {
                    Some(Sending { content: Content::Hello(own), .. }) => hello = Some(own),
                    Some(sending) => self.sendings.push(sending),
                    None => more = false,
                }
            }
            if let Some(to) = to {
                self.send_some(device, session, to);
            }
        }
        hello
    }

    /// Seals and sends what was taken out of the session.
    fn send_some(&mut self, device: &mut dyn Device, session: &mut Session, to: SocketAddr) {
        let Self { envelopes, sealed, longest, sendings, unsent } = self;
        let (connection, Some(sealer)) = session.sealing() else { return };
        let mut datagrams = [Datagram { to, parts: [&[]; 3] }; BATCH];
        let mut places = sealed.chunks_mut((*longest).max(1));
        let mut count = 0;
        for (sending, envelope) in sendings.iter().zip(envelopes.iter_mut()) {
            let content: [&[u8]; 2] = match &sending.content {
                // Sent by the caller.
                Content::Hello(_) => continue,
                Content::Header(header) => [header, &[]],
                // It has not arrived: nothing was received since it was handed out.
                Content::Fragment(header, number) => {
                    [header, connection.payload(*number).unwrap_or_default()]
                }
                Content::Map(header, map, len) => [header, &map[..*len]],
            };
            debug_assert_eq!(sealer.next_number(), sending.transmission);
            datagrams[count].parts = sealer.seal(envelope, content, places.next().unwrap_or_default());
            count += 1;
        }
        let taken = device.send(&datagrams[..count]);
        unsent.extend(datagrams[taken..count].iter().map(|datagram| (datagram.to, datagram.parts.concat())));
    }

    /// Sends a hello, if the device has room: a side that gets none sends its own again.
    pub(super) fn send_now(&mut self, device: &mut dyn Device, to: SocketAddr, hello: &[u8]) {
        if !self.is_blocked() {
            device.send(&[Datagram { to, parts: [hello, &[], &[]] }]);
        }
    }

    /// Sends what had no room in the device.
    pub(super) fn send_unsent(&mut self, device: &mut dyn Device) {
        while let Some((to, bytes)) = self.unsent.front() {
            if device.send(&[Datagram { to: *to, parts: [bytes, &[], &[]] }]) == 0 {
                return;
            }
            self.unsent.pop_front();
        }
    }
}
