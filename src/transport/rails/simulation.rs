//! Packets and agreement of two tasks over rails that die and return at every step, from seeds.

use super::agreement::{Action, Agreement, Why};
use super::flow::{Arrival, Flow};
use crate::base::rng::Rng;
use crate::wire::rails::{RAILS, RailState};
use std::collections::VecDeque;
use std::time::Duration;

/// Packets that each side sends.
const PACKETS: u64 = 1_500;

/// What a rail carries to one side.
#[derive(Clone, Copy, Debug)]
struct Packet {
    connection: u64,
    number: u32,
    accepted: u32,
    content: u64,
}

#[derive(Clone, Copy, Debug)]
struct Note {
    rails: [(u32, RailState); RAILS],
    accepted: u32,
    wants_reply: bool,
}

/// One side's end of a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Connected: the number of the connection, and the generation.
    Up(u64, u32),
    Parted,
    /// The end lets the other side rejoin. `Some`: the connection that it will have.
    Joining(u32, Option<u64>),
}

struct Rail {
    up: bool,
    ends: [End; 2],
    /// To each side.
    packets: [VecDeque<Packet>; 2],
}

struct Side {
    flow: Flow<u64>,
    agreement: Agreement,
    /// The links as this side knows them.
    up: u8,
    sent: u64,
    received: u64,
    duplicates: u64,
    /// The last generation of each rail that was lost.
    lost: [Option<u32>; RAILS],
}

struct World {
    rng: Rng,
    now: Duration,
    rails: Vec<Rail>,
    sides: [Side; 2],
    /// To each side, in no order.
    notes: [Vec<Note>; 2],
    connections: u64,
    storm: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let count = 1 + rng.below(4) as usize;
        let rail = |at: usize| Rail {
            up: true,
            ends: [End::Up(at as u64, 0); 2],
            packets: [VecDeque::new(), VecDeque::new()],
        };
        let side = || Side {
            flow: Flow::default(),
            agreement: Agreement::new(count, true, Duration::ZERO),
            up: u8::MAX,
            sent: 0,
            received: 0,
            duplicates: 0,
            lost: [None; RAILS],
        };
        Self {
            rng,
            now: Duration::ZERO,
            rails: (0..count).map(rail).collect(),
            sides: [side(), side()],
            notes: [Vec::new(), Vec::new()],
            connections: 1000,
            storm: true,
        }
    }

    fn act(&mut self, side: usize, action: Action) {
        match action {
            Action::Leave(rail) => {
                if let End::Up(_, generation) = self.rails[rail].ends[side] {
                    self.sides[side].lost[rail] = Some(generation);
                }
                self.rails[rail].ends[side] = End::Parted;
                self.sides[side].flow.lose(rail);
            }
            Action::Join(rail, generation) => {
                assert_eq!(self.rails[rail].ends[side], End::Parted, "joined without having left");
                self.rails[rail].ends[side] = End::Joining(generation, None);
            }
        }
    }

    fn act_all(&mut self, side: usize, actions: Vec<Action>) {
        actions.into_iter().for_each(|action| self.act(side, action));
    }

    fn fail(&mut self, side: usize, rail: usize, why: Why) {
        if self.sides[side].agreement.fail(rail, why, self.now) {
            self.act(side, Action::Leave(rail));
        }
    }

    /// The sides that both let each other rejoin get a connection; one may know of it long
    /// before the other.
    fn connect(&mut self, side: usize, rail: usize) {
        let rail_of = &mut self.rails[rail];
        let End::Joining(generation, own) = rail_of.ends[side] else { return };
        if !rail_of.up {
            return;
        }
        match (own, rail_of.ends[1 - side]) {
            (Some(connection), _) => {
                rail_of.ends[side] = End::Up(connection, generation);
                self.sides[side].agreement.joined(rail, generation);
            }
            (None, End::Joining(other, None)) => {
                assert_eq!(generation, other, "generations differ");
                self.connections += 1;
                rail_of.ends = [End::Joining(generation, Some(self.connections)); 2];
            }
            _ => {}
        }
    }

    fn send(&mut self, side: usize) {
        let home = self.rng.below(self.rails.len() as u64) as usize;
        let own = &mut self.sides[side];
        if !own.flow.has_unsent() && own.flow.has_room() && own.sent < PACKETS {
            own.flow.push(own.sent, None);
            own.sent += 1;
        }
        let Some(rail) = own.agreement.live_from(home) else { return };
        let End::Up(connection, _) = self.rails[rail].ends[side] else { panic!("live, and not connected") };
        let Some((number, content)) = own.flow.take_unsent() else { return };
        let accepted = own.flow.acknowledge();
        own.flow.put_back(number, content, Some(rail));
        self.rails[rail].packets[1 - side].push_back(Packet { connection, number, accepted, content });
    }

    fn receive(&mut self, side: usize, rail: usize) {
        let Rail { up, ends, packets } = &mut self.rails[rail];
        let Some(packet) = packets[side].front().copied().filter(|_| *up) else { return };
        match ends[side] {
            // The other side knows before this one that they are connected.
            End::Joining(_, Some(connection)) if connection == packet.connection => return,
            End::Up(connection, _) if connection == packet.connection => {}
            _ => {
                packets[side].pop_front();
                return;
            }
        }
        packets[side].pop_front();
        let own = &mut self.sides[side];
        own.flow.note_accepted(packet.accepted, drop);
        match own.flow.arrived(packet.number) {
            Arrival::Next => own.deliver(packet.content),
            Arrival::Early => own.flow.keep(packet.number, packet.content),
            Arrival::Duplicate => own.duplicates += 1,
        }
        while let Some(content) = own.flow.take_early() {
            own.deliver(content);
        }
    }

    fn send_note(&mut self, side: usize, wants_reply: bool) {
        let own = &mut self.sides[side];
        let rails = own.agreement.standings(own.up);
        let note = Note { rails, accepted: own.flow.acknowledge(), wants_reply };
        own.agreement.noted(self.now);
        for rail in &self.rails {
            let lost = !rail.up || self.rng.chance(0.2);
            let copies = if lost { 0 } else { 1 + self.rng.below(2) };
            (0..copies).for_each(|_| self.notes[1 - side].push(note));
        }
    }

    fn receive_note(&mut self, side: usize) {
        let notes = &mut self.notes[side];
        if notes.is_empty() {
            return;
        }
        let note = notes.swap_remove(self.rng.below(notes.len() as u64) as usize);
        let mut actions = Vec::new();
        let own = &mut self.sides[side];
        let reply = own.agreement.note(&note.rails, self.now, |action| actions.push(action));
        own.flow.note_accepted(note.accepted, drop);
        self.act_all(side, actions);
        if reply || note.wants_reply {
            self.send_note(side, false);
        }
    }

    fn tick(&mut self, side: usize) {
        let mut actions = Vec::new();
        let own = &mut self.sides[side];
        own.agreement.tick(own.up, self.now, |action| actions.push(action));
        let asks = own.flow.unacknowledged() != 0 && self.rng.chance(0.1);
        let due = own.agreement.note_due(own.up).is_some_and(|due| due <= self.now) || asks;
        self.act_all(side, actions);
        if due {
            self.send_note(side, true);
        } else if self.sides[side].flow.owed() != 0 {
            self.send_note(side, false);
        }
    }

    fn look_at_links(&mut self, side: usize) {
        let up = self.rails.iter().enumerate().fold(0, |bits, (at, rail)| bits | u8::from(rail.up) << at);
        if self.sides[side].up != up {
            self.sides[side].up = up;
            self.sides[side].agreement.changed();
        }
    }

    fn check(&self) {
        for side in 0..2 {
            for (at, rail) in self.rails.iter().enumerate() {
                let Some(generation) = self.sides[side].lost[at] else { continue };
                if self.sides[side].agreement.is_cut(at, generation) {
                    let other = rail.ends[1 - side];
                    assert!(
                        !matches!(other, End::Up(_, own) if own == generation),
                        "rail {at} counts as cut, and the other side has not left it: {other:?}"
                    );
                }
            }
        }
    }

    fn step(&mut self) {
        let side = self.rng.below(2) as usize;
        let rail = self.rng.below(self.rails.len() as u64) as usize;
        match self.rng.below(24) {
            0 if self.storm => self.rails[rail].up = !self.rails[rail].up,
            1 if self.storm => self.fail(side, rail, Why::Failure),
            2 | 3 => self.look_at_links(side),
            4 | 5 => self.tick(side),
            6 | 7 => self.connect(side, rail),
            8 => self.now += Duration::from_micros(self.rng.below(30_000)),
            9..=12 => self.receive_note(side),
            13..=18 => self.send(side),
            _ => self.receive(side, rail),
        }
        self.check();
    }

    fn is_over(&self) -> bool {
        let all_live = |side: &Side| (0..self.rails.len()).all(|rail| side.agreement.is_live(rail));
        let same = |rail: usize| {
            self.sides[0].agreement.generation(rail) == self.sides[1].agreement.generation(rail)
        };
        self.sides.iter().all(|side| side.received == PACKETS && side.flow.unacknowledged() == 0)
            && self.sides.iter().all(all_live)
            && (0..self.rails.len()).all(same)
    }
}

impl Side {
    fn deliver(&mut self, content: u64) {
        assert_eq!(content, self.received, "lost, twice, or out of order");
        self.received += 1;
    }
}

fn run(seed: u64) -> (u64, u32) {
    let mut world = World::new(seed);
    let storm = world.rng.below(20_000);
    for _ in 0..storm {
        world.step();
    }
    world.storm = false;
    world.rails.iter_mut().for_each(|rail| rail.up = true);
    let mut left = 2_000_000;
    while !world.is_over() {
        world.step();
        left -= 1;
        assert!(
            left > 0,
            "the sides do not agree:\n{:#?}\n{:#?}",
            world.sides[0].agreement,
            world.sides[1].agreement
        );
    }
    let duplicates = world.sides.iter().map(|side| side.duplicates).sum();
    (duplicates, (0..world.rails.len()).map(|rail| world.sides[0].agreement.generation(rail)).sum())
}

#[test]
fn nothing_is_lost_or_doubled_while_rails_die_and_return() {
    let seeds = match std::env::var("RAILS_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("a number");
            seed..seed + 1
        }
        Err(_) => 0..200,
    };
    let (mut duplicates, mut generations) = (0, 0);
    for seed in seeds.clone() {
        println!("RAILS_SEED={seed}");
        let (more, again) = run(seed);
        duplicates += more;
        generations += again;
    }
    if seeds.end - seeds.start > 1 {
        assert!(duplicates > 100 && generations > 100, "{duplicates} duplicates, {generations} returns");
    }
}
