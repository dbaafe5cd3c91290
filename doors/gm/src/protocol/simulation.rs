//! Ports that send to each other over a network that delays, reorders and loses tasks, from a seed:
//! GM_SEED=n runs that one, GM_SEEDS=n the first n.

use super::types::{Data, Event, Output, Request, Target, Then, Verdict};
use super::{Port, Settings};
use crate::abi::Status;
use crate::nodes::Nodes;
use crate::wire::{Header, Kind, answer};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

const PORT: u8 = 2;
const PATIENCE: u64 = 5_000_000;
const SIZE: std::ops::Range<u64> = 4..7;

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// What is on the way: a message, or the rest of one that was taken.
enum Way {
    Message { from: u32, output: Output },
    Tail { from: u32, to: u32, token: u64 },
    Free { from: u32, to: u32, data: Data },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    from: u32,
    target: Target,
    kind: Kind,
    delivered: u32,
    status: Option<Status>,
}

struct World {
    dice: Dice,
    now: u64,
    nodes: Arc<Nodes>,
    ports: Vec<Port>,
    way: VecDeque<Way>,
    reorders: bool,
    /// By what stands for the message's memory.
    sent: HashMap<usize, Sent>,
    /// The last message delivered of each connection.
    last: HashMap<(u32, Target), usize>,
    next: usize,
    lost: Vec<u32>,
    /// The last buffer.
    buffers: usize,
    /// By token, what is arriving at a task.
    arriving: HashMap<(u32, u64), usize>,
    /// Which message goes into which buffer.
    into: HashMap<usize, usize>,
    /// Connections that stand still, by task.
    standing: Vec<(u32, Target)>,
    /// [`Settings::counts_all`].
    counts_all: bool,
    /// Buffers come long before a message would have waited for too long.
    is_calm: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let tasks = 2 + dice.below(3) as u32;
        // In some worlds all tasks are on one node, and the first has the port.
        let is_one_node = dice.one_in(4);
        let lowest: Vec<u32> = (0..tasks).map(|task| if is_one_node { 0 } else { task }).collect();
        let nodes = Arc::new(Nodes::by_lowest(&lowest));
        let epochs = || Arc::new(AtomicU32::new(0));
        // Started by hand.
        let counts_all = dice.one_in(2);
        let settings = || Settings { patience: PATIENCE, check: false, epochs: epochs(), counts_all };
        let mut ports: Vec<Port> =
            lowest.iter().map(|_| Port::new(PORT, nodes.clone(), settings())).collect();
        for port in &mut ports {
            port.allow_remote_access();
            if dice.one_in(4) {
                port.set_acceptable(0, !(1 << SIZE.start));
            }
        }
        let reorders = dice.one_in(2);
        let is_calm = dice.one_in(2);
        Self {
            dice,
            now: 0,
            nodes,
            ports,
            way: VecDeque::new(),
            reorders,
            sent: HashMap::new(),
            last: HashMap::new(),
            next: 1,
            lost: Vec::new(),
            buffers: 1 << 40,
            arriving: HashMap::new(),
            into: HashMap::new(),
            standing: Vec::new(),
            counts_all,
            is_calm,
        }
    }

    fn tasks(&self) -> u64 {
        self.ports.len() as u64
    }

    fn is_lost(&self, task: u32) -> bool {
        self.lost.contains(&task)
    }

    fn step(&mut self) {
        match self.dice.below(12) {
            0..3 => self.send(),
            3 => self.provide(),
            4 | 5 => self.collect(),
            6 if !self.is_calm && self.dice.one_in(20) => self.now += 1_000_000,
            6 => self.now += 1000,
            7 if self.lost.is_empty() && self.dice.one_in(200) => self.kill(),
            7 => self.go_on(),
            _ => self.carry(),
        }
        self.tick();
    }

    fn send(&mut self) {
        let from = self.dice.below(self.tasks()) as u32;
        let outstanding =
            self.sent.values().filter(|sent| sent.from == from && sent.status.is_none()).count();
        if self.is_lost(from) || outstanding >= 60 {
            return;
        }
        let nodes = u64::from(self.nodes.count());
        let (node, priority) = (1 + self.dice.below(nodes) as u32, self.dice.below(2) as u8);
        let target = Target { node, port: PORT, priority };
        let kind = [Kind::Send, Kind::Send, Kind::Put, Kind::Get][self.dice.below(4) as usize];
        let size = (SIZE.start + self.dice.below(SIZE.end - SIZE.start)) as u8;
        let address = self.next;
        self.next += 1;
        self.sent.insert(address, Sent { from, target, kind, delivered: 0, status: None });
        let then = Then { callback: 1, context: address };
        let remote = address as u64;
        self.ports[from as usize]
            .start(self.now, Request { kind, target, size, address, length: 8, remote, then });
    }

    fn provide(&mut self) {
        let task = self.dice.below(self.tasks()) as u32;
        if self.is_lost(task) {
            return;
        }
        let size = (SIZE.start + self.dice.below(SIZE.end - SIZE.start)) as u8;
        self.buffers += 1;
        let priority = self.dice.below(2) as u8;
        self.ports[task as usize].provide(self.buffers, size, priority, 0);
    }

    fn collect(&mut self) {
        let task = self.dice.below(self.tasks()) as u32;
        let is_closable = self.ports[task as usize].is_quiet() && !self.is_lost(task);
        assert!(!is_closable || self.used(task).next().is_none(), "the network uses what task {task} frees");
        let mut has_event = false;
        while let Some(event) = self.ports[task as usize].next_event() {
            has_event = true;
            if let Event::Received { buffer, priority, .. } = event {
                let message = self.into[&buffer];
                let Sent { from, target, .. } = self.sent[&message];
                assert_eq!(target.priority, priority);
                let before = self.last.insert((from, target), message).unwrap_or(0);
                assert!(before < message, "from {from} to {target:?}: {message} after {before}");
            }
            if let Event::Ended { then, status, address } = event {
                let is_used = self.used(task).any(|used| used == address);
                let sent = self.sent.get_mut(&then.context).expect("it was sent");
                assert_eq!(sent.status, None, "it ends once");
                sent.status = Some(status);
                assert!(!self.is_calm || status != Status::SendTimedOut, "{sent:?} has missed its buffer");
                let is_get = sent.kind == Kind::Get;
                assert!(is_get || !is_used, "message {address} has ended, and its memory is in use");
                if status == Status::Success {
                    let Sent { target, delivered, .. } = *sent;
                    assert!(is_get || delivered == 1, "message {} to {target:?}: {delivered}", then.context);
                } else {
                    // What the dead have taken is not known.
                    let of_dead =
                        self.nodes.tasks(sent.target.node).iter().any(|task| self.lost.contains(task));
                    assert!(sent.delivered == 0 || of_dead, "{status:?} and delivered");
                    if !is_get && status != Status::SendDropped {
                        self.standing.push((task, sent.target));
                    }
                }
            }
        }
        if !has_event && !self.is_lost(task) {
            self.ports[task as usize].found_nothing();
        }
    }

    /// The memory of a task that the network uses.
    fn used(&self, task: u32) -> impl Iterator<Item = usize> {
        let data = self.way.iter().filter_map(move |way| match way {
            Way::Message { from, output } if *from == task => Some(output.data),
            Way::Free { from, data, .. } if *from == task => Some(*data),
            _ => None,
        });
        data.filter_map(|data| if let Data::Memory { address, .. } = data { Some(address) } else { None })
    }

    /// The program says what follows a failure.
    fn go_on(&mut self) {
        let Some((task, target)) = self.standing.pop() else { return };
        if self.is_lost(task) {
            return;
        }
        let context = self.next;
        self.next += 1;
        let sent = Sent { from: task, target, kind: Kind::Get, delivered: 0, status: None };
        self.sent.insert(context, sent);
        let (port, then) = (&mut self.ports[task as usize], Then { callback: 1, context });
        match self.dice.one_in(3) {
            true => port.drop_sends(self.now, target, then),
            false => port.resume(self.now, target, then),
        }
    }

    fn kill(&mut self) {
        let task = self.dice.below(self.tasks()) as u32;
        self.lost.push(task);
        self.nodes.lose(task);
        // What comes from it stops in the middle.
        for way in std::mem::take(&mut self.way) {
            match way {
                Way::Message { from, output } if from != task && output.task == task => {
                    if self.counts_all {
                        self.way.push_back(Way::Free { from, to: task, data: output.data });
                    }
                }
                Way::Message { from, .. } if from == task => {}
                Way::Tail { from, to, .. } if from == task || to == task => {}
                Way::Free { to, .. } if to == task && !self.counts_all => {}
                way => self.way.push_back(way),
            }
        }
        for at in 0..self.ports.len() as u32 {
            if at != task {
                self.ports[at as usize].lost(self.now, task);
            }
        }
    }

    fn tick(&mut self) {
        for task in 0..self.ports.len() as u32 {
            if self.is_lost(task) {
                continue;
            }
            self.ports[task as usize].tick(self.now);
            while let Some(output) = self.ports[task as usize].next_output() {
                match self.is_lost(output.task) {
                    true => output.data.free(),
                    false => self.way.push_back(Way::Message { from: task, output }),
                }
            }
        }
    }

    fn carry(&mut self) {
        if self.way.is_empty() {
            return;
        }
        let at = if self.reorders { self.dice.below(self.way.len().min(6) as u64) as usize } else { 0 };
        match self.way.remove(at).expect("it is there") {
            Way::Message { from, output } => self.arrive(from, output),
            Way::Tail { to, token, .. } => self.complete(to, token),
            Way::Free { data, .. } => data.free(),
        }
    }

    fn arrive(&mut self, from: u32, output: Output) {
        let Output { task, header, data } = output;
        let length = if let Data::Memory { length, .. } = data { length } else { 0 };
        let header = Header::decode(header.encode().as_bytes(), length).expect("a header");
        match data != Data::None && self.dice.one_in(5) {
            true => self.way.push_back(Way::Free { from, to: task, data }),
            false => data.free(),
        }
        let port = &mut self.ports[task as usize];
        let verdict = match header.kind {
            Kind::Send | Kind::Put | Kind::Get | Kind::Data | Kind::Datagram => port.arrived(from, &header),
            _ => Verdict::Bury,
        };
        port.hear(self.now, &header);
        match header.kind {
            Kind::Where => {
                let has_port = self.nodes.tasks(1).len() == 1 || task == 0;
                let code = if has_port { answer::HERE } else { answer::NOT_YET };
                let header = header.reply(Kind::Answer, code);
                let output = Output { task: from, header, data: Data::None };
                self.way.push_back(Way::Message { from: task, output });
            }
            Kind::Send | Kind::Put | Kind::Get | Kind::Data | Kind::Datagram => {
                let Verdict::Into { token, address: into } = verdict else { return };
                if let Data::Memory { address, .. } = data {
                    // A get has no memory of its own here: what it asks for stands for it.
                    self.arriving.insert((task, token), address);
                    self.into.insert(into, address);
                }
                match self.dice.one_in(3) {
                    true => self.way.push_back(Way::Tail { from, to: task, token }),
                    false => self.complete(task, token),
                }
            }
            Kind::Ping => port.tell(),
            _ => assert!(port.replied(self.now, from, &header), "no port is opened again here"),
        }
    }

    fn complete(&mut self, task: u32, token: u64) {
        if let Some(address) = self.arriving.remove(&(task, token)) {
            let sent = self.sent.get_mut(&address).expect("it was sent");
            sent.delivered += 1;
            assert!(sent.kind == Kind::Get || sent.delivered == 1, "message {address} is delivered twice");
        }
        let port = &mut self.ports[task as usize];
        port.complete(self.now, token);
        // In some cases the program will find no event that makes it send something.
        if self.dice.one_in(3) {
            port.tell();
        }
    }

    /// Nothing new is sent, and all that waits is served.
    fn finish(&mut self) {
        for _ in 0..200_000 {
            for task in 0..self.ports.len() as u32 {
                let sizes = SIZE.flat_map(|size| [(size as u8, 0), (size as u8, 1)]);
                for (size, priority) in sizes.filter(|_| !self.lost.contains(&task)) {
                    self.buffers += 1;
                    self.ports[task as usize].provide(self.buffers, size, priority, 0);
                }
            }
            for _ in 0..20 {
                self.carry();
                self.tick();
            }
            (0..4).for_each(|_| self.collect());
            self.go_on();
            self.now += 10_000;
            let pending =
                self.sent.values().any(|sent| sent.status.is_none() && !self.lost.contains(&sent.from));
            if !pending && self.way.is_empty() {
                break;
            }
        }
        for (address, sent) in &self.sent {
            let ends = sent.status.is_some() || self.lost.contains(&sent.from);
            let state = || {
                let sides = [&self.ports[sent.from as usize], &self.ports[sent.target.node as usize - 1]];
                sides.map(|port| port.describe(sent.target)).join("\n")
            };
            assert!(ends, "{address} never ends: {sent:?}\n{}", state());
        }
        for (task, port) in (0..).zip(&self.ports) {
            assert!(self.lost.contains(&task) || port.is_quiet(), "port of task {task} is busy");
        }
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    (0..4000).for_each(|_| world.step());
    world.finish();
}

#[test]
fn whatever_the_network_does_each_message_ends_once_and_as_it_was_delivered() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse().expect("a number"));
    let seeds = match number("GM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + number("GM_SEEDS").unwrap_or(300),
    };
    for seed in seeds {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("it fails with GM_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
