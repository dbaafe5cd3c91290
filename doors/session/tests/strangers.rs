//! Strangers at a listener. Alone in its process, so that the descriptors that are counted belong
//! to the listener.

use openlapi_session::{Listener, Routes, Settings, connect_tcp};
use openlapi_tests::Deadline;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn settings() -> Settings {
    let (routes, patience) = (Routes::SHARED_MEMORY, Duration::from_secs(100));
    Settings { routes, patience, ..Settings::default() }
}

#[test]
fn strangers_at_a_listener_cost_nothing_but_their_turn() {
    let path = std::env::temp_dir().join(format!("openlapi-strangers-{}", std::process::id()));
    let key = [7; 16];
    let mut tcp =
        Listener::tcp("127.0.0.1:0".parse().expect("an address"), key, &settings()).expect("a listener");
    let mut unix = Listener::unix(&path, &settings()).expect("a listener");
    let at = tcp.address().expect("an address");
    let before = descriptors();
    let (mut silent, mut loud) = (Vec::new(), 0);
    for number in 0_u32..400 {
        let Ok(mut stream) = TcpStream::connect(at) else { continue };
        match number % 4 {
            0 => {}
            1 => {
                loud += 1;
                let _ = stream.write_all(&[number as u8; 3000]);
            }
            2 => {
                let _ = stream.write_all(b"LAPICON1OpenLAPI session");
            }
            _ => drop(stream.shutdown(std::net::Shutdown::Write)),
        }
        silent.push(stream);
        assert!(tcp.accept(Some(Instant::now())).expect("no session").is_none());
    }
    // At most 128 are kept, whatever they send.
    assert!(descriptors() <= before + silent.len() + 128 + 8, "{} after {before}", descriptors());
    let seen = tcp.seen();
    assert!(
        seen.strangers > 0 && seen.strangers <= loud && seen.silent >= 100 && seen.wrong_keys == 0,
        "{seen:?}"
    );
    // The right one gets in beside them.
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| connect_tcp(at, key, &settings()).expect("a session"));
        let late = Instant::now() + Duration::from_secs(300);
        let session = tcp.accept(Some(late)).expect("a session").expect("in time");
        session.close().expect("an orderly end");
        drop(caller.join().expect("a caller"));
    });
    // Those that have proved nothing are closed after their time.
    drop(silent);
    let mut deadline = Deadline::after(Duration::from_secs(20));
    while descriptors() > before {
        assert!(!deadline.has_passed(), "{} descriptors after {before}", descriptors());
        assert!(tcp.accept(Some(Instant::now() + Duration::from_millis(50))).expect("no session").is_none());
    }
    let mut stranger = UnixStream::connect(&path).expect("a connection");
    stranger.write_all(&[9; 100]).expect("bytes");
    assert!(unix.accept(Some(Instant::now())).expect("no session").is_none());
    assert_eq!(unix.seen().strangers, 1);
    assert_eq!(stranger.read(&mut [0; 8]).unwrap_or(0), 0, "it was closed");
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("descriptors").count()
}
