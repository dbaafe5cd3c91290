//! The suite for sessions, over every way.

mod suite;

use openlapi_session::{Routes, Session, Settings, accept, connect};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Both ends, by a pair of sockets.
fn open([accepting, connecting]: [&Settings; 2]) -> [Session; 2] {
    let (one, other) = UnixStream::pair().expect("sockets");
    let [here, there] =
        [one, other].map(|end| -> [OwnedFd; 2] { [end.try_clone().expect("a socket").into(), end.into()] });
    std::thread::scope(|scope| {
        let [read, write] = there;
        let peer = scope.spawn(move || connect(read, write, connecting).expect("a session"));
        let [read, write] = here;
        [accept(read, write, accepting).expect("a session"), peer.join().expect("a thread")]
    })
}

fn over(routes: Routes) {
    let settings = Settings { routes, patience: Duration::from_secs(100), ..Settings::default() };
    suite::all(&open, &settings);
}

#[test]
fn over_shared_memory() {
    over(Routes::SHARED_MEMORY);
}

#[test]
fn over_udp() {
    over(Routes::UDP);
}

#[test]
fn over_libfabric() {
    if openlapi_tests::has_fabric() {
        over(Routes::FABRIC);
    }
}
