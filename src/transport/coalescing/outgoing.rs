//! Which packets wait for others, and the bundle that they wait in.

use crate::base::clock::{now, ticks};
use crate::transport::{HEAD_MAX, Outgoing, Piece, SendOutcome, Task, Transport, parcel};
use crate::wire::coalesced;
use std::time::{Duration, Instant};

/// Words of a bundle, at most.
const WORDS: usize = 2048;

/// Packets of a bundle, at most.
const PACKETS: u32 = 64;

/// Bytes of the body of a packet that may wait, at most: one that is longer gains little.
pub(super) const LONGEST: usize = 2048;

/// So many packets of a stream are sent at once, at most, where the program has left packets that waited.
const MOST_SENDS: u32 = 1000;

/// A bundle with less room than this, in words, is full.
const LITTLE: usize = 16;

/// When a bundle without room is tried again.
const RETRY: Duration = Duration::from_millis(1);

/// What makes packets a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// How many packets of a stream are sent at once, at first, and at least.
    sends: u32,
    least: u32,
    /// How soon a packet follows the one before, in ticks.
    gap: u64,
    /// How long packets wait while others follow, in ticks.
    age: u64,
}

/// A packet follows within 2 to 10 microseconds, and waits for 12 to 60.
pub(super) const STREAMS: Rule = Rule { sends: 4, least: 1, gap: 10_000, age: 60_000 };

/// No packet waits.
pub(super) const NEVER: Rule = Rule { sends: u32::MAX, least: u32::MAX, gap: 0, age: 0 };

/// Each packet waits but the first one to a peer.
#[cfg(test)]
pub(super) const ALWAYS: Rule = Rule { sends: 1, least: 1, gap: u64::MAX, age: u64::MAX };

/// What leaves this task.
pub(super) struct Outbound {
    rule: Rule,
    /// How many packets of a stream are sent at once, by what the program has done so far.
    sends: u32,
    /// To whom the last operation was sent, and when it had been sent, in ticks.
    peer: Task,
    ended: u64,
    /// How many in a row followed each other so.
    run: u32,
    bundle: Bundle,
    /// The bundle found no room.
    blocked: bool,
    /// Whether a packet was put into the bundle since the task looked for packets.
    fresh: bool,
}

/// Packets that wait, for one peer.
struct Bundle {
    peer: Task,
    packets: u32,
    /// When the first and the last one came, in ticks.
    begun: u64,
    last: u64,
    /// Words in use, and how many can be.
    used: usize,
    room: usize,
    words: Box<[u64]>,
}

impl Outbound {
    pub(super) fn new(rule: Rule) -> Self {
        let words = if rule.sends == u32::MAX { 0 } else { WORDS };
        let words = vec![0; words].into_boxed_slice();
        let bundle = Bundle { peer: 0, packets: 0, begun: 0, last: 0, used: 0, room: 0, words };
        Self {
            rule,
            sends: rule.sends,
            peer: Task::MAX,
            ended: 0,
            run: 0,
            bundle,
            blocked: false,
            fresh: false,
        }
    }

    /// Whether packets can ever wait.
    pub(super) fn coalesces(&self) -> bool {
        self.rule.sends != u32::MAX
    }

    /// Whether some wait.
    #[inline]
    pub(super) fn some_wait(&self) -> bool {
        self.bundle.packets != 0
    }

    /// An operation begins that is sent to this peer: whether it belongs to a stream whose packets wait for each other.
    #[inline]
    pub(super) fn streams_to(&mut self, peer: Task, now: u64) -> bool {
        let follows = peer == self.peer && now.wrapping_sub(self.ended) < self.rule.gap;
        self.run = if follows { self.run.saturating_add(1) } else { 0 };
        self.peer = peer;
        self.ended = now;
        self.run >= self.sends
    }

    /// It was sent by itself: whether it was accepted.
    #[inline]
    pub(super) fn note_sent(&mut self, accepted: bool) {
        if accepted {
            self.ended = ticks();
        } else {
            self.run = 0;
        }
    }

    /// What waits is to be sent now although it is not full: how long ago was the last packet put into it? A program that leaves packets, and
    /// computes, is to do that seldom.
    #[inline]
    pub(super) fn learn(&mut self, now: u64) {
        if self.blocked || !self.some_wait() {
            return;
        }
        if now.wrapping_sub(self.bundle.last) < self.rule.age {
            self.sends = self.sends.saturating_sub(1).max(self.rule.least);
        } else {
            self.sends = self.sends.saturating_mul(4).saturating_add(4).min(MOST_SENDS);
        }
    }

    /// The task looks for packets: whether those that wait have waited long enough, since it has sent nothing after it had looked before.
    #[inline]
    pub(super) fn is_idle(&mut self) -> bool {
        !std::mem::take(&mut self.fresh)
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
        (bundle.packets, bundle.last) = (bundle.packets + 1, now);
        self.fresh = true;
        true
    }

    /// Whether the bundle is to be sent now, because it is full or has waited for long.
    #[inline]
    pub(super) fn is_full(&self, now: u64) -> bool {
        let Bundle { packets, begun, used, room, .. } = self.bundle;
        packets >= PACKETS || used + LITTLE > room || now.wrapping_sub(begun) > self.rule.age
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
        match unsafe { inner.try_send(peer, &packet) } {
            SendOutcome::NoRoom => {
                (self.run, self.blocked) = (0, true);
                false
            }
            SendOutcome::Sent | SendOutcome::Taken(_) | SendOutcome::Gone => {
                (self.bundle.packets, self.blocked) = (0, false);
                true
            }
        }
    }

    /// When what waits is to be sent, if something does: now, or, if it has found no room, when it is tried again at the latest.
    pub(super) fn due(&self) -> Option<Instant> {
        self.some_wait().then(|| if self.blocked { now() + RETRY } else { now() })
    }

    /// Nothing waits any more, now and later.
    pub(super) fn end(&mut self) {
        (self.rule, self.sends) = (NEVER, NEVER.sends);
        (self.bundle.packets, self.blocked) = (0, false);
    }

    /// What waits for this peer is not sent any more.
    pub(super) fn forget(&mut self, peer: Task) {
        if self.bundle.peer == peer {
            (self.bundle.packets, self.blocked) = (0, false);
        }
        self.run = 0;
    }

    /// For whom packets wait.
    pub(super) fn waits_for(&self) -> Option<Task> {
        self.some_wait().then_some(self.bundle.peer)
    }
}

impl Bundle {
    fn begin(&mut self, peer: Task, room: usize, now: u64) {
        (self.peer, self.begun, self.used) = (peer, now, 0);
        self.room = room.min(self.words.len());
    }
}

const _: () = assert!(coalesced::HEAD.len() <= HEAD_MAX);
