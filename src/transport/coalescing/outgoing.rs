//! What leaves this task, and the bundle of the packets that wait.

use crate::base::clock::now;
use crate::transport::{HEAD_MAX, Outgoing, Piece, SendOutcome, Task, Transport, parcel};
use crate::wire::coalesced;
use std::time::Instant;

/// Words of a bundle, at most: 64 KiB. It is a packet of the network, and mostly has to be
/// shorter for that.
const WORDS: usize = 8192;

/// Packets of a bundle, at most.
const PACKETS: u32 = 64;

/// Bytes of the body of a packet that may wait, at most: one that is longer gains less than
/// its copies cost.
pub(super) const LONGEST: usize = 8192;

/// How many packets are handed out before a bundle that has found no room is tried again.
const PASSED: u8 = 16;

/// A bundle with less room than this, in words, is full.
const LITTLE: usize = 16;

/// Which packets wait, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// How soon a packet that waits follows the one before to the same peer, in ticks.
    /// 0: none waits.
    gap: u64,
    /// How long packets wait while others follow, in ticks.
    age: u64,
}

/// A packet that waits follows within at most 10 microseconds, and waits for at most 50: at least a
/// fifth of that, as ticks differ.
pub(super) const STREAMS: Rule = Rule { gap: 10_000, age: 50_000 };

/// No packet waits.
pub(super) const NEVER: Rule = Rule { gap: 0, age: 0 };

/// Each packet waits that follows another one to the same peer.
#[cfg(test)]
pub(super) const ALWAYS: Rule = Rule { gap: u64::MAX, age: u64::MAX };

/// What leaves this task.
pub(super) struct Outbound {
    rule: Rule,
    /// To which peer something was last sent, and when, in ticks.
    last: Task,
    sent: u64,
    bundle: Bundle,
    /// The bundle has found no room.
    blocked: bool,
    /// Packets that were handed out since it was tried last.
    passed: u8,
}

/// Packets that wait, for one peer.
struct Bundle {
    peer: Task,
    packets: u32,
    /// When the first one came, in ticks.
    begun: u64,
    /// Words in use, and how many can be.
    used: usize,
    room: usize,
    words: Box<[u64]>,
}

/// Ticks from one moment to another. None when the second one seems to be before the first: the
/// counters of two processors may differ.
#[inline]
fn passed(from: u64, to: u64) -> u64 {
    let ticks = to.wrapping_sub(from);
    if ticks > i64::MAX as u64 { 0 } else { ticks }
}

impl Outbound {
    pub(super) fn new(rule: Rule) -> Self {
        let words = vec![0; if rule.gap == 0 { 0 } else { WORDS }].into_boxed_slice();
        let bundle = Bundle { peer: 0, packets: 0, begun: 0, used: 0, room: 0, words };
        Self { rule, last: Task::MAX, sent: 0, bundle, blocked: false, passed: 0 }
    }

    /// Whether packets can ever wait.
    #[inline]
    pub(super) fn coalesces(&self) -> bool {
        self.rule.gap != 0
    }

    /// Whether some wait.
    #[inline]
    pub(super) fn some_wait(&self) -> bool {
        self.bundle.packets != 0
    }

    /// Whether some wait for this peer.
    #[inline]
    pub(super) fn waits_for(&self, peer: Task) -> bool {
        self.some_wait() && self.bundle.peer == peer
    }

    /// Whether what waits is to leave before a packet to this peer. While a bundle has no room,
    /// packets to other peers leave alone.
    #[inline]
    pub(super) fn is_before(&self, peer: Task) -> bool {
        self.some_wait() && (!self.blocked || self.bundle.peer == peer)
    }

    /// Whether what is sent to this peer now follows something else at once.
    #[inline]
    pub(super) fn follows(&self, peer: Task, now: u64) -> bool {
        peer == self.last && passed(self.sent, now) < self.rule.gap
    }

    /// Something was sent to this peer, or waits.
    #[inline]
    pub(super) fn note_sent(&mut self, peer: Task, now: u64) {
        (self.last, self.sent) = (peer, now);
    }

    /// Puts a packet into the bundle, if it has a place there.
    ///
    /// # Safety
    /// The pieces of `packet` are readable.
    #[inline]
    pub(super) unsafe fn add(
        &mut self,
        inner: &impl Transport,
        peer: Task,
        packet: &Outgoing<'_>,
        now: u64,
    ) -> bool {
        let (head_len, body_len) = (packet.head.len(), packet.body_len());
        if body_len > LONGEST {
            return false;
        }
        if self.bundle.packets == 0 {
            if !inner.is_open(peer) {
                return false;
            }
            self.bundle.begin(peer, inner.limits(peer).max_body / 8, now);
        }
        let bundle = &mut self.bundle;
        let words = coalesced::words(head_len, body_len);
        if bundle.peer != peer || bundle.used + words > bundle.room {
            return false;
        }
        let to = &mut bundle.words[bundle.used..bundle.used + words];
        to[0] = coalesced::lengths(head_len, body_len);
        // SAFETY: the caller's promise.
        unsafe { parcel::write(&mut to[1..], packet, false) };
        bundle.used += words;
        bundle.packets += 1;
        self.note_sent(peer, now);
        true
    }

    /// Whether the bundle is to be sent now, because it is full or has waited for long.
    #[inline]
    pub(super) fn is_full(&self, now: u64) -> bool {
        let Bundle { packets, begun, used, room, .. } = self.bundle;
        packets >= PACKETS || used + LITTLE > room || passed(begun, now) > self.rule.age
    }

    /// Sends what waits: whether nothing waits any more.
    pub(super) fn send(&mut self, inner: &mut impl Transport) -> bool {
        if self.bundle.packets == 0 {
            return true;
        }
        let Bundle { peer, packets, used, .. } = self.bundle;
        // One packet is sent as it is.
        let words = &self.bundle.words[..used];
        let single = coalesced::place(words, 0).filter(|_| packets == 1);
        let (head, body, len) = match single {
            Some(one) => {
                (parcel::bytes_of(&words[one.head..one.body]), &words[one.body..one.end], one.body_len)
            }
            None => (&coalesced::HEAD[..], words, size_of_val(words)),
        };
        let first = Piece { ptr: body.as_ptr().cast(), len };
        let packet = Outgoing { head, first, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
        // SAFETY: the bundle lives, and is not changed meanwhile.
        let outcome = unsafe { inner.try_send(peer, &packet) };
        (self.blocked, self.passed) = (outcome == SendOutcome::NoRoom, 0);
        if !self.blocked {
            self.bundle.packets = 0;
        }
        !self.blocked
    }

    /// Sends what has found no room before, if there is some now.
    #[inline]
    pub(super) fn try_again(&mut self, inner: &mut impl Transport) {
        if self.blocked {
            self.send(inner);
        }
    }

    /// A packet is about to be handed out. [`Self::try_again`] now and then: packets of
    /// others may never cease.
    #[inline]
    pub(super) fn try_in_between(&mut self, inner: &mut impl Transport) {
        if self.blocked {
            self.passed += 1;
            if self.passed == PASSED {
                self.send(inner);
            }
        }
    }

    /// When what waits is to be sent: now, unless it waits for room.
    pub(super) fn due(&self) -> Option<Instant> {
        (self.some_wait() && !self.blocked).then(now)
    }

    /// What waits for this peer is not sent any more.
    pub(super) fn forget(&mut self, peer: Task) {
        if self.bundle.peer == peer {
            self.end();
        }
    }

    /// Nothing waits any more.
    pub(super) fn end(&mut self) {
        (self.bundle.packets, self.blocked) = (0, false);
    }
}

impl Bundle {
    fn begin(&mut self, peer: Task, room: usize, now: u64) {
        (self.peer, self.begun, self.used) = (peer, now, 0);
        self.room = room.min(self.words.len());
    }
}

const _: () = assert!(coalesced::HEAD.len() <= HEAD_MAX);
