//! The tasks, and the model of what each of them may see.

use super::super::{
    Arrived, Buffers, Connection, Content, Happened, MILLISECOND, Nanos, Parameters, SECOND, State, bytes,
    bytes_mut,
};
use super::link::{Bytes, Envelope, Faults, Network, open, seal};
use crate::base::process::Process;
use crate::base::rng::Rng;
use crate::wire::datagram::{HELLO, Hello};
use std::collections::{BTreeMap, BTreeSet};

/// The longest packet, in fragments.
pub const LONGEST: usize = 6;

/// The shortest fragment that no link refuses.
pub const LEAST: usize = 12;

/// A packet that a connection has taken.
struct Record {
    from: u32,
    to: u32,
    /// The sender's number of the connection.
    connection: u128,
    head_len: usize,
    len: usize,
    arrived: bool,
}

pub struct Task {
    pub connections: BTreeMap<u32, Connection>,
    /// Packets that were taken and not released, and the number of their connection.
    taken: Vec<(u32, u128, Arrived)>,
    /// The task does nothing before this moment.
    pub paused: Nanos,
    /// The task takes packets of no peer.
    pub holds: bool,
    buffers: Buffers,
    life: u64,
}

pub struct World {
    pub seed: u64,
    pub rng: Rng,
    pub now: Nanos,
    pub parameters: Parameters,
    pub faults: Faults,
    pub network: Network,
    pub tasks: Vec<Task>,
    /// Directions that carry nothing.
    pub cut: BTreeSet<(u32, u32)>,
    /// Fragments that are longer are lost, unless they are sent in parts.
    pub takes: usize,
    recorded: Vec<(u32, Bytes)>,
    records: BTreeMap<u64, Record>,
    packets: u64,
    pub arrived: u64,
    pub kicks: u64,
    numbers: u64,
}

impl World {
    pub fn new(seed: u64, tasks: u32) -> Self {
        let mut rng = Rng::new(seed);
        let unit = 16 + rng.below(48) as usize;
        let parameters = Parameters {
            unit,
            base: if rng.chance(0.5) { unit } else { LEAST.min(unit) },
            window: (LONGEST * 64 / LEAST) as u16 + rng.below(40) as u16,
            acknowledge_every: 1 + rng.below(31) as u16,
            acknowledge_after: MILLISECOND / 2,
            longest_interval: 400 * MILLISECOND,
        };
        let faults = Faults::random(&mut rng);
        let mut world = Self {
            seed,
            rng,
            now: SECOND,
            parameters,
            faults,
            network: Network::default(),
            tasks: Vec::new(),
            cut: BTreeSet::new(),
            takes: usize::MAX,
            recorded: Vec::new(),
            records: BTreeMap::new(),
            packets: 0,
            arrived: 0,
            kicks: 0,
            numbers: 0,
        };
        (0..tasks).for_each(|_| {
            let task = world.task(0);
            world.tasks.push(task);
        });
        (0..tasks).for_each(|task| world.start(task));
        world
    }

    fn task(&self, life: u64) -> Task {
        Task {
            connections: BTreeMap::new(),
            taken: Vec::new(),
            paused: 0,
            holds: false,
            buffers: Buffers::new(self.parameters.unit, LONGEST * self.parameters.unit),
            life,
        }
    }

    pub fn count(&self) -> u32 {
        self.tasks.len() as u32
    }

    pub fn any(&mut self) -> u32 {
        self.rng.below(self.tasks.len() as u64) as u32
    }

    /// Another task than this one.
    pub fn other(&mut self, than: u32) -> u32 {
        (than + 1 + self.rng.below(u64::from(self.count()) - 1) as u32) % self.count()
    }

    /// A task lets another one rejoin, with which it has parted, or has first contact with it.
    pub fn connect(&mut self, task: u32, peer: u32) {
        self.numbers += 1;
        let mine = u128::from(self.rng.next_u64()) << 64 | u128::from(self.numbers);
        let process = Process { pid: task + 1, started: self.tasks[task as usize].life };
        let hello = Hello { mine, yours: 0, epoch: self.numbers, process, longest: 0, opening: 0 };
        let connection = Connection::new(hello, &self.parameters, self.now);
        let Task { connections, buffers, .. } = &mut self.tasks[task as usize];
        if let Some(mut before) = connections.insert(peer, connection) {
            before.abandon(buffers);
        }
    }

    /// All tasks begin again, with other parameters.
    pub fn restart(&mut self) {
        (0..self.count()).for_each(|task| self.replace(task));
    }

    fn start(&mut self, task: u32) {
        (0..self.count()).filter(|&peer| peer != task).for_each(|peer| self.connect(task, peer));
    }

    /// The process ends, and another one takes its place.
    pub fn replace(&mut self, task: u32) {
        let life = self.tasks[task as usize].life + 1;
        self.tasks[task as usize] = self.task(life);
        self.start(task);
    }

    /// A task sends a packet, if there is room.
    pub fn send(&mut self, task: u32, peer: u32) -> bool {
        let most = LONGEST * self.parameters.unit;
        let wanted = if self.rng.chance(0.5) { 40 } else { most as u64 };
        let words = 1 + self.rng.below(6.min(most as u64 / 8));
        let head_len = 8 * words as usize;
        let len = (head_len + self.rng.below(wanted) as usize).min(most);
        let Task { connections, buffers, .. } = &mut self.tasks[task as usize];
        let connection = connections.get_mut(&peer).expect("a connection");
        if !connection.has_room(len) {
            connection.await_room(self.now);
            return false;
        }
        self.packets += 1;
        let id = self.packets;
        let mut buffer = buffers.take(len).expect("a buffer");
        fill(id, &mut bytes_mut(&mut buffer)[..len]);
        let record =
            Record { from: task, to: peer, connection: connection.mine(), head_len, len, arrived: false };
        self.records.insert(id, record);
        connection.push(self.now, buffer, head_len, len);
        true
    }

    pub fn kick(&mut self, task: u32, peer: u32) {
        let connection = self.tasks[task as usize].connections.get_mut(&peer).expect("a connection");
        connection.kick(self.now);
    }

    /// Does what is due at a task.
    pub fn serve(&mut self, task: u32) {
        let runs = self.tasks[task as usize].paused <= self.now;
        for peer in (0..self.count()).filter(|&peer| runs && peer != task) {
            let mut quiet = false;
            loop {
                let connection = self.tasks[task as usize].connections.get_mut(&peer).expect("a connection");
                let Some(sending) = connection.transmit(self.now) else { break };
                assert!(!quiet, "it has said that it has nothing now: {:?}", sending.content);
                quiet = connection.is_quiet(self.now) && !connection.timer_has_ended(self.now);
                let mut envelope = Envelope {
                    from: task,
                    to: peer,
                    theirs: connection.mine(),
                    mine: connection.theirs(),
                    transmission: sending.transmission,
                };
                let greeting: [u8; HELLO];
                let parts: [&[u8]; 2] = match &sending.content {
                    Content::Hello => {
                        (envelope.theirs, envelope.mine) = (0, 0);
                        greeting = connection.hello().encode();
                        [&greeting, &[]]
                    }
                    Content::Header(header) => [header, &[]],
                    Content::Fragment(header, number) => {
                        [header, connection.payload(*number).expect("it was just handed out")]
                    }
                    Content::Map(header, len) => [header, &connection.map()[..*len]],
                    Content::Padded(header, len) => [header, &[0; 64][..*len]],
                };
                // Acknowledgements are short on real links.
                let is_long = matches!(sending.content, Content::Fragment(..) | Content::Padded(..));
                let takes = sending.in_parts || !is_long || parts[1].len() <= self.takes;
                if takes && !self.cut.contains(&(task, peer)) {
                    let bytes = seal(&envelope, parts);
                    self.network.send(&mut self.rng, self.now, &self.faults, peer, bytes);
                }
            }
        }
    }

    /// A datagram arrives.
    fn deliver(&mut self, to: u32, bytes: &[u8]) {
        let Some((envelope, content)) = open(bytes) else { return };
        let Task { connections, buffers, .. } = &mut self.tasks[to as usize];
        let Some(connection) = connections.get_mut(&envelope.from).filter(|_| envelope.to == to) else {
            return;
        };
        let Envelope { theirs, transmission, .. } = envelope;
        let mut is_claim = false;
        let happened = if theirs == 0 {
            let hello = Hello::decode(content).expect("what is sealed is sound");
            // Of another incarnation of the peer, and not proven.
            is_claim = connection.state() != State::Opening && hello.mine != connection.theirs();
            connection.receive_hello(self.now, &hello)
        } else if envelope.mine == connection.mine() {
            connection.receive(self.now, theirs, transmission, content, buffers)
        } else {
            Happened::default()
        };
        self.kicks += u64::from(happened.kick);
        connection.check(&self.parameters);
        if is_claim && self.rng.chance(0.1) {
            // The task learns of the parting or the death in this way, or later.
            self.connect(to, envelope.from);
        }
    }

    /// A task takes and releases packets.
    pub fn take(&mut self, task: u32, release: f64) {
        for peer in 0..self.count() {
            let Task { connections, taken, holds, paused, .. } = &mut self.tasks[task as usize];
            let Some(connection) = connections.get_mut(&peer).filter(|_| !*holds && *paused <= self.now)
            else {
                continue;
            };
            while let Some(packet) = connection.take() {
                let id = u64::from_le_bytes(bytes(&packet.buffer, 8).try_into().expect("8 bytes"));
                let record = self.records.get_mut(&id).expect("a packet that was sent");
                assert_eq!((record.from, record.to), (peer, task), "packet {id}");
                assert_eq!(record.connection, connection.theirs(), "packet {id} is of a former connection");
                assert_eq!((record.head_len, record.len), (packet.head_len, packet.len), "packet {id}");
                assert!(!std::mem::replace(&mut record.arrived, true), "packet {id} has arrived twice");
                let mut wanted = vec![0; packet.len];
                fill(id, &mut wanted);
                assert_eq!(bytes(&packet.buffer, packet.len), wanted, "packet {id}");
                self.arrived += 1;
                taken.push((peer, connection.mine(), packet));
            }
        }
        let Task { connections, taken, buffers, .. } = &mut self.tasks[task as usize];
        for at in (0..taken.len()).rev() {
            if self.rng.chance(release) {
                let (peer, mine, packet) = taken.swap_remove(at);
                let connection = connections.get_mut(&peer).expect("a connection");
                if connection.mine() == mine {
                    connection.release(packet.fragments);
                }
                buffers.give(packet.buffer);
            }
        }
    }

    /// The next moment at which something happens, or `latest`.
    fn next_moment(&self, latest: Nanos) -> Nanos {
        let now = self.now;
        let due = |task: &Task| {
            let due = task.connections.values().filter_map(|connection| connection.due(now)).min();
            due.map(|due| due.max(task.paused))
        };
        let tasks = self.tasks.iter().filter_map(due).min();
        [tasks, self.network.due(), Some(latest)].into_iter().flatten().min().expect("one").max(now)
    }

    /// Lets time pass until something happens, and lets it happen.
    pub fn step(&mut self, latest: Nanos, release: f64) {
        let next = self.next_moment(latest);
        // Threads wake a little late, or all would be repeated at one moment for ever.
        self.now = next.max(self.now + 1);
        while let Some((to, bytes)) = self.network.arrived(self.now) {
            if self.tasks[to as usize].paused > self.now {
                // It stays in the socket's buffer, which holds a little.
                if self.rng.chance(0.8) {
                    let wait = Faults { delay: self.tasks[to as usize].paused - self.now, ..Faults::NONE };
                    self.network.send(&mut self.rng, self.now, &wait, to, bytes);
                }
                continue;
            }
            self.deliver(to, &bytes);
        }
        for task in 0..self.count() {
            self.take(task, release);
            self.serve(task);
        }
    }

    /// A third party records a datagram, or sends one again.
    pub fn replay(&mut self) {
        if self.rng.chance(0.5)
            && let Some(datagram) = self.network.any()
        {
            self.recorded.push(datagram);
        }
        if !self.recorded.is_empty() {
            let at = self.rng.below(self.recorded.len() as u64) as usize;
            let (to, bytes) = self.recorded[at].clone();
            let to = if self.rng.chance(0.2) { self.any() } else { to };
            self.network.send(&mut self.rng, self.now, &Faults::NONE, to, bytes);
        }
    }

    /// The network is whole, all tasks run, and those that are connected with a process or
    /// incarnation that is no more have learned it.
    pub fn heal(&mut self, faults: Faults) {
        self.faults = faults;
        self.cut.clear();
        for task in &mut self.tasks {
            (task.paused, task.holds) = (self.now, false);
        }
        for _ in 0..3 {
            for (task, peer) in self.pairs() {
                let connection = &self.tasks[task as usize].connections[&peer];
                let other = &self.tasks[peer as usize].connections[&task];
                if connection.state() != State::Opening && connection.theirs() != other.mine() {
                    self.connect(task, peer);
                }
            }
        }
    }

    /// Whether the other tasks have everything that this one has sent.
    pub fn all_have_arrived(&self, from: u32) -> bool {
        self.records.values().all(|record| record.from != from || record.arrived)
    }

    pub fn pairs(&self) -> Vec<(u32, u32)> {
        let count = self.count();
        (0..count).flat_map(|task| (0..count).map(move |peer| (task, peer))).filter(|(a, b)| a != b).collect()
    }

    /// Runs until nothing is to be done, and checks that everything has arrived.
    pub fn settle(&mut self) {
        let start = self.now;
        let limit = start + 120 * SECOND;
        loop {
            let now = self.now;
            let mut connections = self.tasks.iter().flat_map(|task| task.connections.values());
            if self.network.due().is_none() && connections.all(|connection| connection.due(now).is_none()) {
                break;
            }
            assert!(self.now < limit, "seed {}: it does not settle: {:?}", self.seed, self.parameters);
            self.step(limit, 1.0);
        }
        (0..self.count()).for_each(|task| self.take(task, 1.0));
        for (task, peer) in self.pairs() {
            let connection = &self.tasks[task as usize].connections[&peer];
            let other = &self.tasks[peer as usize].connections[&task];
            assert!(connection.is_settled(), "seed {}: {task} to {peer}", self.seed);
            if connection.state() == State::Up && other.state() == State::Up {
                let numbers = (connection.mine(), connection.theirs());
                assert_eq!(numbers, (other.theirs(), other.mine()), "seed {}: {task}, {peer}", self.seed);
                assert_eq!(connection.peer().map(|hello| hello.mine), Some(other.mine()));
            }
        }
        for (id, record) in self.records.iter().filter(|(_, record)| !record.arrived) {
            let present =
                self.tasks[record.from as usize].connections[&record.to].mine() == record.connection;
            let peer = &self.tasks[record.to as usize].connections[&record.from];
            let parted = peer.theirs() != record.connection || peer.state() == State::Opening;
            assert!(!present && parted, "seed {}: packet {id} has not arrived", self.seed);
        }
    }
}

/// The bytes of packet `id`, which begin with it.
fn fill(id: u64, to: &mut [u8]) {
    let mut rng = Rng::stream(3, id);
    for (at, word) in to.chunks_mut(8).enumerate() {
        let bytes = if at == 0 { id } else { rng.next_u64() }.to_le_bytes();
        word.copy_from_slice(&bytes[..word.len()]);
    }
}
