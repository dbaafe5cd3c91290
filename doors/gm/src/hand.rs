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
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
/// The header of the first message of both sides: the number and the life of the sender follow.
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
    /// Tells this process apart from others that have had its place.
    incarnation: u64,
    nodes: Vec<Node>,
    peers: Vec<Peer>,
    receiving: Receiving,
    settings: Settings,
    key: Option<[u8; 16]>,
    leaves: AtomicBool,
    /// How many messages were ordered and not sent yet.
    ordered: AtomicUsize,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Threads that wait for events sleep by this.
    bell: (Mutex<u64>, Condvar),
}

/// A message for the thread of a peer.
struct Order {
    /// The link's life that it belongs to.
    life: u64,
    output: Output,
}

/// Another node.
#[derive(Default)]
struct Peer {
    /// To the thread that sends to it, once there is one.
    sender: Mutex<Option<Sender<Order>>>,
    link: Mutex<Link>,
    /// Locked while something of the peer is taken, and while the peer is forgotten.
    taking: Mutex<()>,
}

/// What two processes know of each other.
#[derive(Default)]
struct Link {
    /// How often the peer was forgotten: what belongs to an earlier life harms no later one.
    life: u64,
    /// What the peer calls its own life; `None`: no session has been opened in this one.
    peer: Option<u64>,
    /// Two where both sides have begun at once. What goes to the peer goes by the last one; which
    /// that is, each side says for itself.
    sessions: Vec<Arc<Session>>,
    /// A session has failed: nothing is sent any more, and the others end when nothing comes for a
    /// while, but at this time.
    ends: Option<Instant>,
}

impl Link {
    /// Whether messages of this life are sent.
    fn takes(&self, life: u64) -> bool {
        self.life == life && self.ends.is_none()
    }

    /// A session of this life has failed.
    fn fail(&mut self, life: u64) {
        if self.life == life {
            self.ends.get_or_insert_with(|| Instant::now() + PATIENCE);
        }
    }
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
        let (leaves, ordered, threads) = (AtomicBool::new(false), AtomicUsize::new(0), Mutex::default());
        let incarnation = RandomState::new().build_hasher().finish();
        let shared = Arc::new(Shared {
            own,
            incarnation,
            nodes,
            peers,
            receiving,
            settings,
            key,
            leaves,
            ordered,
            threads,
            bell,
        });
        Ok(Self { shared, listener: Mutex::new(Some(listener)) })
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
        self.shared.order(output);
    }

    /// Whether all messages were given to their sessions.
    pub fn has_sent_all(&self) -> bool {
        self.shared.ordered.load(Ordering::Acquire) == 0
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
            let sessions = std::mem::take(&mut lock(&peer.link).sessions);
            for session in sessions.into_iter().filter_map(Arc::into_inner) {
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

    /// Orders a message of the thread that sends to its target.
    fn order(self: &Arc<Self>, output: &Output) {
        let task = output.task;
        let peer = &self.peers[task as usize];
        let mut sender = lock(&peer.sender);
        if self.leaves() {
            return output.data.free();
        }
        let sender = sender.get_or_insert_with(|| {
            let (sender, receiver) = channel();
            self.spawn(move |shared| shared.send_all(task, &receiver));
            sender
        });
        // The thread ends after the sender only.
        let life = lock(&peer.link).life;
        self.ordered.fetch_add(1, Ordering::Relaxed);
        let _ = sender.send(Order { life, output: *output });
    }

    fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Acquire)
    }

    fn listen(self: Arc<Self>, mut listener: Listener) {
        let mut fails = false;
        while !self.leaves() {
            let accepted = listener.accept(Some(Instant::now() + LOOK));
            let failed = matches!(accepted, Err(Error::System { .. } | Error::Limit(_)));
            match accepted {
                Ok(Some(session)) => self.spawn(|shared| shared.greet(Arc::new(session))),
                Ok(None) => {}
                // Without descriptors, say, the next call fails at once.
                Err(_) if failed && fails => thread::sleep(LOOK),
                Err(error) => console::log(format_args!("gm: a peer could not connect: {error}")),
            }
            fails = failed;
        }
    }

    /// This process and its life, as a peer learns of them.
    fn hello(&self, session: &Session, life: u64) -> Result<(), Error> {
        let life = self.incarnation.wrapping_add(life);
        session.send(HELLO, &[&self.own.to_le_bytes()[..], &life.to_le_bytes()].concat())
    }

    /// Takes the number and the life of the peer.
    fn peer_of(&self, session: &Session) -> Option<(u32, u64)> {
        let message = session.receive(Some(Instant::now() + PATIENCE)).ok()??;
        let known = message.data.split_first_chunk().and_then(|(number, life)| {
            Some((u32::from_le_bytes(*number), u64::from_le_bytes(life.try_into().ok()?)))
        });
        let known = known.filter(|(task, _)| message.header == HELLO && (*task as usize) < self.peers.len());
        if known.is_none() {
            console::log(format_args!("gm: a peer has said no number of the map"));
        }
        known
    }

    /// A peer has connected: says who this is, and takes what it sends.
    fn greet(self: Arc<Self>, session: Arc<Session>) {
        let Some((task, of_peer)) = self.peer_of(&session) else { return };
        let life = self.meet(task, of_peer);
        if self.hello(&session, life).is_ok() && self.publish(task, life, &session) {
            self.take_all(task, life, session);
        }
    }

    /// A peer has said which life it is in. One that is in another than before is forgotten before
    /// anything of it is taken: it may be another process. Returns the life of the link.
    fn meet(&self, task: u32, of_peer: u64) -> u64 {
        let (known, life) = {
            let link = lock(&self.peers[task as usize].link);
            (link.peer, link.life)
        };
        if known.is_some_and(|known| known != of_peer) {
            self.lose(task, life);
        }
        let mut link = lock(&self.peers[task as usize].link);
        link.peer = Some(of_peer);
        link.life
    }

    /// A session in which both sides know each other is used from now on; `false`: it belongs to an
    /// earlier life.
    fn publish(&self, task: u32, life: u64, session: &Arc<Session>) -> bool {
        let mut link = lock(&self.peers[task as usize].link);
        let is_now = link.life == life;
        if is_now {
            link.sessions.push(session.clone());
        }
        is_now
    }

    /// Forgets a peer, if the link is still in this life.
    fn lose(&self, task: u32, life: u64) {
        let peer = &self.peers[task as usize];
        let _alone = lock(&peer.taking);
        {
            let mut link = lock(&peer.link);
            if link.life != life {
                return;
            }
            *link = Link { life: life + 1, ..Link::default() };
        }
        (self.receiving.lost)(task);
        self.wake();
    }

    /// Takes what a peer sends, until its session or its life ends, or this process leaves: all
    /// ports are closed then, and what is still to be taken is for none of them.
    fn take_all(&self, task: u32, life: u64, session: Arc<Session>) {
        let peer = &self.peers[task as usize];
        while !self.leaves() {
            match session.receive(Some(Instant::now() + LOOK)) {
                Ok(Some(message)) => {
                    let _alone = lock(&peer.taking);
                    if lock(&peer.link).life != life {
                        return;
                    }
                    (self.receiving.arrived)(task, &message.header, &message.data);
                    self.wake();
                    if lock(&peer.link).ends.is_none_or(|at| Instant::now() < at) {
                        continue;
                    }
                }
                Ok(None) if lock(&peer.link).ends.is_none() => continue,
                Ok(None) | Err(Error::Closed) => {}
                Err(_) => lock(&peer.link).fail(life),
            }
            return self.leave(task, life, &session);
        }
    }

    /// A session is over. The peer is lost with the last one of its life: what it has said in
    /// another one before is taken first.
    fn leave(&self, task: u32, life: u64, session: &Arc<Session>) {
        let is_last = {
            let mut link = lock(&self.peers[task as usize].link);
            if link.life != life {
                return;
            }
            link.sessions.retain(|other| !Arc::ptr_eq(other, session));
            link.sessions.is_empty()
        };
        if is_last {
            self.lose(task, life);
        }
    }

    /// A message could not be sent. Where a session is over, the threads that take from the peer's
    /// sessions lose the peer when they have taken all.
    fn not_sent(&self, task: u32, life: u64, error: &Error) {
        {
            let mut link = lock(&self.peers[task as usize].link);
            match error {
                _ if link.sessions.is_empty() => {}
                // The peer leaves, and closes all of them.
                Error::Closed => return,
                Error::Lost(_) => return link.fail(life),
                _ => {}
            }
        }
        self.lose(task, life);
    }

    fn send_all(self: Arc<Self>, task: u32, orders: &Receiver<Order>) {
        while let Ok(Order { life, output }) = orders.recv() {
            // What waits from an earlier life was meant for a process that is gone.
            let is_now = lock(&self.peers[task as usize].link).takes(life);
            let failed = is_now.then(|| self.send(task, life, &output).err()).flatten();
            output.data.free();
            self.ordered.fetch_sub(1, Ordering::Release);
            if let Some(error) = failed {
                self.not_sent(task, life, &error);
            }
            self.wake();
        }
    }

    /// Sends one message, and opens a session for it where there is none.
    fn send(self: &Arc<Self>, task: u32, life: u64, output: &Output) -> Result<(), Error> {
        let header = output.header.encode();
        let header = header.as_bytes();
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
            (self.receiving.arrived)(task, header, data);
            return Ok(());
        }
        self.session(task, life)?.send(header, data)
    }

    /// The session with a peer, which is opened where there is none.
    fn session(self: &Arc<Self>, task: u32, life: u64) -> Result<Arc<Session>, Error> {
        let current = || lock(&self.peers[task as usize].link).sessions.last().cloned();
        match current() {
            Some(session) => Ok(session),
            // The peer may have connected meanwhile.
            None => self.connect(task, life).or_else(|error| current().ok_or(error)),
        }
    }

    fn connect(self: &Arc<Self>, task: u32, life: u64) -> Result<Arc<Session>, Error> {
        let session = match (&self.nodes[task as usize].address, self.key) {
            (Address::Unix(path), _) => connect_unix(path, &self.settings)?,
            (Address::Tcp(at), Some(key)) => connect_tcp(*at, key, &self.settings)?,
            (Address::Tcp(_), None) => unreachable!("a TCP address has a key"),
        };
        let session = Arc::new(session);
        self.hello(&session, life)?;
        let other = || Error::Lost("the peer is another process".to_owned());
        let (_, of_peer) = self.peer_of(&session).filter(|(node, _)| *node == task).ok_or_else(other)?;
        self.meet(task, of_peer);
        if !self.publish(task, life, &session) {
            return Err(other());
        }
        let taking = session.clone();
        self.spawn(move |shared| shared.take_all(task, life, taking));
        Ok(session)
    }
}

#[cfg(test)]
mod tests;
