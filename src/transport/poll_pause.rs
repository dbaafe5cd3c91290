//! Polls of a network that can be left out: one that finds nothing costs half a microsecond, which
//! a message waits for that is sent next.

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

#[derive(Default)]
pub(super) struct PollPause {
    polls: u8,
    /// Accesses started since the last poll.
    accesses: u8,
    /// When the network was polled last, in ticks.
    last: u64,
}

impl PollPause {
    /// A packet was sent or taken.
    #[inline]
    pub(super) fn note_packet(&mut self) {
        self.polls = POLLS;
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
        self.accesses = 0;
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
        now.wrapping_sub(self.last) < REST
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
}
