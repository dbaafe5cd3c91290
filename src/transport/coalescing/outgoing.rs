//! What leaves this task, and the bundle of the packets that wait.

use super::stream::{NEVER, Rule, Stream, Waiting};
use crate::base::clock::{now, ticks};
use crate::transport::{HEAD_MAX, Outgoing, Piece, SendOutcome, Task, Transport, parcel};
use crate::wire::coalesced;
use std::time::{Duration, Instant};

/// Words of a bundle, at most: 64 KiB. It is a packet of the network, and mostly has to be shorter for that.
const WORDS: usize = 8192;

/// Packets of a bundle, at most.
const PACKETS: u32 = 64;

/// Bytes of the body of a packet that may wait, at most: one that is longer gains less than its copies cost.
pub(super) const LONGEST: usize = 8192;

/// A bundle with less room than this, in words, is full.
const LITTLE: usize = 16;

/// When a bundle without room is tried again at the latest. The packet by which the peer makes room wakes this task before.
const RETRY: Duration = Duration::from_millis(10);

/// What leaves this task.
pub(super) struct Outbound {
    stream: Stream,
    bundle: Bundle,
    /// The bundle found no room.
    blocked: bool,
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

impl Outbound {
    pub(super) fn new(rule: Rule) -> Self {
        let stream = Stream::new(rule);
        let words = if stream.coalesces() { WORDS } else { 0 };
        let words = vec![0; words].into_boxed_slice();
        let bundle = Bundle { peer: 0, packets: 0, begun: 0, used: 0, room: 0, words };
        Self { stream, bundle, blocked: false }
    }

    /// Whether packets can ever wait.
    #[inline]
    pub(super) fn coalesces(&self) -> bool {
        self.stream.coalesces()
    }

    /// Whether some wait.
    #[inline]
    pub(super) fn some_wait(&self) -> bool {
        self.bundle.packets != 0
    }

    #[inline]
    fn waiting(&self) -> Option<Waiting> {
        self.some_wait().then_some(Waiting { begun: self.bundle.begun, blocked: self.blocked })
    }

    /// Since when, in ticks.
    #[inline]
    pub(super) fn waits_since(&self) -> Option<u64> {
        self.some_wait().then_some(self.bundle.begun)
    }

    /// Whether some wait for this peer.
    #[inline]
    pub(super) fn waits_for(&self, peer: Task) -> bool {
        self.some_wait() && self.bundle.peer == peer
    }

    /// Whether what waits is to leave before a packet to this peer. While a bundle has no room, packets to other peers leave alone.
    #[inline]
    pub(super) fn is_before(&self, peer: Task) -> bool {
        self.some_wait() && (!self.blocked || self.bundle.peer == peer)
    }

    /// An operation begins that is sent to this peer: whether it belongs to a stream whose packets wait for each other.
    #[inline]
    pub(super) fn streams_to(&mut self, peer: Task, now: u64) -> bool {
        self.judge_at(now);
        self.stream.has(peer, now)
    }

    /// A write was refused, so that a packet is sent instead: it is counted then.
    #[inline]
    pub(super) fn count_later(&mut self) {
        self.stream.count_later();
    }

    /// It was sent alone: whether it was accepted.
    #[inline]
    pub(super) fn note_sent(&mut self, accepted: bool) {
        if accepted { self.stream.note_sent() } else { self.stream.end() }
    }

    /// The task is at work on its transport again. To be called before anything else is done.
    #[inline]
    pub(super) fn judge(&mut self) {
        if self.some_wait() {
            self.judge_at(ticks());
        }
    }

    #[inline]
    fn judge_at(&mut self, now: u64) {
        if let Some(waiting) = self.waiting() {
            self.stream.judge(waiting, now);
        }
    }

    /// The task was at work on its transport, which may have taken long.
    #[inline]
    pub(super) fn touch(&mut self) {
        if self.some_wait() {
            self.stream.touch();
        }
    }

    /// The task looks for packets: whether what waits is to be sent first.
    #[inline]
    pub(super) fn look(&mut self, at_hand: bool) -> bool {
        let waiting = self.waiting();
        self.stream.look(at_hand, waiting)
    }

    /// A look at the network has ended.
    #[inline]
    pub(super) fn note_look(&mut self, found: bool) {
        self.stream.note_look(found);
        self.touch();
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
        self.stream.note_held_back(now);
        true
    }

    /// Whether the bundle is to be sent now, because it is full or has waited for long.
    #[inline]
    pub(super) fn is_full(&self, now: u64) -> bool {
        let Bundle { packets, begun, used, room, .. } = self.bundle;
        packets >= PACKETS || used + LITTLE > room || self.stream.rule().is_old(begun, now)
    }

    /// Sends what waits, in the middle of a stream.
    #[inline]
    pub(super) fn send_between(&mut self, inner: &mut impl Transport) -> bool {
        let none_waits = self.send(inner);
        if none_waits {
            self.stream.note_bundle();
        }
        none_waits
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
                self.blocked = true;
                self.stream.end();
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
        self.stream = Stream::new(NEVER);
        (self.bundle.packets, self.blocked) = (0, false);
    }

    /// What waits for this peer is not sent any more.
    pub(super) fn forget(&mut self, peer: Task) {
        if self.bundle.peer == peer {
            (self.bundle.packets, self.blocked) = (0, false);
        }
        self.stream.end();
    }
}

impl Bundle {
    fn begin(&mut self, peer: Task, room: usize, now: u64) {
        (self.peer, self.begun, self.used) = (peer, now, 0);
        self.room = room.min(self.words.len());
    }
}

const _: () = assert!(coalesced::HEAD.len() <= HEAD_MAX);
