//! Processes that no launcher has started: a session between each two that meet.
//!
//! Each process is a node of a map, and listens there. One thread for each peer opens a session at
//! first contact and sends, in order; one for each session takes what arrives.

mod map;

pub use map::Map;

use crate::protocol::{Data, Output};
use map::{Address, Node};
use openlapi_runtime::{console, environment};
use openlapi_session::{Error, Listener, Session, Settings, connect_tcp, connect_unix, key_file};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a process tries to open a session.
const PATIENCE: Duration = Duration::from_secs(5);
/// A listener looks this often whether the process leaves.
const LOOK: Duration = Duration::from_millis(50);
/// A thread that waits for an event looks this often by itself.
const NAP: Duration = Duration::from_millis(20);
/// The header of the first message of the side that has connected; its number follows.
const HELLO: &[u8] = b"GM node";
/// The longest message: more than any size holds.
const LONGEST: usize = 1 << 32;

/// What comes of peers.
#[derive(Clone, Copy)]
pub struct Receiving {
    /// A message of a task: header and data.
    pub arrived: fn(u32, &[u8], &[u8]),
    /// A task is gone. Another process may take its place.
    pub lost: fn(u32),
}

/// This process among the nodes of the map.
pub struct Hand {
    shared: Arc<Shared>,
    /// Until it is started.
    listener: Mutex<Option<Listener>>,
}

struct Shared {
    own: u32,
    nodes: Vec<Node>,
    peers: Vec<Peer>,
    receiving: Receiving,
    settings: Settings,
    key: Option<[u8; 16]>,
    leaves: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Threads that wait for events sleep by this.
    bell: (Mutex<u64>, Condvar),
}

/// What the thread of a peer is to do.
enum Order {
    Send(Output),
    /// A session of the peer is over.
    Lose,
}

/// Another node.
#[derive(Default)]
struct Peer {
    /// To the thread that sends to it, once there is one.
    sender: Mutex<Option<Sender<Order>>>,
    session: Mutex<Option<Arc<Session>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hand {
    /// Listens at this process's place in the map.
    ///
    /// # Errors
    /// A sentence: the place is taken, or there is no key.
    pub fn open(map: Map, receiving: Receiving) -> Result<Self, String> {
        let Map { nodes, own } = map;
        let config = environment::config().map_err(|error| error.to_string())?;
        let log = openlapi::error::Log::new(console::log);
        let settings = Settings { patience: PATIENCE, config, log, longest: LONGEST, ..Settings::default() };
        let needs_key = nodes.iter().any(|node| matches!(node.address, Address::Tcp(_)));
        let key = match needs_key {
            true => Some(key_file(map::key_path()).map_err(|error| error.to_string())?),
            false => None,
        };
        let listener = match (&nodes[own as usize].address, key) {
            (Address::Tcp(at), Some(key)) => Listener::tcp(*at, key, &settings),
            (Address::Unix(path), _) => {
                // What a process that was killed has left; of one that runs nothing is taken.
                if UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
                {
                    let _ = fs::remove_file(path);
                }
                Listener::unix(path, &settings)
            }
            (Address::Tcp(_), None) => unreachable!("a TCP address has a key"),
        };
        let listener = listener.map_err(|error| format!("{}: {error}", nodes[own as usize].address))?;
        let peers = nodes.iter().map(|_| Peer::default()).collect();
        let bell = (Mutex::new(0), Condvar::new());
        let (leaves, threads) = (AtomicBool::new(false), Mutex::default());
        let shared = Shared { own, nodes, peers, receiving, settings, key, leaves, threads, bell };
        Ok(Self { shared: Arc::new(shared), listener: Mutex::new(Some(listener)) })
    }

    /// Takes what arrives, from now on.
    pub fn start(&self) {
        if let Some(listener) = lock(&self.listener).take() {
            self.shared.spawn(|shared| shared.listen(listener));
        }
    }

    /// This process's number, from 0.
    pub fn task(&self) -> u32 {
        self.shared.own
    }

    /// The name of a node's host, as the map has it.
    pub fn host_name(&self, task: u32) -> Option<String> {
        Some(self.shared.nodes.get(task as usize)?.host.clone())
    }

    /// Gives a message to the thread that sends to its target.
    pub fn post(&self, output: &Output) {
        self.shared.order(output.task, Order::Send(*output));
    }

    /// Waits until the condition holds, or the deadline has passed.
    pub fn wait(&self, deadline: Option<Instant>, mut condition: impl FnMut() -> bool) {
        let (count, bell) = &self.shared.bell;
        loop {
            let seen = *lock(count);
            if condition() || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return;
            }
            let left = deadline.map_or(NAP, |deadline| deadline.saturating_duration_since(Instant::now()));
            let now = lock(count);
            if *now == seen {
                let _ = bell.wait_timeout(now, left.min(NAP));
            }
        }
    }

    /// Threads that wait look again.
    pub fn wake(&self) {
        self.shared.wake();
    }

    /// Leaves: sessions are closed in order.
    pub fn close(&self) {
        self.shared.leaves.store(true, Ordering::Release);
        // Their threads end when they have sent what they have.
        self.shared.peers.iter().for_each(|peer| *lock(&peer.sender) = None);
        loop {
            let Some(thread) = lock(&self.shared.threads).pop() else { break };
            let _ = thread.join();
        }
        for peer in &self.shared.peers {
            if let Some(session) = lock(&peer.session).take().and_then(Arc::into_inner) {
                // The peer may have left before.
                let _ = session.close();
            }
        }
    }
}

impl Shared {
    fn wake(&self) {
        *lock(&self.bell.0) += 1;
        self.bell.1.notify_all();
    }

    /// Runs this in a thread, which ends before the process has left.
    fn spawn(self: &Arc<Self>, run: impl FnOnce(Arc<Self>) + Send + 'static) {
        let shared = self.clone();
        let thread = thread::spawn(move || run(shared));
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Orders something of the thread that sends to a peer.
    fn order(self: &Arc<Self>, task: u32, order: Order) {
        let Some(peer) = self.peers.get(task as usize) else { return };
        let mut sender = lock(&peer.sender);
        if self.leaves() {
            return free(&order);
        }
        let sender = sender.get_or_insert_with(|| {
            let (sender, receiver) = channel();
            self.spawn(move |shared| shared.send_all(task, &receiver));
            sender
        });
        // The thread ends after the sender only.
        let _ = sender.send(order);
    }

    fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Acquire)
    }

    fn listen(self: Arc<Self>, mut listener: Listener) {
        while !self.leaves() {
            match listener.accept(Some(Instant::now() + LOOK)) {
                Ok(Some(session)) => self.spawn(|shared| shared.greet(Arc::new(session))),
                Ok(None) => {}
                Err(error) => console::log(format_args!("gm: a peer could not connect: {error}")),
            }
        }
    }

    /// Takes the number of the peer that has connected, and then what it sends.
    fn greet(self: Arc<Self>, session: Arc<Session>) {
        let Ok(Some(message)) = session.receive(Some(Instant::now() + PATIENCE)) else { return };
        let number = message.data.try_into().map(u32::from_le_bytes);
        let Some((task, peer)) = number.ok().and_then(|task| Some((task, self.peers.get(task as usize)?)))
        else {
            return console::log(format_args!("gm: a peer has said no number of the map"));
        };
        if message.header == HELLO {
            // A process that has connected anew has no use for the session of the one before.
            *lock(&peer.session) = Some(session.clone());
            self.take_all(task, session);
        }
    }

    /// Takes what a peer sends, until its session ends.
    fn take_all(self: Arc<Self>, task: u32, session: Arc<Session>) {
        loop {
            match session.receive(Some(Instant::now() + LOOK)) {
                Ok(Some(message)) => {
                    (self.receiving.arrived)(task, &message.header, &message.data);
                    self.wake();
                }
                Ok(None) if self.leaves() => return,
                Ok(None) => {}
                Err(_) => return self.end(task, &session),
            }
        }
    }

    /// A session is over. The thread that sends to the peer says so to the ports: it may be reading
    /// memory of theirs.
    fn end(self: &Arc<Self>, task: u32, session: &Arc<Session>) {
        let mut current = lock(&self.peers[task as usize].session);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, session)) {
            *current = None;
            drop(current);
            self.order(task, Order::Lose);
        }
    }

    fn send_all(self: Arc<Self>, task: u32, orders: &Receiver<Order>) {
        while let Ok(order) = orders.recv() {
            let is_lost = match &order {
                Order::Lose => true,
                Order::Send(output) => self.send(task, output).is_err(),
            };
            free(&order);
            if is_lost {
                // What waits was meant for the process that is gone.
                orders.try_iter().for_each(|order| free(&order));
                (self.receiving.lost)(task);
            }
            self.wake();
        }
    }

    /// Sends one message, and opens a session for it where there is none.
    fn send(self: &Arc<Self>, task: u32, output: &Output) -> Result<(), Error> {
        let header = output.header.encode();
        let data = match output.data {
            Data::None | Data::Memory { length: 0, .. } => &[][..],
            Data::Memory { address, length, .. } => {
                let memory = std::ptr::with_exposed_provenance::<u8>(address);
                // SAFETY: the program leaves its memory as it is until its send has ended, which is
                // after the counter has changed.
                unsafe { std::slice::from_raw_parts(memory, length as usize) }
            }
        };
        if task == self.own {
            (self.receiving.arrived)(task, &header, data);
            return Ok(());
        }
        let current = lock(&self.peers[task as usize].session).clone();
        let session = current.map_or_else(|| self.connect(task), Ok)?;
        session.send(&header, data).inspect_err(|_| {
            let mut current = lock(&self.peers[task as usize].session);
            current.take_if(|current| Arc::ptr_eq(current, &session));
        })
    }

    fn connect(self: &Arc<Self>, task: u32) -> Result<Arc<Session>, Error> {
        let session = match (&self.nodes[task as usize].address, self.key) {
            (Address::Unix(path), _) => connect_unix(path, &self.settings)?,
            (Address::Tcp(at), Some(key)) => connect_tcp(*at, key, &self.settings)?,
            (Address::Tcp(_), None) => unreachable!("a TCP address has a key"),
        };
        let session = Arc::new(session);
        session.send(HELLO, &self.own.to_le_bytes())?;
        *lock(&self.peers[task as usize].session) = Some(session.clone());
        let taking = session.clone();
        self.spawn(move |shared| shared.take_all(task, taking));
        Ok(session)
    }
}

/// The memory of an order is not needed any more.
fn free(order: &Order) {
    if let Order::Send(output) = order {
        output.data.free();
    }
}
