//! A process of a map, and a peer that opens sessions with it as another process would.

use super::map::{Address, Node};
use super::{HELLO, Hand, Map, PATIENCE, Receiving, lock};
use openlapi_session::{Session, Settings, connect_unix};
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// What the process has seen of the peer, in order: the first byte of a message, or `None` where
/// the peer was lost.
static SEEN: Mutex<Vec<Option<u8>>> = Mutex::new(Vec::new());

fn arrived(_: u32, _: &[u8], data: &[u8]) {
    lock(&SEEN).push(data.first().copied());
}

fn lost(_: u32) {
    lock(&SEEN).push(None);
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not within 60 s, seen {:?}", lock(&SEEN));
        thread::sleep(Duration::from_millis(1));
    }
}

/// A session of node 2, which is in this life, with node 1.
fn session(folder: &Path, life: u64) -> Session {
    let session = connect_unix(folder.join("0"), &Settings::default()).expect("a session");
    let own = [&1u32.to_le_bytes()[..], &life.to_le_bytes()].concat();
    session.send(HELLO, &own).expect("it is sent");
    let hello = session.receive(Some(Instant::now() + PATIENCE)).expect("a session").expect("a message");
    assert_eq!(hello.header, HELLO);
    session
}

/// Two that begin at once have two sessions. What the peer says in one of them is taken, whichever
/// of the two ends first, and the peer is lost after that, once.
#[test]
fn a_peer_is_lost_with_its_last_session() {
    let folder = std::env::temp_dir().join(format!("gm-hand-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let node = |at: u32| Node { host: at.to_string(), address: Address::Unix(folder.join(at.to_string())) };
    let map = Map { nodes: vec![node(0), node(1)], own: 0 };
    let hand = Hand::open(map, Receiving { arrived, lost }).expect("a place");
    hand.start();
    let sessions = || lock(&hand.shared.peers[1].link).sessions.len();
    for (turn, ends_first) in [(1, 0), (2, 1)] {
        lock(&SEEN).clear();
        let mut both = vec![session(&folder, turn), session(&folder, turn)];
        until("both sessions are there", || sessions() == 2);
        both.remove(ends_first).close().expect("it ends in order");
        until("one session is over", || sessions() == 1);
        let other = both.remove(0);
        other.send(b"", &[7]).expect("it is sent");
        other.close().expect("it ends in order");
        until("the peer is lost", || lock(&SEEN).contains(&None));
        assert_eq!(*lock(&SEEN), [Some(7), None], "in turn {turn}");
    }
    hand.close();
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}
