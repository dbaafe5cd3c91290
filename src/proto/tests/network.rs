//! A network in which packets and signals overtake each other and links have no room.

use crate::base::rng::Rng;
use crate::memory::bytes::{self, Piece, pad8};
use crate::proto::Transmit;
use crate::proto::outbox::{Outbox, SendDone};
use crate::wire::frame::{Outgoing, SendOutcome, Task, Ticket};
use crate::wire::packet::Head;
use std::collections::{HashMap, HashSet};

/// A packet on its way.
#[derive(Debug)]
pub struct Packet {
    pub src: Task,
    pub dst: Task,
    pub head: Head,
    body: Box<[u64]>,
    len: usize,
    serial: u64,
    /// The second piece, which is still its sender's.
    lent: Option<Piece>,
}

impl Packet {
    /// The packet's body, 8-byte aligned.
    pub fn body(&self) -> Piece {
        Piece { ptr: self.body.as_ptr().cast(), len: self.len }
    }

    /// The packet's body as a slice.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the body has `len` bytes.
        unsafe { std::slice::from_raw_parts(self.body.as_ptr().cast(), self.len) }
    }
}

/// All packets on their way.
pub struct Network {
    flying: Vec<Packet>,
    /// How many fly between two tasks.
    between: HashMap<(Task, Task), usize>,
    /// How many may; not counted when there is no limit.
    capacity: usize,
    /// The probability that a send finds no room although there is room.
    refuse: f64,
    /// Packets between two tasks keep their order.
    ordered: bool,
    /// The probability that a packet is taken when it may be.
    take: f64,
    /// Taken packets that have arrived, by their senders.
    completed: Vec<(Task, Ticket)>,
    /// The probability that a link can give a signal.
    signal: f64,
    /// Signals on their way: from, to and number.
    signals: Vec<(Task, Task, u32)>,
    /// The last even and the last odd number that have arrived, by sender and receiver.
    given: HashMap<(Task, Task), [Option<u32>; 2]>,
    /// Pairs of tasks that have parted, in both orders.
    apart: HashSet<(Task, Task)>,
    rng: Rng,
    serial: u64,
}

impl Network {
    /// A network whose moods come from the seed.
    pub fn new(seed: u64, capacity: usize, refuse: f64, ordered: bool) -> Self {
        Self {
            flying: Vec::new(),
            between: HashMap::new(),
            capacity,
            refuse,
            ordered,
            take: 0.5,
            completed: Vec::new(),
            signal: 0.0,
            signals: Vec::new(),
            given: HashMap::new(),
            apart: HashSet::new(),
            rng: Rng::stream(seed, 0x006e_6574),
            serial: 0,
        }
    }

    /// A network whose links can give signals with this probability; 1: whenever they want.
    pub fn with_signals(self, signal: f64) -> Self {
        Self { signal, ..self }
    }

    /// A signal arrives now, if there is any, and if it is not a packet's turn. Returns the task
    /// that it is for.
    pub fn signal_arrives(&mut self) -> Option<Task> {
        if self.signals.is_empty() || !self.flying.is_empty() && self.rng.chance(0.5) {
            return None;
        }
        let (src, dst, number) = self.signals[self.rng.below(self.signals.len() as u64) as usize];
        // Of those in one place the first one comes first.
        let same = |&(from, to, other): &(Task, Task, u32)| (from, to, other & 1) == (src, dst, number & 1);
        let at = self.signals.iter().position(same)?;
        let (.., number) = self.signals.remove(at);
        self.given.entry((src, dst)).or_default()[number as usize & 1] = Some(number);
        Some(dst)
    }

    /// Two tasks part: what is under way between them, and the numbers that they have given each
    /// other, are gone. Until they join again nothing finds room.
    pub fn part(&mut self, one: Task, other: Task) {
        let concerns = |src: Task, dst: Task| (src, dst) == (one, other) || (dst, src) == (one, other);
        self.flying.retain(|packet| !concerns(packet.src, packet.dst));
        self.between.retain(|&(src, dst), _| !concerns(src, dst));
        self.signals.retain(|&(src, dst, _)| !concerns(src, dst));
        self.given.retain(|&(src, dst), _| !concerns(src, dst));
        self.apart.extend([(one, other), (other, one)]);
    }

    /// Two tasks that have parted are connected again.
    pub fn join(&mut self, one: Task, other: Task) {
        self.apart.remove(&(one, other));
        self.apart.remove(&(other, one));
    }

    /// The way out of a task.
    pub fn link(&mut self, src: Task) -> NetworkLink<'_> {
        NetworkLink { network: self, src }
    }

    /// How many packets and signals are on their way.
    pub fn flying(&self) -> usize {
        self.flying.len() + self.signals.len()
    }

    /// Whether a packet or a signal from `src` is on its way to `dst`.
    pub fn flies(&self, src: Task, dst: Task) -> bool {
        self.flying.iter().any(|packet| (packet.src, packet.dst) == (src, dst))
            || self.signals.iter().any(|&(from, to, _)| (from, to) == (src, dst))
    }

    /// A packet that arrives now: any of them or, with order, the first between its two tasks.
    pub fn arrival(&mut self) -> Option<Packet> {
        if self.flying.is_empty() {
            return None;
        }
        let mut at = self.rng.below(self.flying.len() as u64) as usize;
        if self.ordered {
            let (src, dst) = (self.flying[at].src, self.flying[at].dst);
            let same = |packet: &Packet| (packet.src, packet.dst) == (src, dst);
            let first = (0..self.flying.len()).filter(|&at| same(&self.flying[at]));
            at = first.min_by_key(|&at| self.flying[at].serial).unwrap_or(at);
        }
        let mut packet = self.flying.swap_remove(at);
        if let Some(lent) = packet.lent {
            let to = packet.body.as_mut_ptr().cast::<u8>();
            // SAFETY: the sender leaves its memory alone until the report below; the piece
            // ends the body.
            unsafe { bytes::copy(lent, to.add(packet.len - lent.len)) };
            self.completed.push((packet.src, Ticket(packet.serial)));
        }
        if let Some(between) = self.between.get_mut(&(packet.src, packet.dst)) {
            *between -= 1;
        }
        Some(packet)
    }
}

/// One task's way out.
pub struct NetworkLink<'a> {
    network: &'a mut Network,
    src: Task,
}

impl Transmit for NetworkLink<'_> {
    unsafe fn send(&mut self, dst: Task, packet: &Outgoing<'_>) -> SendOutcome {
        let network = &mut *self.network;
        if network.rng.chance(network.refuse) || network.apart.contains(&(self.src, dst)) {
            return SendOutcome::NoRoom;
        }
        if network.capacity != usize::MAX {
            let between = network.between.entry((self.src, dst)).or_default();
            if *between == network.capacity {
                return SendOutcome::NoRoom;
            }
            *between += 1;
        }
        network.serial += 1;
        // Of a taken packet the second piece is read when it arrives: what the sender does to it
        // before that shows.
        let lent = packet.lendable().filter(|_| network.rng.chance(network.take));
        // SAFETY: the caller's promise.
        let body = unsafe { gather(packet) };
        let head = Head::decode(packet.head).expect("a head that was encoded");
        network.flying.push(Packet {
            src: self.src,
            dst,
            head,
            body,
            len: packet.body_len(),
            serial: network.serial,
            lent,
        });
        match lent {
            Some(_) => SendOutcome::Taken(Ticket(network.serial)),
            None => SendOutcome::Sent,
        }
    }

    fn signal(&mut self, dst: Task, number: u32) -> bool {
        let network = &mut *self.network;
        let can = network.rng.chance(network.signal) && !network.apart.contains(&(self.src, dst));
        if can {
            network.signals.push((self.src, dst, number));
        }
        can
    }

    fn signalled(&mut self, from: Task, number: u32) -> bool {
        let given = self.network.given.get(&(from, self.src));
        given.is_some_and(|given| given[number as usize & 1] == Some(number))
    }
}

/// Sends what waits, after what the link has to report.
pub fn pump(outbox: &mut Outbox, mut link: NetworkLink<'_>, finished: &mut Vec<SendDone>) {
    let src = link.src;
    let (mine, others) = link.network.completed.drain(..).partition(|(of, _)| *of == src);
    link.network.completed = others;
    let mine: Vec<(Task, Ticket)> = mine;
    mine.into_iter().for_each(|(_, ticket)| outbox.free(ticket, finished));
    outbox.pump(&mut link, finished);
}

/// The body as it arrives.
///
/// # Safety
/// Both pieces must be readable.
pub unsafe fn gather(packet: &Outgoing<'_>) -> Box<[u64]> {
    let mut body = vec![0u64; pad8(packet.body_len()) / 8].into_boxed_slice();
    let to = body.as_mut_ptr().cast::<u8>();
    // SAFETY: there is room for both pieces, which the caller vouches for.
    unsafe {
        bytes::copy(packet.first, to);
        packet.second.copy_to(to.wrapping_add(pad8(packet.first.len)));
    }
    body
}
