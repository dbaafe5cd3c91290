//! A process of a map, and peers that open sessions with it as other processes would.

use super::hello::Hello;
use super::map::{Address, Node};
use super::{Hand, Map, PATIENCE, Receiving, lock};
use crate::protocol::{Data, Output};
use crate::wire::{Header, Kind};
use openlapi_session::{Error, Listener, Session, Settings, connect, connect_unix};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// What the process has seen of its peers, in order: the first byte of a message, or `None` where
/// a peer was lost.
static SEEN: Mutex<Vec<Option<u8>>> = Mutex::new(Vec::new());

fn arrived(_: u32, _: &[u8], data: &[u8]) {
    lock(&SEEN).push(data.first().copied());
}

fn lost(_: u32) {
    lock(&SEEN).push(None);
}

pub fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not within 60 s, seen {:?}", lock(&SEEN));
        thread::sleep(Duration::from_millis(1));
    }
}

pub fn late() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(60))
}

/// The process, which is node 1 of a map: place 0. One at a time, since what it sees is one.
struct Process {
    hand: Hand,
    folder: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Process {
    fn start(name: &str, nodes: usize) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = lock(&ALONE);
        lock(&SEEN).clear();
        let folder = std::env::temp_dir().join(format!("gm-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let hand =
            Hand::open(map(&folder, nodes), Receiving { arrived, losing: |_| (), lost }).expect("a place");
        hand.start().expect("a thread");
        Self { hand, folder, _alone: alone }
    }

    fn sessions(&self, at: usize) -> usize {
        sessions(&self.hand, at)
    }

    /// Sends a message without data.
    fn post(&self, task: u32) {
        let output = Output { task, header: Header::of(Kind::Ping, 2, 2), data: Data::None };
        self.hand.post(&output, self.hand.life(task));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.hand.close();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A map of this many nodes, whose sockets are in a folder. The process has the first place.
pub fn map(folder: &Path, nodes: usize) -> Map {
    let node = |at: usize| {
        let at = at.to_string();
        Node { address: Address::Unix(folder.join(&at)), host: at }
    };
    Map { nodes: (0..nodes).map(node).collect(), own: 0 }
}

/// How many sessions with a peer are used.
pub fn sessions(hand: &Hand, at: usize) -> usize {
    lock(&hand.shared.peers[at].link).sessions.len()
}

/// Finds that a peer is gone.
pub fn lose(hand: &Hand, at: u32) {
    hand.shared.lose(at, hand.life(at));
}

fn say_hello(session: &Session, task: u32, life: u64) -> Result<(), Error> {
    let (header, data) = Hello { task, life }.encode();
    session.send(header, &data)
}

fn hear_hello(session: &Session) {
    let hello = session.receive(late()).expect("a session").expect("a message");
    assert!(Hello::decode(&hello.header, &hello.data, 10).is_some_and(|hello| hello.task == 0));
}

/// A session of the process at this place, which is in this life, with that at place 0.
pub fn session(at: u32, folder: &Path, life: u64) -> Session {
    let session = connect_unix(folder.join("0"), &Settings::default()).expect("a session");
    say_hello(&session, at, life).expect("it is sent");
    hear_hello(&session);
    session
}

/// Two that begin at once have two sessions. What the peer says in one of them is taken, whichever
/// of the two ends first, and the peer is lost after that, once.
#[test]
fn a_peer_is_lost_with_its_last_session() {
    let process = Process::start("both", 2);
    for (turn, ends_first) in [(1, 0), (2, 1)] {
        lock(&SEEN).clear();
        let mut both = vec![session(1, &process.folder, turn), session(1, &process.folder, turn)];
        until("both sessions are there", || process.sessions(1) == 2);
        both.remove(ends_first).close().expect("it ends in order");
        until("one session is over", || process.sessions(1) == 1);
        let other = both.remove(0);
        other.send(b"", &[7]).expect("it is sent");
        other.close().expect("it ends in order");
        until("the peer is lost", || lock(&SEEN).contains(&None));
        assert_eq!(*lock(&SEEN), [Some(7), None], "in turn {turn}");
    }
}

/// A peer's life whose session was refused is forgotten with it: processes that come after that in
/// the peer's place are reached.
#[test]
fn a_refused_session_leaves_no_trace() {
    let process = Process::start("refused", 2);
    let patient = Settings { patience: Duration::from_secs(60), ..Settings::default() };
    let mut listener = Listener::unix(process.folder.join("1"), &patient).expect("a listener");
    process.post(1);
    let begun = listener.accept(late()).expect("a session").expect("in time");
    hear_hello(&begun);
    // Meanwhile the peer comes and goes by itself.
    session(1, &process.folder, 7).close().expect("it ends in order");
    until("the peer is lost", || lock(&SEEN).contains(&None));
    // The process may have waited too long for that by now.
    let _ = say_hello(&begun, 1, 7);
    assert!(begun.receive(late()).is_err(), "the session belongs to an earlier life");
    drop(begun);
    // Each process that the session is lost to has another life after that.
    for life in [100, 101] {
        process.post(1);
        let begun = listener.accept(late()).expect("a session").expect("in time");
        hear_hello(&begun);
        say_hello(&begun, 1, life).expect("it is sent");
        match begun.receive(late()) {
            Ok(message) => {
                assert!(message.is_some_and(|message| message.data.is_empty()), "another message");
                return;
            }
            Err(error) => assert!(matches!(error, Error::Lost(_)), "{error}"),
        }
    }
    panic!("neither of two messages has arrived");
}

/// The thread that takes from a session does not outlive the life that the session belongs to.
#[test]
fn a_session_ends_with_its_life() {
    let process = Process::start("life", 2);
    let session = session(1, &process.folder, 1);
    until("the session is there", || process.sessions(1) == 1);
    lose(&process.hand, 1);
    let ended = session.receive(late());
    assert!(matches!(ended, Err(Error::Lost(_))), "{ended:?}");
}

/// Bytes by which a peer proves itself: hello, proof and card. The session is not open then.
const PROVED: usize = 56 + 16 + 64;

/// Passes bytes on from one socket to the other, at most that many. Both stay open.
fn pass(mut from: &UnixStream, mut to: &UnixStream, mut left: usize) {
    let mut bytes = [0; 256];
    while left != 0 {
        let wanted = bytes.len().min(left);
        let Ok(read @ 1..) = from.read(&mut bytes[..wanted]) else { return };
        if to.write_all(&bytes[..read]).is_err() {
            return;
        }
        left -= read;
    }
}

/// Peers that are stopped while they open their session hold up no other: they would have all time
/// that the last one has.
#[test]
fn a_stopped_peer_holds_up_no_other() {
    let process = Process::start("stopped", 2);
    let (stopped, patience) = (8, Duration::from_secs(30));
    assert!(PATIENCE * stopped > patience);
    let settings = Settings { patience, ..Settings::default() };
    let ends: Vec<[UnixStream; 2]> = (0..stopped)
        .map(|_| {
            let (near, far) = UnixStream::pair().expect("sockets");
            let process = UnixStream::connect(process.folder.join("0")).expect("it listens");
            let [read, write] = [&far, &far].map(|end| end.try_clone().expect("a socket"));
            let [to, from] = [&process, &process].map(|end| end.try_clone().expect("a socket"));
            thread::spawn(move || pass(&from, &write, usize::MAX));
            let settings = settings.clone();
            let [one, other] = [&near, &near].map(|end| end.try_clone().expect("a socket").into());
            thread::spawn(move || drop(connect(one, other, &settings)));
            pass(&read, &to, PROVED);
            [near, process]
        })
        .collect();
    let last = connect_unix(process.folder.join("0"), &settings).expect("a session");
    say_hello(&last, 1, 1).expect("it is sent");
    assert!(last.receive(late()).expect("a session").is_some());
    for end in ends.iter().flatten() {
        end.shutdown(std::net::Shutdown::Both).expect("an open socket");
    }
}

/// All peers together have the time that one has to take what was sent.
#[test]
fn a_process_leaves_beside_many_peers_that_take_nothing() {
    const STUCK: u32 = 12;
    let process = Process::start("stuck", STUCK as usize + 1);
    let stuck: Vec<Session> = (1..=STUCK).map(|at| session(at, &process.folder, 1)).collect();
    for at in 1..=STUCK {
        until("the session is there", || process.sessions(at as usize) == 1);
        process.post(at);
    }
    until("all is given to the sessions", || process.hand.has_sent_all());
    let begin = Instant::now();
    process.hand.close();
    assert!(begin.elapsed() < PATIENCE * STUCK / 2, "each has its time alone");
    drop(stuck);
}

/// A process that exits waits for what is being taken, but not for ever: the thread that takes it
/// may be stuck.
#[test]
fn what_is_never_taken_does_not_hold_up_an_exit() {
    let process = Process::start("exits", 2);
    thread::scope(|scope| {
        let taking = lock(&process.hand.shared.peers[1].taking);
        let exits = scope.spawn(|| process.hand.settle(Instant::now() + Duration::from_millis(100)));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !exits.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let is_over = exits.is_finished();
        drop(taking);
        assert!(is_over, "it still waits after 60 s");
    });
}
