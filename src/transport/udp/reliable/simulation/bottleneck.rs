//! A link with a short queue, which several flows share: how much each of them gets. Flows of the
//! reliable core compete with a model of TCP Reno, which has nothing in common with it.

use super::super::{Buffers, Connection, Content, MILLISECOND, Nanos, OVERHEAD, Parameters, SECOND};
use crate::base::process::Process;
use crate::base::rng::Rng;
use crate::wire::datagram::Hello;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a packet, which is one datagram.
const UNIT: usize = 1_400;
/// The time that a datagram takes on the link.
const SERIAL: Nanos = MILLISECOND;
/// The way from the link to the receiver, and back.
const WAY: Nanos = 10 * MILLISECOND;
/// Datagrams that wait for the link, at most.
const QUEUE: u64 = 20;

enum Flow {
    Core { ends: Box<[Connection; 2]>, buffers: Buffers },
    Reno(Reno),
}

/// TCP Reno with selective acknowledgements: numbers of datagrams, of which each is sent once.
#[derive(Default)]
struct Reno {
    window: f64,
    threshold: f64,
    next: u64,
    in_flight: BTreeSet<u64>,
    /// Losses of what was sent before this number were counted.
    recovery: u64,
    last: Nanos,
}

enum Event {
    /// A datagram of a flow is at the receiver (end 1) or back at the sender.
    Arrives {
        flow: usize,
        end: usize,
        theirs: u128,
        transmission: u64,
        content: Vec<u8>,
    },
    Wakes,
}

struct Link {
    now: Nanos,
    rng: Rng,
    lose: f64,
    flows: Vec<Flow>,
    events: BTreeMap<(Nanos, u64), Event>,
    serial: u64,
    /// The link is free again at this moment.
    free: Nanos,
    /// Datagrams of each flow that have arrived for the first time.
    arrived: Vec<u64>,
    dropped: u64,
}

/// One end of a connection that is made.
fn connection(mine: u128, yours: u128) -> Connection {
    let parameters = Parameters {
        unit: UNIT,
        base: UNIT,
        window: 512,
        acknowledge_every: 30,
        acknowledge_after: MILLISECOND / 2,
        longest_interval: 400 * MILLISECOND,
    };
    let hello = Hello { mine, yours, epoch: 1, process: Process::default(), longest: 0, opening: 0 };
    let mut connection = Connection::new(hello, &parameters, 0);
    connection.receive_hello(0, &Hello { mine: yours, yours: mine, ..hello });
    connection
}

impl Link {
    fn new(seed: u64, cores: usize, renos: usize, lose: f64) -> Self {
        let core = || Flow::Core {
            ends: Box::new([connection(1, 2), connection(2, 1)]),
            buffers: Buffers::new(UNIT, UNIT),
        };
        let reno = || Flow::Reno(Reno { window: 10.0, threshold: f64::INFINITY, ..Reno::default() });
        let flows = (0..cores).map(|_| core()).chain((0..renos).map(|_| reno())).collect();
        Self {
            now: SECOND,
            rng: Rng::new(seed),
            lose,
            flows,
            events: BTreeMap::new(),
            serial: 0,
            free: 0,
            arrived: vec![0; cores + renos],
            dropped: 0,
        }
    }

    fn at(&mut self, when: Nanos, event: Event) {
        self.serial += 1;
        self.events.insert((when, self.serial), event);
    }

    /// A datagram of `len` bytes leaves: through the link to the receiver, or back without it.
    fn send(&mut self, to: usize, len: usize, event: Event) {
        if to == 0 {
            return self.at(self.now + WAY, event);
        }
        let time = SERIAL * len as u64 / (UNIT + OVERHEAD) as u64;
        if self.free > self.now + QUEUE * SERIAL || self.rng.chance(self.lose) {
            self.dropped += 1;
            return;
        }
        self.free = self.free.max(self.now) + time;
        // What is on the link is not in step with anything.
        let jitter = self.rng.below(SERIAL / 10);
        self.at(self.free + WAY + jitter, event);
    }

    fn serve(&mut self, flow: usize) {
        let now = self.now;
        let mut out = Vec::new();
        let mut due = None;
        match &mut self.flows[flow] {
            Flow::Core { ends, buffers } => {
                while ends[0].has_room(UNIT) {
                    let buffer = buffers.take(UNIT).expect("a buffer");
                    ends[0].push(now, buffer, 8, UNIT);
                }
                for end in 0..2 {
                    while let Some(packet) = ends[end].take() {
                        self.arrived[flow] += 1;
                        ends[end].release(packet.fragments);
                        buffers.give(packet.buffer);
                    }
                    while let Some(sending) = ends[end].transmit(now) {
                        let content = match sending.content {
                            // The two ends know each other's numbers already.
                            Content::Hello => vec![],
                            Content::Header(header) => header.to_vec(),
                            Content::Padded(header, len) => [&header[..], &vec![0; len]].concat(),
                            Content::Map(header, len) => [&header[..], &ends[end].map()[..len]].concat(),
                            Content::Fragment(header, number) => {
                                [&header[..], ends[end].payload(number).expect("it is there")].concat()
                            }
                        };
                        out.push((1 - end, ends[end].mine(), sending, content));
                    }
                    due = [due, ends[end].due(now)].into_iter().flatten().min();
                }
            }
            Flow::Reno(reno) => {
                if now > reno.last + SECOND {
                    reno.in_flight.clear();
                    (reno.threshold, reno.window, reno.last) = ((reno.window / 2.0).max(2.0), 1.0, now);
                }
                let mut numbers = Vec::new();
                while (reno.in_flight.len() as f64) < reno.window.floor() {
                    reno.in_flight.insert(reno.next);
                    numbers.push(reno.next);
                    reno.next += 1;
                }
                due = Some(reno.last + SECOND + 1);
                for transmission in numbers {
                    let event = Event::Arrives { flow, end: 1, theirs: 0, transmission, content: vec![] };
                    self.send(1, UNIT + OVERHEAD, event);
                }
            }
        }
        for (to, theirs, sending, content) in out {
            let len = content.len() + OVERHEAD;
            let transmission = sending.transmission;
            self.send(to, len, Event::Arrives { flow, end: to, theirs, transmission, content });
        }
        if let Some(due) = due {
            self.at(due.max(now + 10_000), Event::Wakes);
        }
    }

    fn deliver(&mut self, flow: usize, end: usize, theirs: u128, transmission: u64, content: Vec<u8>) {
        let now = self.now;
        let back = match &mut self.flows[flow] {
            Flow::Core { ends, buffers } if !content.is_empty() => {
                ends[end].receive(now, theirs, transmission, &content, buffers);
                return;
            }
            Flow::Core { .. } => return,
            Flow::Reno(_) if end == 1 => {
                self.arrived[flow] += 1;
                true
            }
            Flow::Reno(reno) => {
                reno.last = now;
                if reno.in_flight.remove(&transmission) {
                    let growth = if reno.window < reno.threshold { 1.0 } else { 1.0 / reno.window };
                    reno.window += growth;
                }
                let lost: Vec<u64> =
                    reno.in_flight.iter().copied().take_while(|number| number + 3 <= transmission).collect();
                for number in lost {
                    reno.in_flight.remove(&number);
                    if number >= reno.recovery {
                        reno.threshold = (reno.window / 2.0).max(2.0);
                        (reno.window, reno.recovery) = (reno.threshold, reno.next);
                    }
                }
                false
            }
        };
        if back {
            self.send(0, 0, Event::Arrives { flow, end: 0, theirs, transmission, content });
        }
    }

    /// Lets the flows run for this time, and returns how many datagrams of each have arrived.
    fn run(&mut self, time: Nanos) -> Vec<u64> {
        let end = self.now + time;
        let before = self.arrived.clone();
        (0..self.flows.len()).for_each(|flow| self.serve(flow));
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 < end) {
            let ((when, _), event) = entry.remove_entry();
            self.now = when.max(self.now);
            match event {
                Event::Arrives { flow, end, theirs, transmission, content } => {
                    self.deliver(flow, end, theirs, transmission, content);
                    self.serve(flow);
                }
                Event::Wakes => (0..self.flows.len()).for_each(|flow| {
                    let now = self.now;
                    let wants = match &self.flows[flow] {
                        Flow::Core { ends, .. } => {
                            ends.iter().any(|end| end.due(now).is_some_and(|due| due <= now))
                        }
                        Flow::Reno(reno) => now > reno.last + SECOND,
                    };
                    if wants {
                        self.serve(flow);
                    }
                }),
            }
        }
        self.now = end;
        self.arrived.iter().zip(before).map(|(after, before)| after - before).collect()
    }
}

/// Datagrams that the link carries in a second.
const CAPACITY: u64 = SECOND / SERIAL;

#[test]
fn one_flow_fills_the_link() {
    let mut link = Link::new(1, 1, 0, 0.0);
    link.run(5 * SECOND);
    let carried = link.run(20 * SECOND)[0];
    assert!(carried > 20 * CAPACITY * 9 / 10, "{carried} of {}", 20 * CAPACITY);
    assert!(link.dropped < carried / 20, "{} datagrams were dropped", link.dropped);
}

#[test]
fn a_flow_gets_what_one_of_tcp_gets() {
    for seed in 1..=3 {
        for each in [1, 2] {
            let mut link = Link::new(seed, each, each, 0.0);
            link.run(5 * SECOND);
            let carried = link.run(40 * SECOND);
            let sum = |part: &[u64]| part.iter().sum::<u64>() as f64;
            let (ours, theirs) = (sum(&carried[..each]), sum(&carried[each..]));
            assert!(ours + theirs > 0.9 * (40 * CAPACITY) as f64, "{carried:?}");
            let share = ours / (ours + theirs);
            assert!(
                (0.35..0.67).contains(&share),
                "seed {seed}: {share} for {each} of each kind: {carried:?}"
            );
        }
    }
}

#[test]
fn flows_of_one_kind_get_equal_parts() {
    let mut link = Link::new(4, 3, 0, 0.0);
    link.run(5 * SECOND);
    let carried = link.run(60 * SECOND);
    let (least, most) = (carried.iter().min(), carried.iter().max());
    assert!(least.zip(most).is_some_and(|(least, most)| most < &(2 * least)), "{carried:?}");
}

/// Losses that do not come from the queue: by Mathis's formula about 1.2 datagrams in a round trip,
/// divided by the root of the rate.
#[test]
fn a_lossy_link_does_not_stop_a_flow() {
    for (lose, least) in [(0.01, 400), (0.05, 130), (0.3, 15)] {
        let mut link = Link::new(5, 1, 0, lose);
        link.run(5 * SECOND);
        let carried = link.run(30 * SECOND)[0];
        assert!(carried > 30 * least, "{carried} datagrams in 30 s with losses of {lose}");
    }
}
