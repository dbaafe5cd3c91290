//! Two tasks that flood each other, whose completion handlers wait for each other's
//! packets: from seeds.

use super::*;
use crate::base::rng::Rng;
use std::collections::VecDeque;

#[test]
fn a_peer_is_held_at_the_bound_and_released_below_half_of_it() {
    let mut holds = Holds::default();
    assert!(holds.grown(1, Reason::Kept, 5, 100));
    assert!(!holds.grown(1, Reason::Completions, 0, 100), "it is held already");
    let level = |high| move |_: &Hold| Level { high, progress: 5, blocked: false };
    assert_eq!(holds.look(200, level(true)), []);
    assert_eq!(holds.held().collect::<Vec<_>>(), [1, 1]);
    assert_eq!(holds.look(300, level(false)), [1]);
    assert!(holds.is_empty());
}

#[test]
fn a_peer_held_for_two_reasons_is_released_when_both_are_over() {
    let mut holds = Holds::default();
    holds.grown(1, Reason::Kept, 0, 0);
    holds.grown(1, Reason::Completions, 0, 0);
    let only = |reason| move |hold: &Hold| Level { high: hold.reason == reason, progress: 0, blocked: false };
    assert_eq!(holds.look(1, only(Reason::Kept)), []);
    assert_eq!(holds.look(2, only(Reason::Early)), [1]);
}

#[test]
fn without_progress_ever_more_messages_pass() {
    let mut holds = Holds::default();
    let stuck = |_: &Hold| Level { high: true, progress: 7, blocked: false };
    let (mut now, mut passed) = (0, Vec::new());
    assert!(holds.grown(3, Reason::Kept, 7, now));
    for _ in 0..7 {
        assert_eq!(holds.look(now + LONGEST_HOLD - 1, stuck), [], "not yet");
        now += LONGEST_HOLD;
        assert_eq!(holds.look(now, stuck), [3]);
        let mut messages = 0;
        while !holds.grown(3, Reason::Kept, 7, now) {
            messages += 1;
        }
        passed.push(messages);
    }
    assert_eq!(passed, [8, 16, 32, 64, 128, 256, 256]);
    // After progress a hold lasts its full time again.
    assert_eq!(holds.look(now + 1, |_| Level { high: true, progress: 8, blocked: false }), []);
    now += 1 + LONGEST_HOLD;
    assert_eq!(holds.look(now, |_| Level { high: true, progress: 8, blocked: false }), [3]);
    assert_eq!((0..).take_while(|_| !holds.grown(3, Reason::Kept, 8, now)).count(), 8);
}

#[test]
fn a_context_that_closes_holds_no_peer() {
    let mut holds = Holds::default();
    holds.grown(1, Reason::Kept, 0, 0);
    holds.grown(1, Reason::Early, 0, 0);
    holds.grown(4, Reason::Completions, 0, 0);
    assert_eq!(holds.end(), [1, 4]);
    assert!(!holds.grown(1, Reason::Kept, 0, 0));
    assert!(holds.is_empty());
}

/// A packet of the simulation.
#[derive(Clone, Copy, PartialEq)]
enum Packet {
    /// Runs a completion handler at its target.
    Request,
    /// What one handler of the target waits for.
    Reply,
}

/// A task of the simulation: its ring, what waits for room in the other's, its handlers' queue.
struct Simulated {
    ring: VecDeque<Packet>,
    parked: VecDeque<Packet>,
    /// Requests that the program has still to send.
    left: u32,
    queue: u32,
    /// A handler runs and waits for a reply.
    waits: bool,
    returned: u64,
    holds: Holds,
    held: bool,
    most: u32,
}

const RING: usize = 16;
const BOUND: u32 = 20;

impl Simulated {
    fn send(&mut self, other: &mut VecDeque<Packet>, packet: Packet) {
        self.parked.push_back(packet);
        self.pump(other);
    }

    fn pump(&mut self, other: &mut VecDeque<Packet>) {
        while other.len() < RING {
            let Some(packet) = self.parked.pop_front() else { return };
            other.push_back(packet);
        }
    }

    fn step(&mut self, other: &mut VecDeque<Packet>, now: u64, visible: bool) {
        self.pump(other);
        if !self.held {
            match self.ring.pop_front() {
                // Every request makes its receiver's handler ask for a reply, which the dispatcher
                // sends at once.
                Some(Packet::Request) => {
                    self.queue += 1;
                    if self.queue > BOUND {
                        self.held |= self.holds.grown(0, Reason::Completions, self.returned, now);
                    }
                    self.send(other, Packet::Reply);
                }
                Some(Packet::Reply) => {
                    self.returned += u64::from(self.waits);
                    self.waits = false;
                }
                None => {}
            }
        }
        if !self.waits && self.queue > 0 {
            self.queue -= 1;
            self.waits = true;
        }
        if self.left > 0 && self.parked.len() < 8 {
            self.left -= 1;
            self.send(other, Packet::Request);
        }
        let level =
            Level { high: self.queue > BOUND / 2, progress: self.returned, blocked: visible && self.waits };
        self.held &= self.holds.look(now, |_| level).is_empty();
        self.most = self.most.max(self.queue);
    }
}

/// Both tasks are over the bound, each one's handler waits for a packet behind those that are held
/// back: they continue.
#[test]
fn two_tasks_that_hold_each_other_still_progress() {
    for seed in 1..=40 {
        let mut rng = Rng::stream(seed, 3);
        let visible = rng.chance(0.5);
        let new = |left| Simulated {
            ring: VecDeque::new(),
            parked: VecDeque::new(),
            left,
            queue: 0,
            waits: false,
            returned: 0,
            holds: Holds::default(),
            held: false,
            most: 0,
        };
        let requests = 200 + rng.below(400) as u32;
        let (mut a, mut b) = (new(requests), new(requests));
        let mut now = 0;
        let mut steps = 0;
        // All requests have come in. The last handlers wait for replies to nothing.
        while a.left + b.left > 0
            || a.ring.len() + b.ring.len() > 0
            || !a.parked.is_empty()
            || !b.parked.is_empty()
        {
            now += LONGEST_HOLD / 16;
            steps += 1;
            assert!(steps < 1_000_000, "seed {seed}: stuck, {} and {} are queued", a.queue, b.queue);
            if rng.chance(0.5) {
                a.step(&mut b.ring, now, visible);
            } else {
                b.step(&mut a.ring, now, visible);
            }
        }
    }
}

/// A handler that is slow, but waits for no packets: what is queued stays at the bound, however
/// long the peer sends.
#[test]
fn slow_handlers_bound_what_is_queued() {
    for seed in 1..=20 {
        let mut rng = Rng::stream(seed, 4);
        let (mut holds, mut held, mut queue, mut returned, mut most) =
            (Holds::default(), false, 0u32, 0u64, 0);
        for round in 0..100_000u64 {
            let now = round * (LONGEST_HOLD / 64);
            if !held {
                queue += 1;
                if queue > BOUND {
                    held = holds.grown(0, Reason::Completions, returned, now);
                }
            }
            if queue > 0 && rng.chance(0.2) {
                queue -= 1;
                returned += 1;
            }
            let level = Level { high: queue > BOUND / 2, progress: returned, blocked: false };
            if holds.look(now, |_| level).contains(&0) {
                held = false;
            }
            most = most.max(queue);
        }
        assert!(returned > 15_000, "seed {seed}: the handlers always had work, {returned} have returned");
        assert!(most <= BOUND + 16, "seed {seed}: {most} were queued");
    }
}
