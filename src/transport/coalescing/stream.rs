//! Which packets are a stream, and how many of a stream are sent alone. What the task does after the others teaches that: it waits, or it
//! has left them and computes.

use crate::base::clock::ticks;
use crate::transport::Task;

/// How many packets of a stream are sent alone, at most, where the program has left packets that waited.
const MOST_ALONE: u32 = 1000;

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

/// Packets that wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// When the first one came, in ticks.
    pub(super) begun: u64,
    /// They have found no room, so that the task cannot send them, whatever it does.
    pub(super) blocked: bool,
}

/// The stream that the task sends now, and what streams before it have taught.
#[derive(Debug)]
pub(super) struct Stream {
    rule: Rule,
    /// How many packets of a stream are sent alone, by what the program has done so far.
    alone: u32,
    /// To which peer the last operation was sent, and when it had been sent, in ticks.
    peer: Task,
    sent: u64,
    /// How many in a row followed each other so.
    run: u32,
    /// When this task was last at work on its transport while packets waited, in ticks.
    touched: u64,
    /// Whether a packet was sent, or held back, since the task looked for packets.
    fresh: bool,
    /// The last look has found a packet.
    found: bool,
    /// Whether packets in a row have been sent, to any peer, and it is not known yet whether the task waits after them.
    unjudged: bool,
    /// Whether it has looked for packets again and again just after them.
    waits: bool,
    /// What the task did after this stream, or in the middle of it, has been learnt.
    learnt: bool,
}

impl Rule {
    /// Whether packets that wait since `begun` have waited for long.
    #[inline]
    pub(super) fn is_old(&self, begun: u64, now: u64) -> bool {
        passed(begun, now) > self.age
    }
}

/// Ticks from one moment to another. None when the second one seems to be before the first: the counters of two processors may differ.
#[inline]
fn passed(from: u64, to: u64) -> u64 {
    let ticks = to.wrapping_sub(from);
    if ticks > i64::MAX as u64 { 0 } else { ticks }
}

impl Stream {
    pub(super) fn new(rule: Rule) -> Self {
        Self {
            rule,
            alone: rule.alone,
            peer: Task::MAX,
            sent: 0,
            run: 0,
            touched: 0,
            fresh: false,
            found: false,
            unjudged: false,
            waits: false,
            learnt: false,
        }
    }

    /// Whether packets can ever wait.
    #[inline]
    pub(super) fn coalesces(&self) -> bool {
        self.rule.alone != NEVER.alone
    }

    #[inline]
    pub(super) fn rule(&self) -> &Rule {
        &self.rule
    }

    /// An operation begins that is sent to this peer: whether it belongs to a stream whose packets wait for each other.
    #[inline]
    pub(super) fn has(&mut self, peer: Task, now: u64) -> bool {
        let pause = passed(self.sent, now);
        let follows = peer == self.peer && pause < self.rule.gap;
        // It has not waited after what it sent before.
        self.unjudged &= pause < self.rule.age;
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

    /// It was sent alone.
    #[inline]
    pub(super) fn note_sent(&mut self) {
        self.sent = ticks();
        (self.touched, self.fresh) = (self.sent, true);
        self.unjudged |= self.run != 0;
    }

    /// It waits.
    #[inline]
    pub(super) fn note_held_back(&mut self, now: u64) {
        (self.touched, self.fresh) = (now, true);
    }

    /// Packets of the stream have been sent together. What comes next follows from now on, however long the network took.
    #[inline]
    pub(super) fn note_bundle(&mut self) {
        self.sent = ticks();
        self.unjudged = true;
    }

    /// Something was not accepted: the next packet is the first of a stream.
    #[inline]
    pub(super) fn end(&mut self) {
        self.run = 0;
    }

    /// The task is at work on its transport, which may have taken long: it has not left what waits.
    #[inline]
    pub(super) fn touch(&mut self) {
        self.touched = ticks();
    }

    /// The task is at work on its transport again: if it has left what waits for long, it computes, and is to leave packets seldom. To be
    /// called before anything else is done.
    #[inline]
    pub(super) fn judge(&mut self, waiting: Waiting, now: u64) {
        if !waiting.blocked && passed(self.touched, now) >= self.rule.age {
            self.alone = self.alone.saturating_mul(4).saturating_add(4).min(MOST_ALONE);
            (self.learnt, self.touched) = (true, now);
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
    pub(super) fn look(&mut self, at_hand: bool, waiting: Option<Waiting>) -> bool {
        // Each call that sends looks once.
        let fresh = at_hand || std::mem::take(&mut self.fresh);
        if waiting.is_none() && (fresh || !self.unjudged) {
            return false;
        }
        let now = ticks();
        if let Some(waiting) = waiting {
            self.judge(waiting, now);
            self.touched = now;
        }
        if fresh {
            return waiting.is_some_and(|waiting| self.rule.is_old(waiting.begun, now));
        }
        // A call that has found a packet looks for more.
        if !self.found {
            if std::mem::take(&mut self.unjudged) {
                self.waits = passed(self.sent, now) < self.rule.age;
            }
            if waiting.is_some_and(|waiting| !waiting.blocked) {
                self.was_awaited();
            }
        }
        waiting.is_some()
    }

    /// A look at the network has ended.
    #[inline]
    pub(super) fn note_look(&mut self, found: bool) {
        self.found = found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: u64 = 100;
    const LONG: u64 = 1 << 40;
    const RULE: Rule = Rule { alone: 4, least: 1, gap: GAP, age: LONG };

    fn waiting() -> Option<Waiting> {
        Some(Waiting { begun: ticks(), blocked: false })
    }

    /// A task that sends, as [`super::super::Coalescing`] does.
    struct Sender {
        stream: Stream,
        waiting: Option<Waiting>,
    }

    impl Sender {
        fn new() -> Self {
            Self { stream: Stream::new(RULE), waiting: None }
        }

        /// Sends a burst of packets. Returns how many would have waited.
        fn burst(&mut self, packets: u32) -> u32 {
            self.burst_to(1, packets)
        }

        fn burst_to(&mut self, peer: Task, packets: u32) -> u32 {
            // What waits for another peer is sent before.
            if self.stream.peer != peer && self.waiting.take().is_some() {
                self.stream.note_bundle();
            }
            let mut held_back = 0;
            for nth in 0..packets {
                // The first one follows no other, and the others at once, whatever the clock shows.
                let now = self.stream.sent.wrapping_add(if nth == 0 { GAP } else { 1 });
                if self.stream.has(peer, now) {
                    self.waiting = waiting();
                    self.stream.note_held_back(ticks());
                    held_back += 1;
                } else {
                    self.stream.note_sent();
                }
                // Each call that sends looks for packets once.
                assert!(!self.stream.look(false, self.waiting));
            }
            held_back
        }

        /// The program waits: it has sent all that it sends now.
        fn look(&mut self) {
            for _ in 0..3 {
                if self.stream.look(false, self.waiting) {
                    self.waiting = None;
                }
            }
        }

        /// What waits has waited for longer than it should.
        fn leave(&mut self) {
            let long_ago = ticks().wrapping_sub(LONG + 1);
            (self.stream.touched, self.stream.sent) = (long_ago, long_ago);
        }

        fn judge(&mut self) {
            self.waiting.into_iter().for_each(|waiting| self.stream.judge(waiting, ticks()));
        }

        /// The next burst finds what the program has left.
        fn compute(&mut self) {
            self.leave();
            self.judge();
            self.waiting = None;
        }
    }

    #[test]
    fn a_program_that_awaits_each_burst_waits_for_nearly_all() {
        let mut sender = Sender::new();
        let held_back: Vec<u32> = (0..6)
            .map(|_| {
                let held_back = sender.burst(16);
                sender.look();
                held_back
            })
            .collect();
        assert!(held_back[0] < held_back[5] && held_back[5] == 15, "{held_back:?}");
    }

    #[test]
    fn bursts_that_are_left_leave_at_once_after_a_few() {
        let mut sender = Sender::new();
        let mut late = 0;
        for _ in 0..1000 {
            late += u32::from(sender.burst(16) != 0);
            sender.compute();
        }
        assert!(late <= 2, "{late}");
    }

    /// A moment in which the processor did something else is no lesson for ever, also when no packet waits any more.
    #[test]
    fn what_was_learnt_fades_where_bursts_are_awaited() {
        let mut sender = Sender::new();
        for _ in 0..3 {
            sender.waiting = waiting();
            sender.compute();
        }
        assert!(sender.stream.alone > 300);
        let bursts = (0..)
            .take_while(|_| {
                let held_back = sender.burst(16);
                sender.look();
                held_back != 15
            })
            .count();
        assert!(bursts < 50, "{bursts}");
    }

    #[test]
    fn a_task_that_was_at_work_on_its_transport_has_left_nothing() {
        let mut sender = Sender::new();
        assert_ne!(sender.burst(16), 0);
        sender.leave();
        sender.stream.touch();
        sender.judge();
        assert_eq!(sender.stream.alone, 4);
        sender.look();
        assert_eq!(sender.stream.alone, 3);
    }

    /// The last packet before a program waits may be one to another peer.
    #[test]
    fn what_was_learnt_fades_where_bursts_to_several_peers_are_awaited() {
        let mut sender = Sender::new();
        sender.stream.alone = 84;
        for _ in 0..1000 {
            for peer in 1..=3 {
                sender.burst_to(peer, 16);
            }
            sender.burst_to(4, 1);
            sender.look();
        }
        assert_eq!(sender.stream.alone, 1);
    }

    #[test]
    fn bursts_to_several_peers_that_are_left_leave_at_once_after_a_few() {
        let mut sender = Sender::new();
        let mut late = 0;
        for _ in 0..1000 {
            for peer in 1..=3 {
                sender.burst_to(peer, 16);
            }
            late += u32::from(sender.waiting.is_some());
            sender.compute();
        }
        assert!(late <= 2, "{late}");
    }

    #[test]
    fn a_clock_that_is_behind_another_teaches_nothing() {
        let mut sender = Sender::new();
        sender.stream.touched = 1000;
        sender.stream.judge(Waiting { begun: 1000, blocked: false }, 999);
        assert_eq!(sender.stream.alone, 4);
        assert!(!RULE.is_old(1000, 999));
    }

    /// What has been left is so for good, whatever the task does next.
    #[test]
    fn what_was_left_has_not_been_awaited_as_well() {
        let mut sender = Sender::new();
        assert_ne!(sender.burst(16), 0);
        sender.leave();
        for _ in 0..3 {
            sender.judge();
            sender.stream.touch();
        }
        sender.look();
        assert_eq!(sender.stream.alone, 20);
    }

    #[test]
    fn a_call_that_finds_packets_does_not_wait() {
        let mut sender = Sender::new();
        for _ in 0..10 {
            assert_ne!(sender.burst(16), 0);
            sender.stream.note_look(true);
            assert!(sender.stream.look(false, sender.waiting.take()));
            sender.stream.note_look(false);
        }
        assert_eq!(sender.stream.alone, 4);
    }

    /// A task may look in the middle of a stream as often as it likes.
    #[test]
    fn a_stream_counts_once() {
        let mut sender = Sender::new();
        for _ in 0..10 {
            sender.stream.has(1, sender.stream.sent.wrapping_add(1));
            sender.stream.note_sent();
            sender.waiting = waiting();
            sender.look();
        }
        assert_eq!(sender.stream.alone, 3);
    }

    #[test]
    fn one_burst_in_twelve_may_be_left() {
        let mut sender = Sender::new();
        let mut held_back = 0;
        for nth in 0..1200 {
            held_back += sender.burst(16);
            if nth % 12 == 0 { sender.compute() } else { sender.look() }
        }
        assert!(held_back > 1200 * 8, "{held_back}");
    }
}
