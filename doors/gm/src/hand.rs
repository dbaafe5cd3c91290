//! Processes that no launcher has started: a session between each two that meet.
//!
//! Each process is a node of a map, and listens there. One thread for each peer opens a session at
//! first contact and sends, in order; one for each session takes what arrives.

pub mod hello;
mod link;
pub mod map;
mod sending;
mod taking;

pub use map::Map;

use crate::protocol::Output;
use link::Peer;
use map::{Address, Node};
use openlapi::base::thread::with_signals_blocked;
use openlapi_runtime::{console, environment};
use openlapi_session::{Listener, Session, Settings, key_file};
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a process tries to open a session.
const PATIENCE: Duration = Duration::from_secs(5);
/// A listener looks this often whether the process leaves.
const LOOK: Duration = Duration::from_millis(50);
/// A thread that waits for an event looks this often by itself.
const NAP: Duration = Duration::from_millis(20);
/// A process that leaves looks this often whether what it waits for is done.
const ROUND: Duration = Duration::from_millis(1);
/// In how many rounds a process that exits tries to get a lock.
const TRIES: u32 = 50;
/// [`Shared::socket`] where it is closed.
const NO_SOCKET: RawFd = -1;
/// A life that no link gets to.
const UNKNOWN: u64 = u64::MAX;
/// The longest message: more than any size holds.
const LONGEST: usize = 1 << 32;

/// What comes of peers.
#[derive(Clone, Copy)]
pub struct Receiving {
    /// A message of a task: header and data.
    pub arrived: fn(u32, &[u8], &[u8]),
    /// A task is gone: nothing more is meant for it. The link is still in its life.
    pub losing: fn(u32),
    /// What waits for the task ends. Another process may take its place after that.
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
    /// The descriptor of the listener's socket, for a forked child; [`NO_SOCKET`].
    socket: AtomicI32,
    key: Option<[u8; 16]>,
    leaves: AtomicBool,
    /// The process exits, perhaps by a signal that has interrupted its thread with any lock.
    exits: AtomicBool,
    /// How many messages were ordered and not sent yet.
    ordered: AtomicUsize,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Peers, with the life of the link, to which there was no thread to send.
    unsent: Mutex<Vec<(u32, u64)>>,
    /// Threads that wait for events sleep by this.
    bell: (Mutex<u64>, Condvar),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes sessions, each when its peer has what was sent. Peers that have not taken it in the time
/// that all of them have together lose theirs.
fn close_all(mut sessions: Vec<Session>) {
    let until = Instant::now() + PATIENCE;
    loop {
        let has_ended = |session: &Session| session.progress().is_err() || session.is_complete();
        let (ended, open): (Vec<_>, Vec<_>) = sessions.into_iter().partition(has_ended);
        // The peer may have left before.
        ended.into_iter().for_each(|session| drop(session.close()));
        if open.is_empty() || until <= Instant::now() {
            return;
        }
        thread::sleep(ROUND);
        sessions = open;
    }
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
        let [leaves, exits] = [(); 2].map(|()| AtomicBool::new(false));
        let ordered = AtomicUsize::new(0);
        let (threads, unsent) = (Mutex::default(), Mutex::default());
        let incarnation = RandomState::new().build_hasher().finish();
        let socket = AtomicI32::new(listener.socket().as_raw_fd());
        let shared = Arc::new(Shared {
            own,
            incarnation,
            nodes,
            peers,
            receiving,
            settings,
            socket,
            key,
            leaves,
            exits,
            ordered,
            threads,
            unsent,
            bell,
        });
        Ok(Self { shared, listener: Mutex::new(Some(listener)) })
    }

    /// Takes what arrives, from now on.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn start(&self) -> io::Result<()> {
        match lock(&self.listener).take() {
            Some(listener) => self.shared.spawn(|shared| shared.listen(listener)),
            None => Ok(()),
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

    /// How often a task was forgotten: which process in its place a message is for.
    pub fn life(&self, task: u32) -> u64 {
        let known = self.shared.peers.get(task as usize).map(|peer| self.shared.lock(&peer.link));
        known.map_or(0, |link| link.map_or(UNKNOWN, |link| link.life))
    }

    /// Gives a message to the thread that sends to its target, if the target is still in the life
    /// that the message is for.
    pub fn post(&self, output: &Output, life: u64) {
        self.shared.order(output, life);
    }

    /// Waits until what has begun to arrive was taken, or the deadline has passed: of what the
    /// program has seen of it, the sender learns by a message that is ordered at the end of that.
    pub fn settle(&self, deadline: Instant) {
        for peer in &self.shared.peers {
            while let Err(TryLockError::WouldBlock) = peer.taking.try_lock() {
                if deadline <= Instant::now() {
                    return;
                }
                thread::sleep(ROUND);
            }
        }
    }

    /// Whether all messages were given to their sessions.
    pub fn has_sent_all(&self) -> bool {
        self.shared.ordered.load(Ordering::Acquire) == 0
    }

    /// From now on calls wait for no lock that an interrupted thread may have for ever.
    pub fn begin_exit(&self) {
        self.shared.exits.store(true, Ordering::Release);
    }

    /// When the process exits: waits until the condition holds and all messages were given to their
    /// sessions, or the deadline has passed. Not by the bell, which this thread may have locked.
    pub fn finish(&self, deadline: Instant, mut condition: impl FnMut() -> bool) {
        self.settle(deadline);
        while !(condition() && self.has_sent_all()) && Instant::now() < deadline {
            thread::sleep(ROUND);
        }
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

    /// In a forked child: the place in the map is the parent's, and free when that ends.
    pub fn forget_in_child(&self) {
        let socket = self.shared.socket.swap(NO_SOCKET, Ordering::Relaxed);
        if socket != NO_SOCKET {
            // SAFETY: the child's copy of an open descriptor, whose owner the child has forgotten.
            unsafe { libc::close(socket) };
        }
    }

    /// Leaves: sessions are closed in order.
    pub fn close(&self) {
        self.settle(Instant::now() + PATIENCE);
        self.shared.leaves.store(true, Ordering::Release);
        // Their threads end when they have sent what they have.
        self.shared.peers.iter().for_each(|peer| *lock(&peer.sender) = None);
        loop {
            let Some(thread) = lock(&self.shared.threads).pop() else { break };
            let _ = thread.join();
        }
        let of_peer = |peer: &Peer| std::mem::take(&mut lock(&peer.link).sessions);
        let sessions = self.shared.peers.iter().flat_map(of_peer);
        close_all(sessions.filter_map(Arc::into_inner).collect());
    }
}

impl Shared {
    fn wake(&self) {
        *lock(&self.bell.0) += 1;
        self.bell.1.notify_all();
    }

    /// Runs this in a thread, which ends before the process has left. The handlers of the program's
    /// signals run in the program's threads.
    ///
    /// # Errors
    /// The system has no thread for it.
    fn spawn(self: &Arc<Self>, run: impl FnOnce(Arc<Self>) + Send + 'static) -> io::Result<()> {
        let shared = self.clone();
        let thread = with_signals_blocked(|| thread::Builder::new().spawn(move || run(shared)))?;
        if let Some(mut threads) = self.lock(&self.threads) {
            threads.retain(|thread| !thread.is_finished());
            threads.push(thread);
        }
        Ok(())
    }

    /// A lock of the calls that send. `None`: the process exits, and others have kept it, or this
    /// thread was interrupted with it.
    fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> Option<MutexGuard<'a, T>> {
        for _ in 0..TRIES {
            if !self.exits.load(Ordering::Acquire) {
                return Some(lock(mutex));
            }
            match mutex.try_lock() {
                Ok(locked) => return Some(locked),
                Err(TryLockError::Poisoned(locked)) => return Some(locked.into_inner()),
                Err(TryLockError::WouldBlock) => thread::sleep(ROUND),
            }
        }
        None
    }

    fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Acquire)
    }
}

#[cfg(test)]
pub mod tests;
