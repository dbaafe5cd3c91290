//! A port: its connections, its buffers, and the events of the program.

mod requests;
mod telling;

use super::classes::{Buffer, Classes};
use super::incoming::{self, Incoming};
use super::index::Index;
use super::messages::{Message, Messages};
use super::outgoing::{self, Outgoing};
use super::registered::{Registered, is_memory};
use super::types::{Data, Event, Output, Target, Verdict};
use super::words::Words;
use crate::abi::{RECEIVE_TOKENS, SEND_TOKENS, Status};
use crate::nodes::Nodes;
use crate::wire::{Header, Kind, MAY_MOVE};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// The token of a get's data, in whose lower half is the place of the request.
const GET: u64 = 1 << 56;
/// The token of a datagram, in whose lower half is its number.
const DATAGRAM: u64 = 1 << 57;
/// What of the request's life stands in the upper half.
const LIFE: u32 = (1 << 24) - 1;

/// What holds for all ports of a process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a message waits for a buffer at most, in microseconds.
    pub patience: u64,
    /// LAPI_GM_CHECK: only registered memory is used.
    pub check: bool,
    /// The last epoch of a connection.
    pub epochs: Arc<AtomicU32>,
    /// The network counts all memory that it does not use any more; otherwise not what was for a
    /// task that is gone.
    pub counts_all: bool,
}

/// An open port.
pub struct Port {
    number: u8,
    nodes: Arc<Nodes>,
    settings: Settings,
    messages: Messages,
    classes: Classes,
    outgoing: Vec<Outgoing>,
    outgoing_by: Index,
    incoming: Vec<Incoming>,
    incoming_by: Index,
    events: VecDeque<Event>,
    outputs: VecDeque<Output>,
    words: Words,
    /// How often in a row the program has looked for an event, and there was none.
    idle: u32,
    /// When which outgoing connection is to be ticked, the next one first. A connection that has
    /// asked for an earlier time since leaves its later one here.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    /// Outgoing connections of which something has ended whose memory the network still uses.
    lagging: VecDeque<u32>,
    closing: bool,
    acceptable: [u64; 2],
    remote_access: bool,
    registered: Registered,
    /// Data for gets of others, by task: how often some was given to the network, and how often it
    /// was free again.
    served: HashMap<u32, (i32, Box<AtomicI32>)>,
    /// Datagrams whose data is arriving, by number: the task, the buffer's class, what follows.
    datagrams: HashMap<u32, (u32, u8, Event)>,
    last_datagram: u32,
    /// How many buffers the program has provided and not got back.
    provided: usize,
    /// A thread is giving the outputs to the network.
    pub posting: bool,
}

impl Port {
    /// A port that was just opened.
    pub fn new(number: u8, nodes: Arc<Nodes>, settings: Settings) -> Self {
        Self {
            number,
            nodes,
            settings,
            messages: Messages::new(),
            classes: Classes::new(),
            outgoing: Vec::new(),
            outgoing_by: Index::default(),
            incoming: Vec::new(),
            incoming_by: Index::default(),
            events: VecDeque::with_capacity(2 * SEND_TOKENS + RECEIVE_TOKENS),
            outputs: VecDeque::with_capacity(2 * SEND_TOKENS + RECEIVE_TOKENS),
            words: Words::default(),
            idle: 0,
            timers: BinaryHeap::with_capacity(SEND_TOKENS),
            lagging: VecDeque::new(),
            closing: false,
            acceptable: [u64::MAX; 2],
            remote_access: false,
            registered: Registered::default(),
            served: HashMap::new(),
            datagrams: HashMap::new(),
            last_datagram: 0,
            provided: 0,
            posting: false,
        }
    }

    /// One buffer more; `false`: the port has as many as it takes.
    pub fn provide(&mut self, address: usize, size: u8, priority: u8, tag: u8) -> bool {
        if self.provided == RECEIVE_TOKENS {
            return false;
        }
        self.provided += 1;
        let class = Classes::of(size, priority);
        self.classes.provide(class, Buffer { address, tag });
        self.promise(class);
        true
    }

    /// Which sizes are taken.
    pub fn set_acceptable(&mut self, priority: u8, mask: u64) {
        self.acceptable[usize::from(priority)] = mask;
    }

    /// Others may put and get from now on.
    pub fn allow_remote_access(&mut self) {
        self.remote_access = true;
    }

    /// The registered memory.
    pub fn registered(&mut self) -> &mut Registered {
        &mut self.registered
    }

    /// A message has come. The data of what is taken goes where the verdict says.
    pub fn arrived(&mut self, from: u32, header: &Header) -> Verdict {
        if self.closing && header.kind != Kind::Data {
            return self.refuse(from, header, Status::SendTargetPortClosed);
        }
        match header.kind {
            Kind::Send | Kind::Put => {
                let key =
                    u64::from(from) << 8 | u64::from(header.from_port) << 1 | u64::from(header.priority);
                let count = self.incoming.len() as u32;
                let at = *self.incoming_by.entry(key).or_insert(count);
                if at == count {
                    self.incoming.push(Incoming::new(from, at));
                }
                let (connection, mut around) = self.inward(at);
                let promised = connection.promised_class();
                let verdict = connection.offered(&mut around, header);
                if let Some(class) = promised {
                    // The connection may have left its promise for the next one.
                    self.promise(class);
                }
                verdict
            }
            Kind::Datagram => self.datagram(from, header),
            Kind::Get => self.serve(from, header),
            Kind::Data => match self.asked_by(from, header) {
                Some((_, message)) if message.awaits(header.length) => {
                    message.arriving = true;
                    let token = GET | u64::from(message.life & LIFE) << 32 | u64::from(header.index);
                    Verdict::Into { address: message.request.address, token }
                }
                _ => Verdict::Bury,
            },
            _ => Verdict::Bury,
        }
    }

    fn refuse(&mut self, from: u32, header: &Header, status: Status) -> Verdict {
        if header.kind != Kind::Datagram || header.code == MAY_MOVE {
            let kind = if header.kind == Kind::Get { Kind::NoData } else { Kind::Refused };
            let header = header.reply(kind, status as u8);
            self.outputs.push_back(Output { task: from, header, data: Data::None });
        }
        Verdict::Bury
    }

    fn datagram(&mut self, from: u32, header: &Header) -> Verdict {
        let is_taken = self.acceptable[usize::from(header.priority)] >> header.size & 1 == 1;
        let fits = header.length <= crate::abi::capacity(header.size);
        let class = Classes::of(header.size, header.priority);
        let buffer = if is_taken && fits { self.classes.take(class) } else { None };
        let Some(Buffer { address, tag }) = buffer else { return Verdict::Bury };
        self.last_datagram = self.last_datagram.wrapping_add(1);
        let event = Event::Received {
            buffer: address,
            tag,
            size: header.size,
            priority: header.priority,
            length: header.length as u32,
            node: self.nodes.node(from),
            port: header.from_port,
        };
        self.datagrams.insert(self.last_datagram, (from, class, event));
        Verdict::Into { address, token: DATAGRAM | u64::from(self.last_datagram) }
    }

    fn serve(&mut self, from: u32, header: &Header) -> Verdict {
        let Header { address, length, .. } = *header;
        if !self.remote_access {
            return self.refuse(from, header, Status::SendRejected);
        }
        if !is_memory(address as usize, length) {
            return self.refuse(from, header, Status::MemoryFault);
        }
        if self.settings.check && !self.registered.has(address as usize, length as usize) {
            return self.refuse(from, header, Status::MemoryFault);
        }
        let (served, free) = self.served.entry(from).or_default();
        *served += 1;
        let counter = free.as_ptr().expose_provenance();
        let header = Header { length, ..header.reply(Kind::Data, 0) };
        let data = Data::Memory { address: address as usize, length, counter };
        self.outputs.push_back(Output { task: from, header, data });
        Verdict::Bury
    }

    /// The data that a verdict has given a place is there.
    pub fn complete(&mut self, now: u64, token: u64) {
        if token & DATAGRAM != 0 {
            if let Some((_, _, event)) = self.datagrams.remove(&(token as u32)) {
                self.events.push_back(event);
            }
            return;
        }
        if token & GET == 0 {
            let at = (token >> 32) as u32;
            if (at as usize) < self.incoming.len() {
                let (connection, mut around) = self.inward(at);
                connection.complete(&mut around, token as u32);
                self.tell_of_many();
            }
            return;
        }
        let message = self.messages.at(token as u32);
        if u64::from(message.life & LIFE) << 32 != token & u64::from(LIFE) << 32 {
            // It has ended meanwhile.
            return;
        }
        message.arriving = false;
        message.delivered = message.status.is_none();
        let target = message.request.target;
        let at = self.connection(target, Kind::Get);
        let (connection, mut around) = self.out(at, now);
        connection.advance(&mut around);
    }

    /// A reply has come; `false`: to a port that was open here before.
    pub fn replied(&mut self, now: u64, from: u32, header: &Header) -> bool {
        if header.kind == Kind::Decline {
            let key = u64::from(from) << 8 | u64::from(header.from_port) << 1 | u64::from(header.priority);
            if let Some(&at) = self.incoming_by.get(&key) {
                let (connection, mut around) = self.inward(at);
                connection.declined(&mut around, header);
                self.promise_all();
            }
            return true;
        }
        let mut index = header.index;
        if header.kind == Kind::NoData {
            let Some((at, message)) = self.asked_by(from, header) else { return true };
            message.status.get_or_insert(Status::of_peer(header.code));
            index = at;
        }
        let is_known = (index as usize) < self.outgoing.len();
        if is_known {
            let (connection, mut around) = self.out(index, now);
            connection.replied(&mut around, from, header);
        }
        is_known
    }

    /// The get that this answers, and the index of its connection. Places and lives of messages are
    /// the same in each opening of a port; the epochs of connections are not.
    fn asked_by(&mut self, from: u32, header: &Header) -> Option<(u32, &mut Message)> {
        let message = self.messages.known(header.index, header.round)?;
        let at = *self.outgoing_by.get(&key(message.request.target, Kind::Get))?;
        let has_asked = self.outgoing[at as usize].has_asked(from, header.epoch);
        (has_asked && message.request.kind == Kind::Get).then_some((at, message))
    }

    /// A task is gone.
    pub fn lost(&mut self, now: u64, task: u32) {
        self.words.forget(task);
        // What was meant for it is not for the process that takes its place.
        self.outputs.retain(|output| {
            let is_for_others = output.task != task;
            if !is_for_others {
                output.data.free();
            }
            is_for_others
        });
        for at in 0..self.incoming.len() as u32 {
            if self.incoming[at as usize].from() == task {
                let (connection, mut around) = self.inward(at);
                for (class, buffer) in connection.lost(&mut around) {
                    self.classes.give_back(class, buffer);
                }
            }
        }
        for (_, (_, class, event)) in self.datagrams.extract_if(|_, (from, ..)| *from == task) {
            if let Event::Received { buffer: address, tag, .. } = event {
                self.classes.give_back(class, Buffer { address, tag });
            }
        }
        self.promise_all();
        for at in 0..self.outgoing.len() as u32 {
            let (connection, mut around) = self.out(at, now);
            connection.lost(&mut around, task);
        }
        if let Some((served, free)) = self.served.get_mut(&task).filter(|_| !self.settings.counts_all) {
            // The network uses none of it any more, and counts no more.
            *served = 0;
            free.store(0, Ordering::Relaxed);
        }
    }

    /// Looks at the deadlines, and at what had ended while the network used its memory.
    pub fn tick(&mut self, now: u64) {
        while let Some(&Reverse((due, at))) = self.timers.peek().filter(|next| next.0.0 <= now) {
            self.timers.pop();
            let (connection, mut around) = self.out(at, now);
            if connection.wakes(due) {
                connection.tick(&mut around);
            }
        }
        for _ in 0..self.lagging.len() {
            let Some(at) = self.lagging.pop_front() else { break };
            let (connection, mut around) = self.out(at, now);
            connection.look_again(&mut around);
        }
    }

    /// Until when nothing is to be done unless something arrives.
    pub fn deadline(&self) -> Option<u64> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Whether something has ended whose memory the network still uses.
    pub fn lags(&self) -> bool {
        !self.lagging.is_empty()
    }

    /// Whether the network has been given all that there was for it.
    pub fn has_given_all(&self) -> bool {
        self.outputs.is_empty() && !self.posting
    }

    /// The next event of the program.
    pub fn next_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.idle = 0;
        self.provided -= usize::from(matches!(event, Event::Received { .. }));
        Some(event)
    }

    /// The next event, which stays.
    pub fn peek(&self) -> Option<&Event> {
        self.events.front()
    }

    /// Nothing is taken and nothing sent any more, and senders that wait get a refusal.
    pub fn close(&mut self) {
        self.closing = true;
        self.tell();
        for at in 0..self.incoming.len() as u32 {
            let (connection, mut around) = self.inward(at);
            connection.close(&mut around);
        }
    }

    /// Whether the network uses no memory of the program for this port.
    pub fn is_quiet(&self) -> bool {
        self.has_given_all()
            && self.datagrams.is_empty()
            && self.incoming.iter().all(|connection| connection.arriving() == 0)
            && !self.messages.are_in_use()
            && self.served.values().all(|(served, free)| free.load(Ordering::Acquire) >= *served)
    }

    /// The state of a connection, for a test that fails.
    #[cfg(test)]
    pub fn describe(&self, target: Target) -> String {
        let at = self.known(target).map(|at| &self.outgoing[at as usize]);
        let from: Vec<&Incoming> = self.incoming.iter().collect();
        format!("{at:?}\n{from:?}")
    }

    fn promise(&mut self, class: u8) {
        while let Some(at) = self.classes.promise(class) {
            let (connection, mut around) = self.inward(at);
            connection.promised(&mut around);
        }
    }

    fn promise_all(&mut self) {
        (0..crate::abi::SIZES * 2).for_each(|class| self.promise(class));
    }

    fn known(&self, target: Target) -> Option<u32> {
        self.outgoing_by.get(&key(target, Kind::Send)).copied()
    }

    /// The connection to a port.
    fn connection(&mut self, target: Target, kind: Kind) -> u32 {
        let count = self.outgoing.len() as u32;
        let at = *self.outgoing_by.entry(key(target, kind)).or_insert(count);
        if at == count {
            let epoch = self.settings.epochs.fetch_add(1, Ordering::Relaxed) + 1;
            self.outgoing.push(Outgoing::new(target, kind, at, epoch));
        }
        at
    }

    fn out(&mut self, at: u32, now: u64) -> (&mut Outgoing, outgoing::Around<'_>) {
        let around = outgoing::Around {
            messages: &mut self.messages,
            events: &mut self.events,
            outputs: &mut self.outputs,
            nodes: &self.nodes,
            port: self.number,
            now,
            patience: self.settings.patience,
            timers: &mut self.timers,
            epochs: &self.settings.epochs,
            closing: self.closing,
            lagging: &mut self.lagging,
            counts_all: self.settings.counts_all,
        };
        (&mut self.outgoing[at as usize], around)
    }

    fn inward(&mut self, at: u32) -> (&mut Incoming, incoming::Around<'_>) {
        let around = incoming::Around {
            classes: &mut self.classes,
            events: &mut self.events,
            outputs: &mut self.outputs,
            words: &mut self.words,
            nodes: &self.nodes,
            acceptable: self.acceptable,
            remote_access: self.remote_access,
            registered: self.settings.check.then_some(&self.registered),
        };
        (&mut self.incoming[at as usize], around)
    }
}

fn key(target: Target, kind: Kind) -> u64 {
    let Target { node, port, priority } = target;
    u64::from(node) << 32 | u64::from(port) << 16 | u64::from(priority) << 8 | kind as u64
}
