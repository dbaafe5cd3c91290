//! One of the paths to a peer: two tasks that have addresses on several networks reach each other by each of them. A path has its own
//! estimate of the round trip, congestion window and timer; whatever path a fragment takes, it has the same number.
//!
//! A path is used when the peer has replied over it since its timer has last ended. One that does not work is asked again and again
//! while there is something to send, and for a short while after that.

use super::congestion::Congestion;
use super::length::Length;
use super::pacer::Pacer;
use super::round_trip::RoundTrip;
use super::{MILLISECOND, Nanos, OVERHEAD, Parameters};
use std::collections::VecDeque;

/// A datagram is lost when one has arrived that was sent this many later, on a network that keeps the order.
pub const REORDERED: u64 = 3;

/// The first time between two probes of a path that does not work, and the longest.
const FIRST_PROBE: Nanos = 20 * MILLISECOND;
const LAST_PROBE: Nanos = 250 * MILLISECOND;
/// The number of the last probes that are known, so that a reply counts that comes after the next probe has left.
const KNOWN_PROBES: usize = 8;

/// After this number of probes, within about two seconds, a path is left alone until there is something to send.
const PROBES_WHILE_IDLE: u32 = 10;

/// What one acknowledgement has shown of one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct News {
    /// Bytes that have arrived.
    pub bytes: usize,
    /// When the latest of them was sent.
    pub sent: Nanos,
    /// When the transmission was sent that has caused the acknowledgement.
    pub sample: Option<Nanos>,
    /// Something that has arrived was sent by no other path.
    pub sure: bool,
}

/// A path.
#[derive(Debug)]
pub struct Path {
    pub round_trip: RoundTrip,
    pub congestion: Congestion,
    pub pacer: Pacer,
    pub length: Length,
    /// What is in flight on it, by transmission: its number, and the fragment's.
    pub order: VecDeque<(u64, u64)>,
    pub in_flight: usize,
    /// The highest transmission that is known to have arrived by it.
    pub highest: u64,
    pub reordered: u64,
    /// When something is found lost if nothing arrives before.
    pub loss: Option<Nanos>,
    /// The timer counts from this moment.
    pub since: Nanos,
    /// Consecutive ends of the timer.
    pub ends: u32,
    /// Fragments that may be sent whatever the window says.
    pub probes: u8,
    /// The congestion window, or the pacer, has held something up since the last acknowledgement.
    pub limited: bool,
    pub news: News,
    /// This task's own link carries packets, as far as is known.
    link: bool,
    /// The peer has replied over it since the timer has last ended.
    proven: bool,
    probe_at: Nanos,
    probe_after: Nanos,
    /// Probes without a reply.
    unanswered: u32,
    /// The numbers of the last probes, and when they were sent.
    probed: [Option<(u64, Nanos)>; KNOWN_PROBES],
}

impl Path {
    /// A path of a connection with these parameters. The only one counts as working.
    pub fn new(parameters: &Parameters) -> Self {
        let (most, datagram) = (usize::from(parameters.window), parameters.unit + OVERHEAD);
        Self {
            round_trip: RoundTrip::default(),
            congestion: Congestion::new(datagram, most),
            pacer: Pacer::new(datagram),
            length: Length::new(parameters),
            order: VecDeque::with_capacity(if parameters.paths == 1 { 2 * most } else { 0 }),
            in_flight: 0,
            highest: 0,
            reordered: REORDERED,
            loss: None,
            since: 0,
            ends: 0,
            probes: 0,
            limited: false,
            news: News::default(),
            link: true,
            proven: parameters.paths == 1,
            probe_at: 0,
            probe_after: FIRST_PROBE,
            unanswered: 0,
            probed: [None; KNOWN_PROBES],
        }
    }

    /// Another incarnation of this: what was learnt of the way holds for it, too.
    pub fn agree(&mut self, before: &Self) {
        (self.round_trip, self.since) = (before.round_trip.clone(), before.since);
        (self.link, self.proven, self.probe_at) = (before.link, before.proven, before.probe_at);
    }

    /// Whether it is used as long as others are not better.
    #[inline]
    pub fn works(&self) -> bool {
        self.proven && self.link
    }

    /// Whether this task's own link is up.
    pub fn has_link(&self) -> bool {
        self.link
    }

    /// The link of this task has gone down or come up.
    pub fn set_link(&mut self, up: bool, now: Nanos) {
        self.link = up;
        self.doubt(now);
    }

    /// Nothing has arrived by it for too long, or its link has changed: it is probed before it is used again.
    pub fn doubt(&mut self, now: Nanos) {
        if self.proven || self.unanswered != 0 {
            (self.probe_at, self.probe_after, self.unanswered) = (now, FIRST_PROBE, 0);
        }
        self.proven = false;
    }

    /// There is something to send after a while without.
    pub fn wake(&mut self) {
        self.unanswered = 0;
    }

    /// When it is to be probed; `busy`: there is something to send.
    pub fn probe_due(&self, busy: bool) -> Option<Nanos> {
        if self.works() {
            return self.length.due(busy);
        }
        (!self.proven && self.link && (busy || self.unanswered < PROBES_WHILE_IDLE)).then_some(self.probe_at)
    }

    /// It is probed now, with this number; returns the length of the probe, beside what each datagram has.
    pub fn probe(&mut self, now: Nanos, number: u64) -> Option<usize> {
        if self.works() {
            return self.length.probe(now, number, 2 * self.round_trip.timeout());
        }
        self.probed[self.unanswered as usize % KNOWN_PROBES] = Some((number, now));
        self.probe_at = now + self.probe_after;
        self.probe_after = (2 * self.probe_after).min(LAST_PROBE);
        self.unanswered = self.unanswered.saturating_add(1);
        Some(0)
    }

    /// The peer has replied to a probe with this number. Whether it was one of the last of this path.
    pub fn replied(&mut self, now: Nanos, number: u64) -> bool {
        if self.length.replied(now, number) {
            return true;
        }
        let Some(&(_, sent)) = self.probed.iter().flatten().find(|(own, _)| *own == number) else {
            return false;
        };
        self.round_trip.note(now.saturating_sub(sent), 0);
        self.prove(now);
        true
    }

    /// Something that was sent over it has arrived.
    pub fn prove(&mut self, now: Nanos) {
        (self.proven, self.unanswered, self.probe_after) = (true, 0, FIRST_PROBE);
        (self.ends, self.probes, self.since) = (0, 0, now);
    }

    /// Nothing is to arrive any more.
    pub fn abandon(&mut self) {
        self.order.clear();
        (self.in_flight, self.loss, self.probes) = (0, None, 0);
        self.unanswered = PROBES_WHILE_IDLE;
    }

    /// Whether a datagram of this length exceeds the congestion window.
    #[inline]
    pub fn is_full(&self, len: usize) -> bool {
        self.in_flight != 0 && self.in_flight + len > self.congestion.window()
    }

    /// How full it is: less means that it is free sooner.
    pub fn load(&self) -> usize {
        1024 * self.in_flight / self.congestion.window().max(1)
    }

    pub fn set_pace(&mut self, now: Nanos) {
        let (window, trip) = (self.congestion.window(), self.round_trip.smoothed());
        self.pacer.set(now, window, trip, self.congestion.is_starting());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> Path {
        let parameters = Parameters {
            unit: 100,
            base: 100,
            window: 32,
            acknowledge_every: 1,
            acknowledge_after: MILLISECOND,
            longest_interval: 400 * MILLISECOND,
            paths: 2,
        };
        Path::new(&parameters)
    }

    /// The reply takes longer than the time to the next probe.
    #[test]
    fn a_path_with_a_long_way_works() {
        let (mut path, mut now, mut number) = (path(), 0, 0);
        let mut replies = VecDeque::new();
        while !path.works() {
            assert!(now < 5_000 * MILLISECOND, "{path:?}");
            now += MILLISECOND;
            if path.probe_due(true).is_some_and(|at| at <= now) {
                number += 3;
                assert_eq!(path.probe(now, number), Some(0));
                replies.push_back((now + 900 * MILLISECOND, number));
            }
            while let Some((_, number)) = replies.pop_front_if(|(at, _)| *at <= now) {
                assert!(!path.replied(now, number + 1), "the number of another path's probe");
                path.replied(now, number);
            }
        }
        assert!(path.round_trip.smoothed() >= 900 * MILLISECOND);
    }

    #[test]
    fn a_path_is_probed_for_a_while_only_unless_there_is_something_to_send() {
        let (mut path, mut probes) = (path(), 0);
        let idle = |path: &mut Path, probes: &mut u64| {
            while let Some(at) = path.probe_due(false) {
                *probes += 1;
                path.probe(at, *probes);
            }
        };
        idle(&mut path, &mut probes);
        assert_eq!(probes, u64::from(PROBES_WHILE_IDLE));
        assert!(path.probe_due(true).is_some());
        path.wake();
        idle(&mut path, &mut probes);
        assert_eq!(probes, 2 * u64::from(PROBES_WHILE_IDLE));
        path.set_link(false, 0);
        path.wake();
        assert_eq!(path.probe_due(true), None, "its link is down");
    }
}
