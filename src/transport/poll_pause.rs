//! Polls of a network that can be left out: one that finds nothing costs half a microsecond, which
//! a message waits for that is sent next. And polls that are due while packets wait to be taken.

use crate::base::clock::ticks;

/// A poll that follows the one before within this many ticks, 10 to 50 microseconds,
/// can be left out.
const REST: u64 = 50_000;

/// How many polls are left out after a packet was sent or taken: those of two calls of the program
/// that follow each other, and the first one that waits for the reply, which cannot have come yet.
const POLLS: u8 = 3;

/// How many accesses to peers' memory may be started without a poll between them. Their
/// confirmations then come together.
const ACCESSES: u8 = 8;

/// How many packets are taken without a poll between them, however soon: as many as a round of the
/// dispatcher takes.
const PACKETS: u8 = 16;

#[derive(Default)]
pub(super) struct PollPause {
    polls: u8,
    /// Accesses started since the last poll.
    accesses: u8,
    /// Packets taken since the last poll.
    packets: u8,
    /// When the network was polled last, in ticks.
    last: u64,
}

impl PollPause {
    /// A packet was sent or taken.
    #[inline]
    pub(super) fn note_packet(&mut self) {
        self.polls = POLLS;
    }

    /// One of the packets that have arrived was taken ([`Self::is_due`]).
    #[inline]
    pub(super) fn note_taken(&mut self) {
        self.note_packet();
        self.packets = self.packets.saturating_add(1);
    }

    /// An access to a peer's memory was started, which may have taken longer than the time for
    /// which polls can be left out.
    pub(super) fn note_access(&mut self) {
        self.note_access_at(ticks());
    }

    fn note_access_at(&mut self, now: u64) {
        self.polls = POLLS;
        if self.accesses < ACCESSES {
            self.accesses += 1;
            self.last = now;
        }
    }

    /// The network was polled.
    #[inline]
    pub(super) fn note_poll(&mut self) {
        self.note_poll_at(ticks());
    }

    #[inline]
    fn note_poll_at(&mut self, now: u64) {
        self.last = now;
        (self.accesses, self.packets) = (0, 0);
    }

    /// Whether the network was polled a moment ago, with no access since: another poll would find
    /// little.
    #[inline]
    pub(super) fn is_recent(&self) -> bool {
        self.accesses == 0 && self.is_recent_at(ticks())
    }

    #[inline]
    fn is_recent_at(&self, now: u64) -> bool {
        now.wrapping_sub(self.last) < REST
    }

    /// Whether a poll is due before the next one of the packets is taken that have arrived: those
    /// may be many, and their handlers slow. The first one after a poll, which is mostly the only
    /// one, costs no look at the clock.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.packets != 0 && self.is_due_at(ticks())
    }

    #[inline]
    fn is_due_at(&self, now: u64) -> bool {
        self.packets >= PACKETS || !self.is_recent_at(now)
    }

    /// Whether this poll can be left out. Calls that only look for packets are hardly affected.
    #[inline]
    pub(super) fn take(&mut self) -> bool {
        self.polls != 0 && self.take_at(ticks())
    }

    #[inline]
    fn take_at(&mut self, now: u64) -> bool {
        if self.polls == 0 {
            return false;
        }
        self.polls -= 1;
        self.is_recent_at(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each access takes longer than polls can be left out otherwise.
    #[test]
    fn polls_are_left_out_between_some_accesses() {
        let (mut rest, mut left_out, mut now) = (PollPause::default(), 0, 0);
        for _ in 0..100 * u32::from(ACCESSES) + 100 {
            now += 2 * REST;
            rest.note_access_at(now);
            match rest.take_at(now) {
                true => left_out += 1,
                false => rest.note_poll_at(now),
            }
        }
        assert_eq!(left_out / 100, u32::from(ACCESSES), "accesses, and then one with a poll");
    }

    #[test]
    fn a_packet_leaves_out_few_polls_and_for_a_short_time() {
        let mut rest = PollPause::default();
        assert!(!rest.take_at(1), "nothing was sent");
        rest.note_packet();
        rest.note_poll_at(1);
        assert_eq!((0..100).filter(|_| rest.take_at(2)).count(), usize::from(POLLS));
        rest.note_packet();
        assert!(!rest.take_at(1 + REST));
    }

    /// However many have arrived, and however long their handlers take.
    #[test]
    fn a_poll_is_due_between_packets_that_are_there() {
        let mut rest = PollPause::default();
        rest.note_poll_at(1);
        assert!(!rest.is_due(), "none was taken since");
        for _ in 0..PACKETS {
            assert!(!rest.is_due_at(REST));
            rest.note_taken();
        }
        assert!(rest.is_due_at(2), "many");
        rest.note_poll_at(2);
        rest.note_taken();
        assert!(!rest.is_due_at(1 + REST) && rest.is_due_at(2 + REST), "long ago");
    }
}
