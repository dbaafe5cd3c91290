//! The ports of this process, and what arrives for them.

mod exit;
mod handlers;
mod inits;
mod lock;
mod slot;

use lock::Locked;
pub use slot::{Next, Open, Pending, Slot};
use slot::{SOON, State};

use crate::abi::{PORTS, Status};
use crate::carrier::Carrier;
use crate::hand::{Hand, Map, Receiving};
use crate::job::Job;
use crate::nodes::Nodes;
use crate::protocol::{self, Data, Output, Port};
use crate::settings::Variables;
use crate::wire::{Header, Kind, MAY_MOVE, NOT_OPEN, answer};
use openlapi::base::random::random;
use openlapi_runtime::console;
use std::cell::Cell;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A look at what has ended while the network used its memory comes after this time.
const LOOK: Duration = Duration::from_micros(200);

/// What gm_init has opened. It stays where it is when gm_finalize has closed it: another thread may
/// be in a call.
pub struct World {
    carrier: Carrier,
    nodes: Arc<Nodes>,
    settings: protocol::Settings,
    slots: [Slot; PORTS],
    started: Instant,
    /// When that was by the clock that is cheap to read, in microseconds.
    started_roughly: u64,
    /// Tells the ports of this job apart from those of others, on one host.
    name: String,
    /// The process exits: what is said now is not said again.
    exits: AtomicBool,
}

static CURRENT: AtomicPtr<World> = AtomicPtr::new(ptr::null_mut());
/// What gm_init has opened; `None` before it, and after gm_finalize.
#[inline]
pub fn current() -> Option<&'static World> {
    // SAFETY: null, or made from a box that is never freed.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// gm_init.
///
/// # Errors
/// [`Status::Failure`]: the job cannot be joined, or a variable is wrong; the reason is written.
pub fn init() -> Result<(), Status> {
    let mut count = inits::count();
    if *count == 0 {
        let failed = |why: String| {
            console::log(format_args!("gm_init: {why}"));
            Status::Failure
        };
        let variables = Variables::read().map_err(failed)?;
        let found = match &variables.map {
            Some(path) => by_hand(path).map_err(failed)?,
            None => by_launcher(variables.by_task).map_err(failed)?,
        };
        exit::prepare();
        let world = Box::leak(Box::new(World::new(found, &variables)));
        CURRENT.store(world, Ordering::Release);
        if let Carrier::Hand(hand) = &world.carrier
            && let Err(error) = hand.start()
        {
            CURRENT.store(ptr::null_mut(), Ordering::Release);
            return Err(failed(format!("the thread that listens: {error}")));
        }
    }
    *count += 1;
    Ok(())
}

/// What carries messages, between which nodes, and the name of the whole.
type Found = (Carrier, Nodes, String);

fn by_launcher(by_task: bool) -> Result<Found, String> {
    let arrived = handlers::arrived as *const () as usize;
    let joined = Job::join(by_task, arrived, gone).map_err(|error| error.to_string())?;
    Ok((Carrier::Job(joined.job), joined.nodes, joined.name))
}

fn by_hand(path: &str) -> Result<Found, String> {
    let map = Map::read_here(path)?;
    // Each process is a node, and a node of the map.
    let tasks: Vec<u32> = (0..map.nodes.len() as u32).collect();
    let hand = Hand::open(map, RECEIVING)?;
    Ok((Carrier::Hand(hand), Nodes::by_lowest(&tasks), String::new()))
}

/// gm_finalize: the last one closes all ports, and leaves the job.
pub fn finalize() {
    let mut count = inits::count();
    *count = count.saturating_sub(1);
    if *count == 0
        && let Some(world) = current()
    {
        world.slots.iter().for_each(|slot| world.close(slot));
        world.carrier.close();
        CURRENT.store(ptr::null_mut(), Ordering::Release);
    }
}

/// A task is gone, as the core reports it.
fn gone(task: u32) {
    if let Some(world) = current() {
        world.lose(task);
    }
}

/// What the sessions by hand report: that a task is gone in two steps, between which its link gets
/// another life.
const RECEIVING: Receiving = Receiving {
    arrived: handlers::arrived_by_hand,
    losing: |task| {
        if let Some(world) = current() {
            world.nodes.lose(task);
        }
    },
    lost: |task| {
        if let Some(world) = current() {
            world.forget(task);
        }
    },
};

impl World {
    fn new((carrier, nodes, name): Found, variables: &Variables) -> Self {
        // What was meant for a process that is gone is none of the one that has taken its place: by
        // hand each begins with other epochs. There is room for a billion above.
        let first = match carrier.may_return() {
            true => u32::from_ne_bytes(random()) >> 2,
            false => 0,
        };
        let epochs = Arc::new(AtomicU32::new(first));
        let Variables { timeout: patience, check, .. } = *variables;
        let counts_all = carrier.may_return();
        let settings = protocol::Settings { patience, check, epochs, counts_all };
        let slots = std::array::from_fn(|number| Slot::new(number as u8));
        let (started, started_roughly) = (Instant::now(), roughly());
        let (nodes, exits) = (Arc::new(nodes), AtomicBool::new(false));
        Self { carrier, nodes, settings, slots, started, started_roughly, name, exits }
    }

    /// The place of a port.
    pub fn slot(&self, number: usize) -> Option<&Slot> {
        self.slots.get(number)
    }

    /// The carrier.
    pub fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// Who is where.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Microseconds since gm_init.
    #[inline]
    pub fn now(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }

    /// Microseconds since gm_init, some milliseconds late: for what lasts a second.
    #[inline]
    pub fn roughly_now(&self) -> u64 {
        roughly().saturating_sub(self.started_roughly)
    }

    /// Such a time on the clock.
    pub fn instant(&self, at: u64) -> Instant {
        self.started + Duration::from_micros(at)
    }

    /// Opens a port of this node.
    ///
    /// # Errors
    /// [`Status::Busy`]: a process of the node has it.
    pub fn open(&self, slot: &Slot) -> Result<(), Status> {
        let claim = self.claim(slot.number())?;
        slot.set_claim(claim.as_ref());
        let early = {
            let mut state = slot.lock();
            let early = match &mut *state {
                State::Open(_) => return Err(Status::Busy),
                State::Never { early } => std::mem::take(early),
                State::Closed => Vec::new(),
            };
            let mut port = Port::new(slot.number(), self.nodes.clone(), self.settings.clone());
            if early.iter().any(|(_, header)| header.kind != Kind::Where) {
                port.tell_at_once();
            }
            *state = State::Open(Box::new(Open::new(port, claim)));
            early
        };
        for (task, header) in early {
            let header = match header.kind {
                Kind::Where => header.reply(Kind::Answer, answer::HERE),
                _ => header.reply(Kind::Go, 0),
            };
            self.post_alone(task, header);
        }
        Ok(())
    }

    /// A name that one process of the host has at a time, where several are on a node. A forked
    /// child closes its copy of the socket.
    fn claim(&self, port: u8) -> Result<Option<UnixListener>, Status> {
        let node = self.nodes.node(self.carrier.task());
        if self.nodes.tasks(node.into()).len() == 1 {
            return Ok(None);
        }
        let name = format!("openlapi gm {} {node} {port}", self.name);
        let bound = SocketAddr::from_abstract_name(name).and_then(|name| UnixListener::bind_addr(&name));
        match bound {
            Ok(claim) => Ok(Some(claim)),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(Status::Busy),
            Err(error) => {
                console::log(format_args!("gm_open: port {port}: {error}"));
                Err(Status::Failure)
            }
        }
    }

    /// Closes a port: what arrives is waited for, so that no memory of the program is used any
    /// more.
    pub fn close(&self, slot: &Slot) {
        if self.with(slot, |open| open.port.close()).is_none() {
            return;
        }
        // Another thread may open the port as soon as it is closed.
        let is_closed = Cell::new(false);
        // In one turn of the lock: between two, data for a get could begin to arrive.
        let close_if = |may_close: bool| {
            if is_closed.get() {
                return true;
            }
            let mut state = slot.lock();
            let closes = match &*state {
                State::Open(open) => may_close || open.port.is_quiet(),
                _ => return true,
            };
            if closes {
                slot.set_claim(None);
                *state = State::Closed;
                slot.set_ready(false);
                is_closed.set(true);
            }
            closes
        };
        while !close_if(!self.carrier.is_there()) {
            self.carrier.wait(Some(Instant::now() + LOOK), true, || close_if(false));
        }
    }

    /// Changes a port, and sends what follows from that. `None`: it is not open.
    #[inline]
    pub fn with<T>(&self, slot: &Slot, change: impl FnOnce(&mut Open) -> T) -> Option<T> {
        self.change(slot, slot.lock(), change)
    }

    #[inline]
    fn change<T>(
        &self,
        slot: &Slot,
        state: Locked<'_, State>,
        change: impl FnOnce(&mut Open) -> T,
    ) -> Option<T> {
        let (value, output) = {
            let mut state = state;
            let State::Open(open) = &mut *state else { return None };
            let value = change(open);
            slot.set_ready(open.port.peek().is_some());
            slot.set_due(open.due());
            (value, if open.port.posting { None } else { self.take(&mut open.port) })
        };
        if let Some(output) = output {
            self.pump(slot, output);
        }
        Some(value)
    }

    /// The next event of a port, after one round of progress at most; `None` when there is none.
    #[inline]
    pub fn next_event(&self, slot: &Slot) -> Option<Next> {
        self.poll(slot);
        self.with(slot, |open| open.next(|exact| if exact { self.now() } else { self.roughly_now() }))?
    }

    /// The next event, which stays.
    pub fn peek(&self, slot: &Slot) -> Option<Next> {
        self.poll(slot);
        self.with(slot, |open| open.peek(|exact| if exact { self.now() } else { self.roughly_now() }))?
    }

    /// One round of progress, unless there is an event.
    #[inline]
    fn poll(&self, slot: &Slot) {
        if !slot.is_ready() {
            slot.look(|| self.carrier.poll());
        }
    }

    /// Waits for the next event of a port. `spins`: it polls first.
    pub fn wait_for_event(&self, slot: &Slot, spins: bool) -> Option<Next> {
        loop {
            self.poll(slot);
            if let Some(next) = self.with(slot, |open| open.next(|_| self.now()))? {
                return Some(next);
            }
            let (deadline, due) = self.with(slot, |open| {
                open.port.tell();
                (open.deadline(), open.due())
            })?;
            let soon = (due == SOON).then(|| Instant::now() + LOOK);
            let deadline = deadline.map(|at| self.instant(at)).into_iter().chain(soon).min();
            // What comes to be done earlier meanwhile, by what arrives, is noticed.
            let is_over = || slot.is_ready() || slot.due() < due;
            slot.look(|| self.carrier.wait(deadline, spins, is_over));
            // The session has ended by a failure: nothing arrives any more.
            if !self.carrier.is_there() {
                return None;
            }
        }
    }

    /// What a port has for the network, and the life of the process that it is for: called with
    /// the port's lock. A task counts as lost before its link gets another life, and until all
    /// ports have forgotten the one before: so no message gets a life that it was not made in.
    #[inline]
    fn take(&self, port: &mut Port) -> Option<(Output, u64)> {
        loop {
            let output = port.post()?;
            let life = self.carrier.life(output.task);
            if !self.nodes.is_lost(output.task) {
                return Some((output, life));
            }
            output.data.free();
        }
    }

    /// Gives what a port has for the network to it. One thread at a time does this, so that a
    /// connection's messages leave in their order.
    fn pump(&self, slot: &Slot, first: (Output, u64)) {
        let mut unreachable = Vec::new();
        let mut next = Some(first);
        while let Some((output, life)) = next {
            #[cfg(test)]
            tests::before_post();
            // No reply follows, or, from a task that has left in order, none ever.
            let watched = matches!(output.header.kind, Kind::Ping | Kind::Where | Kind::Go)
                || self.exits.load(Ordering::Relaxed);
            if self.carrier.post(&output, life, watched).is_err() {
                unreachable.push(output.task);
            }
            next = match &mut *slot.lock() {
                State::Open(open) => self.take(&mut open.port),
                _ => None,
            };
        }
        unreachable.into_iter().for_each(|task| self.lose(task));
    }

    /// A message that belongs to no open port of this process.
    fn post_alone(&self, task: u32, header: Header) {
        // A task that is gone needs no reply.
        let life = self.carrier.life(task);
        let _ = self.carrier.post(&Output { task, header, data: Data::None }, life, false);
    }

    /// A task is gone: what waits for it ends.
    fn lose(&self, task: u32) {
        if self.nodes.lose(task) {
            self.forget(task);
        }
    }

    /// Ends what waits for a task that counts as lost.
    fn forget(&self, task: u32) {
        for slot in &self.slots {
            if let State::Never { early } = &mut *slot.lock() {
                early.retain(|(from, _)| *from != task);
            }
            self.with(slot, |open| open.port.lost(self.roughly_now(), task));
        }
        if self.carrier.may_return() {
            self.nodes.find(task);
        }
        self.carrier.wake();
    }

    /// A message that is no data has come.
    fn replied(&self, from: u32, header: &Header) {
        let Some(slot) = self.slot(header.to_port.into()) else { return };
        if header.word.is_some() {
            self.with(slot, |open| open.port.hear(self.roughly_now(), header));
        }
        match header.kind {
            Kind::Delivered => {}
            Kind::Ping => {
                self.with(slot, |open| open.port.tell());
            }
            Kind::Where => self.asked(slot, from, header),
            _ => {
                let known = self.with(slot, |open| open.port.replied(self.roughly_now(), from, header));
                // The target keeps a buffer for a port that needs it no more.
                if known != Some(true) && header.kind == Kind::Go {
                    self.post_alone(from, header.reply(Kind::Decline, 0));
                }
            }
        }
    }

    fn asked(&self, slot: &Slot, from: u32, header: &Header) {
        let code = match &mut *slot.lock() {
            State::Open(_) => answer::HERE,
            State::Closed => answer::CLOSED,
            State::Never { early } => {
                note(early, from, header);
                answer::NOT_YET
            }
        };
        self.post_alone(from, header.reply(Kind::Answer, code));
    }

    /// Data has come for a port that is not open; `false`: it has been opened since.
    fn not_open(&self, slot: &Slot, from: u32, header: &Header) -> bool {
        let waits = match &mut *slot.lock() {
            State::Open(_) => return false,
            State::Never { early } if matches!(header.kind, Kind::Send | Kind::Put) => {
                note(early, from, header);
                true
            }
            _ => false,
        };
        let (kind, code) = match header.kind {
            Kind::Get => (Kind::NoData, Status::SendTargetPortClosed as u8),
            Kind::Send | Kind::Put if waits => (Kind::Wait, NOT_OPEN),
            Kind::Send | Kind::Put => (Kind::Refused, Status::SendTargetPortClosed as u8),
            Kind::Datagram if header.code == MAY_MOVE => (Kind::Refused, Status::SendTargetPortClosed as u8),
            _ => return true,
        };
        self.post_alone(from, header.reply(kind, code));
        true
    }
}

/// Microseconds by the clock of the kernel's ticks; not by rustix, which fails under valgrind.
#[inline]
fn roughly() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives during the call, which cannot fail for a clock that every Linux
    // has.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut now) };
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}

/// Notes who gets a message when a port opens: one message for each connection, the first that was
/// sent in its last round.
fn note(early: &mut Vec<(u32, Header)>, from: u32, header: &Header) {
    let connection = |header: &Header| (header.from_port, header.priority, header.kind == Kind::Where);
    let known =
        early.iter_mut().find(|(task, known)| *task == from && connection(known) == connection(header));
    match known {
        Some((_, known)) => {
            let age = |header: &Header| (header.epoch, header.round);
            if age(header) > age(known) || age(header) == age(known) && header.seq < known.seq {
                *known = *header;
            }
        }
        None => early.push((from, *header)),
    }
}

#[cfg(test)]
mod tests;
