//! The network of a simulation: links that do to datagrams what real ones do, and the devices
//! at their ends.

use crate::abi::LAPI_ERR_CSS_LOAD_FAILED;
use crate::base::process::Process;
use crate::base::rng::Rng;
use crate::base::simulation::{Nanos, World};
use crate::error::{Error, Result};
use crate::transport::Task;
use crate::transport::directory::Directory;
use crate::transport::udp::device::{Datagram, Device};
use crate::transport::udp::seal::{Claim, ENVELOPE};
use crate::wire::datagram::{Header, Hello};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// What a link does.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub lose: f64,
    pub duplicate: f64,
    pub corrupt: f64,
    /// How often a datagram comes again much later.
    pub replay: f64,
    /// How often it takes ten times as long.
    pub late: f64,
    /// The shortest time on the way, and what varies of it.
    pub delay: Nanos,
    pub jitter: Nanos,
    /// How often the device has no room.
    pub full: f64,
    /// How many datagrams a device keeps that were not received.
    pub queue: usize,
}

/// Where datagrams arrive.
struct Port {
    task: Task,
    queue: VecDeque<(SocketAddr, Vec<u8>)>,
    readable: Arc<OwnedFd>,
}

struct State {
    rng: Rng,
    ports: BTreeMap<SocketAddr, Port>,
    /// By task: where its last process receives, and which one it is.
    listed: Vec<Option<(SocketAddr, Process)>>,
    /// The tasks whose last process is known to have died.
    dead: Vec<bool>,
    /// The ways that carry nothing: from a task to another one.
    cut: Vec<(Task, Task)>,
    /// Longer datagrams are lost, unless they are sent in parts.
    takes: usize,
    next_port: u16,
    carried: u64,
}

/// The network.
pub struct Network {
    world: Weak<World>,
    faults: Faults,
    state: Mutex<State>,
}

impl Network {
    pub fn new(world: &Arc<World>, seed: u64, tasks: u32, faults: Faults) -> Arc<Self> {
        let state = State {
            rng: Rng::stream(seed, 3),
            ports: BTreeMap::new(),
            listed: vec![None; tasks as usize],
            dead: vec![false; tasks as usize],
            cut: Vec::new(),
            takes: usize::MAX,
            next_port: 1,
            carried: 0,
        };
        Arc::new(Self { world: Arc::downgrade(world), faults, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A device of a new process of the task, under a new address. Both are listed at once.
    pub fn device(self: &Arc<Self>, task: Task, process: Process) -> SimulatedDevice {
        let state = &mut *self.state();
        let own = SocketAddr::from((Ipv4Addr::LOCALHOST, state.next_port));
        state.next_port += 1;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("a descriptor");
        let readable = Arc::new(event);
        state.ports.insert(own, Port { task, queue: VecDeque::new(), readable: readable.clone() });
        (state.listed[task as usize], state.dead[task as usize]) = (Some((own, process)), false);
        SimulatedDevice { network: self.clone(), task, own, readable }
    }

    /// The addresses, as a task looks them up.
    pub fn directory(self: &Arc<Self>) -> Listing {
        Listing(self.clone())
    }

    /// The processes that are listed.
    pub fn processes(&self) -> Vec<Process> {
        self.state()
            .listed
            .iter()
            .map(|listed| listed.map(|(_, process)| process).unwrap_or_default())
            .collect()
    }

    /// The process of a task has ended: nothing arrives there any more, and nothing leaves. The
    /// launcher reports it or not.
    pub fn end(&self, task: Task, reported: bool) {
        let state = &mut *self.state();
        state.ports.retain(|_, port| port.task != task);
        state.dead[task as usize] = reported;
    }

    /// From now on nothing arrives from `from` at `to`.
    pub fn cut(&self, from: Task, to: Task) {
        self.state().cut.push((from, to));
    }

    /// What [`Self::cut`] has done, undone once.
    pub fn heal(&self, from: Task, to: Task) {
        let cut = &mut self.state().cut;
        if let Some(at) = cut.iter().position(|way| *way == (from, to)) {
            cut.swap_remove(at);
        }
    }

    /// Links take no longer datagrams from now on.
    pub fn narrow(&self, takes: usize) {
        self.state().takes = takes;
    }

    /// How many datagrams were sent.
    pub fn carried(&self) -> u64 {
        self.state().carried
    }

    fn carry(self: &Arc<Self>, from: Task, own: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        let Some(world) = self.world.upgrade() else { return };
        let Faults { lose, duplicate, corrupt, replay, late, delay, jitter, .. } = self.faults;
        let mut copies = Vec::new();
        let logged = wants_datagrams().then(|| name(&bytes));
        {
            let State { rng, ports, cut, carried, .. } = &mut *self.state();
            *carried += 1;
            let Some(port) = ports.get(&to) else { return };
            if !cut.contains(&(from, port.task)) {
                for _ in 0..1 + u32::from(rng.chance(duplicate)) {
                    if rng.chance(lose) {
                        continue;
                    }
                    let mut bytes = bytes.clone();
                    if rng.chance(corrupt) {
                        spoil(rng, &mut bytes);
                    }
                    let times = if rng.chance(late) { 10 } else { 1 };
                    copies.push((delay + times * rng.below(jitter + 1), bytes));
                }
                if rng.chance(replay) {
                    copies.push((rng.below(3_000_000_000), bytes));
                }
            }
        }
        if let Some(name) = logged {
            let times = copies.iter().map(|(time, _)| time / 1000).collect::<Vec<_>>();
            println!("{:.6} {from} to {to}: {name}, arrives after {times:?} us", world.now() as f64 / 1e9);
        }
        for (time, bytes) in copies {
            let network = self.clone();
            world.after(time, move |world| network.arrive(world, own, to, bytes));
        }
    }

    fn arrive(&self, world: &World, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        let task = {
            let state = &mut *self.state();
            let Some(port) = state.ports.get_mut(&to) else { return };
            if port.queue.len() >= self.faults.queue {
                return;
            }
            world.note(bytes.len() as u64);
            port.queue.push_back((from, bytes));
            // It fails only when the count is at its top.
            let _ = rustix::io::write(&port.readable, &1_u64.to_ne_bytes());
            port.task
        };
        world.rouse(task);
    }
}

/// SIMULATION_LOG=datagrams shows each of them.
fn wants_datagrams() -> bool {
    static WANTED: LazyLock<bool> =
        LazyLock::new(|| std::env::var("SIMULATION_LOG").is_ok_and(|what| what == "datagrams"));
    *WANTED
}

/// A datagram, for the log.
fn name(bytes: &[u8]) -> String {
    let Some(claim) = Claim::of(bytes) else { return "?".to_owned() };
    let what = match &bytes[ENVELOPE..] {
        content if claim.number != 0 => {
            format!("{} {:?}", claim.number, Header::decode(content).map(|(header, _)| header))
        }
        content => format!("{:x?}", Hello::decode(content)),
    };
    format!("{:x} {what}", claim.connection)
}

fn spoil(rng: &mut Rng, bytes: &mut Vec<u8>) {
    match rng.below(4) {
        0 => bytes.truncate(rng.below(bytes.len() as u64) as usize),
        1 => bytes.extend_from_slice(&[0; 8]),
        _ => {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << rng.below(8);
        }
    }
}

/// The end of one process.
pub struct SimulatedDevice {
    network: Arc<Network>,
    task: Task,
    own: SocketAddr,
    readable: Arc<OwnedFd>,
}

impl SimulatedDevice {
    fn send_all(&mut self, datagrams: &[Datagram<'_>], in_parts: bool) -> usize {
        let (taken, takes) = {
            let state = &mut *self.network.state();
            if !state.ports.contains_key(&self.own) {
                // The process has ended.
                return datagrams.len();
            }
            match state.rng.chance(self.network.faults.full) {
                true => (state.rng.below(datagrams.len() as u64 + 1) as usize, state.takes),
                false => (datagrams.len(), state.takes),
            }
        };
        for datagram in datagrams[..taken].iter().filter(|own| in_parts || own.bytes.len() <= takes) {
            self.network.carry(self.task, self.own, datagram.to, datagram.bytes.to_vec());
        }
        taken
    }
}

impl Device for SimulatedDevice {
    fn send(&mut self, datagrams: &[Datagram<'_>]) -> usize {
        self.send_all(datagrams, false)
    }

    fn send_in_parts(&mut self, datagram: &Datagram<'_>) -> bool {
        self.send_all(std::slice::from_ref(datagram), true) != 0
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, &mut [u8])) -> usize {
        let mut arrived: Vec<_> = {
            let state = &mut *self.network.state();
            let Some(port) = state.ports.get_mut(&self.own) else { return 0 };
            let some = port.queue.len().min(32);
            port.queue.drain(..some).collect()
        };
        if !arrived.is_empty() && self.network.state().ports[&self.own].queue.is_empty() {
            // Nothing to read means that nothing has arrived since it was read.
            let _ = rustix::io::read(&self.readable, &mut [0; 8]);
        }
        for (from, bytes) in &mut arrived {
            take(*from, bytes);
        }
        arrived.len()
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}

/// What the launcher says of the tasks.
pub struct Listing(Arc<Network>);

impl Directory<SocketAddr> for Listing {
    fn address_of(&mut self, peer: Task) -> Result<SocketAddr> {
        let listed = self.0.state().listed[peer as usize];
        let listed = listed.ok_or_else(|| Error::new(LAPI_ERR_CSS_LOAD_FAILED, "no address"))?;
        Ok(listed.0)
    }

    fn process_of(&mut self, peer: Task) -> Option<Process> {
        self.0.state().listed[peer as usize].map(|(_, process)| process)
    }

    fn has_died(&mut self, peer: Task) -> bool {
        self.0.state().dead[peer as usize]
    }
}
