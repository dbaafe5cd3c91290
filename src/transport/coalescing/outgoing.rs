//! Which packets wait for others, and the bundle that they wait in.

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

/// How many packets of a stream are sent alone, at most, where the program has left packets that waited.
const MOST_ALONE: u32 = 1000;

/// A bundle with less room than this, in words, is full.
const LITTLE: usize = 16;

/// When a bundle without room is tried again at the latest. The packet by which the peer makes room wakes this task before.
const RETRY: Duration = Duration::from_millis(10);

/// What makes packets a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// How many packets of a stream are sent alone, at first, and at least.
    alone: u32,
    least: u32,
    /// How soon a packet follows the one before, in ticks.
    gap: u64,
    /// How long packets wait while others follow, in ticks.
    age: u64,
}

/// A packet follows within 2 to 10 microseconds, and waits for 12 to 60.
pub(super) const STREAMS: Rule = Rule { alone: 4, least: 1, gap: 10_000, age: 60_000 };

/// No packet waits.
pub(super) const NEVER: Rule = Rule { alone: u32::MAX, least: u32::MAX, gap: 0, age: 0 };

/// Each packet waits but the first one to a peer.
#[cfg(test)]
pub(super) const ALWAYS: Rule = Rule { alone: 1, least: 1, gap: u64::MAX, age: u64::MAX };

/// What leaves this task.
pub(super) struct Outbound {
    rule: Rule,
    /// How many packets of a stream are sent alone, by what the program has done so far.
    alone: u32,
    /// To which peer the last operation was sent, and when it had been sent, in ticks.
    peer: Task,
    sent: u64,
    /// How many in a row followed each other so.
    run: u32,
    /// Whether packets in a row were sent alone, and it is not known yet whether the task waits after them.
    unjudged: bool,
    /// Whether it has looked for packets again and again just after them.
    waits: bool,
    /// What the task did after this stream, or in the middle of it, has been learnt.
    learnt: bool,
    bundle: Bundle,
    /// The bundle found no room.
    blocked: bool,
    /// Whether a packet was sent, or put into the bundle, since the task looked for packets.
    fresh: bool,
    /// The last look has found a packet.
    found: bool,
}

/// Packets that wait, for one peer.
struct Bundle {
    peer: Task,
    packets: u32,
    /// When the first one came, and when this task was last at work on its transport, in ticks.
    begun: u64,
    touched: u64,
    /// Words in use, and how many can be.
    used: usize,
    room: usize,
    words: Box<[u64]>,
}

impl Outbound {
    pub(super) fn new(rule: Rule) -> Self {
        let words = if rule.alone == NEVER.alone { 0 } else { WORDS };
        let words = vec![0; words].into_boxed_slice();
        let bundle = Bundle { peer: 0, packets: 0, begun: 0, touched: 0, used: 0, room: 0, words };
        Self {
            rule,
            alone: rule.alone,
            peer: Task::MAX,
            sent: 0,
            run: 0,
            unjudged: false,
            waits: false,
            learnt: false,
            bundle,
            blocked: false,
            fresh: false,
            found: false,
        }
    }

    /// Whether packets can ever wait.
    #[inline]
    pub(super) fn coalesces(&self) -> bool {
        self.rule.alone != NEVER.alone
    }

    /// Whether some wait.
    #[inline]
    pub(super) fn some_wait(&self) -> bool {
        self.bundle.packets != 0
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
        let follows = peer == self.peer && now.wrapping_sub(self.sent) < self.rule.gap;
        self.run = if follows { self.run.saturating_add(1) } else { 0 };
        // In the middle of a stream it has only looked.
        if std::mem::take(&mut self.waits) && !follows {
            self.was_awaited();
        }
        self.learnt &= follows;
        self.peer = peer;
        self.sent = now;
        self.run >= self.alone
    }

    /// A write was refused, so that a packet is sent instead: it is counted then.
    #[inline]
    pub(super) fn count_later(&mut self) {
        self.run = self.run.saturating_sub(1);
    }

    /// It was sent alone: whether it was accepted.
    #[inline]
    pub(super) fn note_sent(&mut self, accepted: bool) {
        if accepted {
            self.sent = ticks();
            self.bundle.touched = self.sent;
            self.fresh = true;
            self.unjudged = self.run != 0;
        } else {
            self.run = 0;
        }
    }

    /// A look at the network has ended.
    #[inline]
    pub(super) fn note_look(&mut self, found: bool) {
        self.found = found;
        self.touch();
    }

    /// The task is at work on its transport, which may have taken long: it has not left what waits.
    #[inline]
    pub(super) fn touch(&mut self) {
        if self.some_wait() {
            self.bundle.touched = ticks();
        }
    }

    /// The task is at work on its transport again: if it has left what waits for long, it computes, and is to leave packets seldom. To be
    /// called before [`Self::touch`].
    #[inline]
    pub(super) fn judge(&mut self) {
        if self.some_wait() {
            self.judge_at(ticks());
        }
    }

    #[inline]
    pub(super) fn judge_at(&mut self, now: u64) {
        let waits = self.some_wait() && !self.blocked;
        if waits && now.wrapping_sub(self.bundle.touched) >= self.rule.age {
            self.alone = self.alone.saturating_mul(4).saturating_add(4).min(MOST_ALONE);
            (self.learnt, self.bundle.touched) = (true, now);
        }
    }

    /// The task has waited at once after a stream, or in the middle of it. Ten such streams make up for one that it has left: the processor
    /// may have done something else then.
    #[inline]
    fn was_awaited(&mut self) {
        if !std::mem::replace(&mut self.learnt, true) {
            self.alone = (self.alone - self.alone.div_ceil(8)).max(self.rule.least);
        }
    }

    /// The task looks for packets, and has to look at the network for them unless some are `at_hand`: whether those that wait are to be sent
    /// first, because it has sent nothing since it looked before, or because they have waited for long.
    #[inline]
    pub(super) fn look(&mut self, at_hand: bool) -> bool {
        // Each call that sends looks once.
        let fresh = if at_hand { true } else { std::mem::take(&mut self.fresh) };
        if !self.some_wait() && (fresh || !self.unjudged) {
            return false;
        }
        let now = ticks();
        self.judge_at(now);
        if fresh {
            return self.some_wait() && self.is_old(now);
        }
        // A call that has found a packet looks for more.
        if !self.found {
            if std::mem::take(&mut self.unjudged) {
                self.waits = now.wrapping_sub(self.sent) < self.rule.age;
            }
            if self.some_wait() && !self.blocked {
                self.was_awaited();
            }
        }
        self.some_wait()
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
        (bundle.packets, bundle.touched) = (bundle.packets + 1, now);
        self.fresh = true;
        true
    }

    /// Whether the bundle is to be sent now, because it is full or has waited for long.
    #[inline]
    pub(super) fn is_full(&self, now: u64) -> bool {
        let Bundle { packets, used, room, .. } = self.bundle;
        packets >= PACKETS || used + LITTLE > room || self.is_old(now)
    }

    #[inline]
    fn is_old(&self, now: u64) -> bool {
        now.wrapping_sub(self.bundle.begun) > self.rule.age
    }

    /// Sends what waits in the middle of a stream. The network may take long for it, which the next packet can do nothing about.
    #[inline]
    pub(super) fn send_between(&mut self, inner: &mut impl Transport) -> bool {
        let none_waits = self.send(inner);
        self.sent = ticks();
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
        (self.rule, self.alone) = (NEVER, NEVER.alone);
        (self.bundle.packets, self.blocked) = (0, false);
    }

    /// What waits for this peer is not sent any more.
    pub(super) fn forget(&mut self, peer: Task) {
        if self.bundle.peer == peer {
            (self.bundle.packets, self.blocked) = (0, false);
        }
        self.run = 0;
    }
}

impl Bundle {
    fn begin(&mut self, peer: Task, room: usize, now: u64) {
        (self.peer, self.begun, self.used) = (peer, now, 0);
        self.room = room.min(self.words.len());
    }
}

const _: () = assert!(coalesced::HEAD.len() <= HEAD_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: u64 = 100;
    const LONG: u64 = 1 << 40;
    const RULE: Rule = Rule { alone: 4, least: 1, gap: GAP, age: LONG };

    /// Sends a burst of packets, as [`super::super::Coalescing`] does. Returns how many would have waited.
    fn burst(outgoing: &mut Outbound, packets: u32) -> u32 {
        let mut waiting = 0;
        for nth in 0..packets {
            // The first one follows no other, and the others at once, whatever the clock shows.
            let now = outgoing.sent.wrapping_add(if nth == 0 { GAP } else { 1 });
            if outgoing.streams_to(1, now) {
                outgoing.bundle.peer = 1;
                outgoing.bundle.packets += 1;
                (outgoing.bundle.begun, outgoing.bundle.touched) = (ticks(), ticks());
                outgoing.fresh = true;
                waiting += 1;
            } else {
                outgoing.note_sent(true);
            }
            // Each call that sends looks for packets once.
            assert!(!outgoing.look(false));
        }
        waiting
    }

    /// The program waits: it has sent all that it sends now.
    fn look(outgoing: &mut Outbound) {
        for _ in 0..3 {
            if outgoing.look(false) {
                outgoing.bundle.packets = 0;
            }
        }
    }

    /// The next burst finds what has waited for longer than it should.
    fn compute(outgoing: &mut Outbound) {
        let long_ago = ticks().wrapping_sub(LONG + 1);
        (outgoing.bundle.touched, outgoing.sent) = (long_ago, long_ago);
        outgoing.judge();
        outgoing.bundle.packets = 0;
    }

    #[test]
    fn a_program_that_awaits_each_burst_waits_for_nearly_all() {
        let mut outgoing = Outbound::new(RULE);
        let waiting: Vec<u32> = (0..6)
            .map(|_| {
                let waiting = burst(&mut outgoing, 16);
                look(&mut outgoing);
                waiting
            })
            .collect();
        assert!(waiting[0] < waiting[5] && waiting[5] == 15, "{waiting:?}");
    }

    #[test]
    fn bursts_that_are_left_leave_at_once_after_a_few() {
        let mut outgoing = Outbound::new(RULE);
        let mut late = 0;
        for _ in 0..1000 {
            late += u32::from(burst(&mut outgoing, 16) != 0);
            compute(&mut outgoing);
        }
        assert!(late <= 2, "{late}");
    }

    /// A moment in which the processor did something else is no lesson for ever, also when no packet waits any more.
    #[test]
    fn what_was_learnt_fades_where_bursts_are_awaited() {
        let mut outgoing = Outbound::new(RULE);
        for _ in 0..3 {
            outgoing.bundle.packets = 1;
            compute(&mut outgoing);
        }
        assert!(outgoing.alone > 300);
        let bursts = (0..)
            .take_while(|_| {
                let waiting = burst(&mut outgoing, 16);
                look(&mut outgoing);
                waiting != 15
            })
            .count();
        assert!(bursts < 50, "{bursts}");
    }

    #[test]
    fn a_task_that_was_at_work_on_its_transport_has_left_nothing() {
        let mut outgoing = Outbound::new(RULE);
        assert_ne!(burst(&mut outgoing, 16), 0);
        outgoing.bundle.touched = ticks().wrapping_sub(LONG + 1);
        outgoing.touch();
        outgoing.judge();
        assert_eq!(outgoing.alone, 4);
        look(&mut outgoing);
        assert_eq!(outgoing.alone, 3);
    }

    /// What has been left is so for good, whatever the task does next.
    #[test]
    fn what_was_left_has_not_been_awaited_as_well() {
        let mut outgoing = Outbound::new(RULE);
        assert_ne!(burst(&mut outgoing, 16), 0);
        outgoing.bundle.touched = ticks().wrapping_sub(LONG + 1);
        for _ in 0..3 {
            outgoing.judge();
            outgoing.touch();
        }
        look(&mut outgoing);
        assert_eq!(outgoing.alone, 20);
    }

    #[test]
    fn a_call_that_finds_packets_does_not_wait() {
        let mut outgoing = Outbound::new(RULE);
        for _ in 0..10 {
            burst(&mut outgoing, 16);
            outgoing.note_look(true);
            assert!(outgoing.look(false));
            outgoing.bundle.packets = 0;
            outgoing.note_look(false);
        }
        assert_eq!(outgoing.alone, 4);
    }

    /// A task may look in the middle of a stream as often as it likes.
    #[test]
    fn a_stream_counts_once() {
        let mut outgoing = Outbound::new(RULE);
        for _ in 0..10 {
            outgoing.streams_to(1, outgoing.sent.wrapping_add(1));
            outgoing.note_sent(true);
            (outgoing.bundle.packets, outgoing.bundle.begun) = (1, ticks());
            look(&mut outgoing);
        }
        assert_eq!(outgoing.alone, 3);
    }

    #[test]
    fn one_burst_in_twelve_may_be_left() {
        let mut outgoing = Outbound::new(RULE);
        let mut waiting = 0;
        for nth in 0..1200 {
            waiting += burst(&mut outgoing, 16);
            if nth % 12 == 0 { compute(&mut outgoing) } else { look(&mut outgoing) }
        }
        assert!(waiting > 1200 * 8, "{waiting}");
    }
}
