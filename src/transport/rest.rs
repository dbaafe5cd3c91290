//! Polls of a network that can be left out: one that finds nothing costs half a microsecond, which a message waits for that is sent
//! next.

use crate::base::clock::ticks;

/// A poll that follows the one before within this many ticks, 10 to 50 microseconds, can be left out.
const REST: u64 = 50_000;

/// How many polls are left out after a packet was sent or taken: those of two calls of the program that follow each other, and the
/// first one that waits for the reply, which cannot have come yet.
const POLLS: u8 = 3;

#[derive(Default)]
pub(super) struct Rest {
    polls: u8,
    /// When the network was polled last, in ticks.
    last: u64,
}

impl Rest {
    /// A packet was sent or taken.
    #[inline]
    pub(super) fn note_packet(&mut self) {
        self.polls = POLLS;
    }

    /// The network was polled.
    #[inline]
    pub(super) fn note_poll(&mut self) {
        self.last = ticks();
    }

    /// Whether this poll can be left out. Calls that only look for packets are hardly affected.
    #[inline]
    pub(super) fn take(&mut self) -> bool {
        if self.polls == 0 {
            return false;
        }
        self.polls -= 1;
        ticks().wrapping_sub(self.last) < REST
    }
}
