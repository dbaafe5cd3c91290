//! Many connections to a listener at once. Each session has descriptors, so that these are alone
//! in their process, and one after the other.

use openlapi_session::{Listener, Routes, Seen, Settings, connect_unix};
use openlapi_tests::Deadline;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// More than a listener keeps that have not proved themselves.
const CALLERS: usize = 200;
/// As many as it keeps.
const KEPT: usize = 128;

fn settings() -> Settings {
    let (routes, patience) = (Routes::SHARED_MEMORY, Duration::from_secs(300));
    Settings { routes, patience, ..Settings::default() }
}

fn socket(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("openlapi-{name}-{}", std::process::id()))
}

fn accept(listener: &mut Listener) {
    let late = Instant::now() + Duration::from_secs(300);
    let session = listener.accept(Some(late)).expect("a session").expect("in time");
    session.close().expect("an orderly end");
}

#[test]
fn a_listener_keeps_whom_it_has_not_heard() {
    all_get_in_that_come_at_once();
    a_peer_gets_in_beside_many_that_have_only_greeted();
}

fn all_get_in_that_come_at_once() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("a limit");
    let path = socket("burst");
    let mut listener = Listener::unix(&path, &settings()).expect("a listener");
    std::thread::scope(|scope| {
        let callers: Vec<_> =
            (0..CALLERS).map(|_| scope.spawn(|| connect_unix(&path, &settings())?.close())).collect();
        // Those that are closed do not come again.
        let (mut deadline, mut opened) = (Deadline::after(Duration::from_secs(60)), 0);
        while opened < CALLERS {
            assert!(!deadline.has_passed(), "{opened} have got in: {:?}", listener.seen());
            match listener.accept(Some(Instant::now())).expect("a session") {
                Some(session) => {
                    session.close().expect("an orderly end");
                    opened += 1;
                }
                // Those that it has answered get time to answer.
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        for caller in callers {
            caller.join().expect("a caller").expect("a session");
        }
    });
    assert_eq!(listener.seen(), Seen::default());
}

/// Those that have begun as a peer does, and go no further, keep none out.
fn a_peer_gets_in_beside_many_that_have_only_greeted() {
    let path = socket("greeters");
    let mut listener = Listener::unix(&path, &settings()).expect("a listener");
    let mut hello = [7; 56];
    hello[..40].fill(0);
    hello[..25].copy_from_slice(b"LAPICON1OpenLAPI session\x01");
    let greeters: Vec<_> = (0..KEPT)
        .map(|_| {
            let mut greeter = UnixStream::connect(&path).expect("a connection");
            greeter.write_all(&hello).expect("bytes");
            assert!(listener.accept(Some(Instant::now())).expect("no session").is_none());
            greeter
        })
        .collect();
    assert_eq!(listener.seen(), Seen::default(), "they are kept");
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| connect_unix(&path, &settings())?.close());
        accept(&mut listener);
        caller.join().expect("a caller").expect("a session");
    });
    drop(greeters);
}
