//! What a connection sends, and when.

use super::sender::Next;
use super::{Connection, Content, LAST_CLOSE, LAST_HELLO, MILLISECOND, Nanos, Sending, State};
use crate::wire::datagram::{DatagramKind, Header};

impl Connection {
    /// What is to be sent now, if anything. Everything that is returned must be sealed and sent in
    /// this order; what the device does not take is lost.
    #[inline]
    pub fn transmit(&mut self, now: Nanos) -> Option<Sending> {
        if !self.confirmed
            && self.state != State::Closed
            && let Some(hello) = self.transmit_hello(now)
        {
            return Some(hello);
        }
        if self.state == State::Opening {
            return None;
        }
        if std::mem::take(&mut self.confirm_end) {
            return Some(self.header(now, DatagramKind::Closed));
        }
        if let Some(number) = self.probed.take() {
            return Some(self.header(now, DatagramKind::Reply(number)));
        }
        if self.state == State::Up {
            let transmission = self.transmission + 1;
            match self.sender.next(now, transmission, &mut self.statistics) {
                Some(Next::Fragment(fragment, in_parts)) => {
                    return Some(Sending { in_parts, ..self.header(now, DatagramKind::Data(fragment)) });
                }
                Some(Next::Ping) => return Some(self.header(now, DatagramKind::Ping)),
                Some(Next::Probe(number, padding)) => {
                    let probe = self.header(now, DatagramKind::Probe(number));
                    return Some(match probe.content {
                        Content::Header(header) => {
                            Sending { content: Content::Padded(header, padding), ..probe }
                        }
                        _ => probe,
                    });
                }
                None => {}
            }
            if self.closing && !self.close_seen && self.close_at <= now {
                self.close_after = (2 * self.close_after).clamp(5 * MILLISECOND, LAST_CLOSE);
                self.close_at = now + self.close_after;
                return Some(self.header(now, DatagramKind::Close(self.sender.end())));
            }
        }
        let due = self.receiver.due().is_some_and(|due| due <= now);
        due.then(|| self.acknowledgement(now))
    }

    /// [`Self::transmit`], when that has returned a fragment at this moment: another fragment, if
    /// there is one, with less work.
    #[inline]
    pub fn transmit_another(&mut self, now: Nanos) -> Option<Sending> {
        let transmission = self.transmission + 1;
        let (fragment, in_parts) = self.sender.next_fragment(now, transmission, &mut self.statistics)?;
        Some(Sending { in_parts, ..self.header(now, DatagramKind::Data(fragment)) })
    }

    fn transmit_hello(&mut self, now: Nanos) -> Option<Sending> {
        if self.hello_at > now {
            return None;
        }
        self.hello_at = now + self.hello_after;
        self.hello_after = (2 * self.hello_after).min(LAST_HELLO);
        self.hellos += 1;
        self.first_hello.get_or_insert(now);
        Some(Sending { transmission: 0, content: Content::Hello, in_parts: false })
    }

    #[inline]
    fn header(&mut self, now: Nanos, kind: DatagramKind) -> Sending {
        let (acknowledged, echo, room, delay) = self.receiver.report(now, false);
        let bytes = Header { kind, acknowledged, echo, room, delay }.encode();
        self.transmission += 1;
        let content = match kind {
            DatagramKind::Data(fragment) if fragment.packet_len != 0 => {
                Content::Fragment(bytes, fragment.number)
            }
            _ => Content::Header(bytes),
        };
        Sending { transmission: self.transmission, content, in_parts: false }
    }

    fn acknowledgement(&mut self, now: Nanos) -> Sending {
        let (map, len) = self.receiver.map();
        self.map = map;
        let (acknowledged, echo, room, delay) = self.receiver.report(now, true);
        let kind = DatagramKind::Acknowledgement((len / 8) as u8);
        let bytes = Header { kind, acknowledged, echo, room, delay }.encode();
        self.transmission += 1;
        self.statistics.acknowledgements += 1;
        Sending { transmission: self.transmission, content: Content::Map(bytes, len), in_parts: false }
    }

    /// Whether [`Self::transmit`] has nothing now, unless a timer has ended: what costs less than
    /// [`Self::due`] shows it. Where that is not enough, false.
    #[inline]
    pub fn is_quiet(&self, now: Nanos) -> bool {
        self.confirmed
            && self.state == State::Up
            && !self.closing
            && !self.confirm_end
            && self.probed.is_none()
            && self.receiver.due().is_none_or(|due| due > now)
            && self.sender.is_quiet(now)
    }

    /// Whether a timer has ended, which [`Self::is_quiet`] does not look at.
    #[cfg(test)]
    pub fn timer_has_ended(&self, now: Nanos) -> bool {
        self.sender.timer_has_ended(now)
    }

    /// When [`Self::transmit`] has something next, if nothing arrives before. A moment that has
    /// passed means: now.
    pub fn due(&self, now: Nanos) -> Option<Nanos> {
        let hello = (!self.confirmed && self.state != State::Closed).then_some(self.hello_at);
        if self.state == State::Opening {
            return hello;
        }
        let confirm = (self.confirm_end || self.probed.is_some()).then_some(now);
        let receive = self.receiver.due();
        let up = self.state == State::Up;
        let send = if up { self.sender.due(now) } else { None };
        let close = (up && self.closing && !self.close_seen).then_some(self.close_at);
        [hello, confirm, receive, send, close].into_iter().flatten().min()
    }
}
