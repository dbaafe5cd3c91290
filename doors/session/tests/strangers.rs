//! Strangers at a listener. Alone in its process, so that the descriptors that are counted belong
//! to the listener.

use openlapi_session::{Listener, Routes, Settings, connect_tcp};
use openlapi_tests::Deadline;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How many that have proved nothing a listener keeps.
const KEPT: usize = 128;
/// Bytes of memory that one of them may take.
const MOST_MEMORY: usize = 4096;

/// The system's allocator, which counts.
struct Counting;

thread_local! {
    /// Bytes that this thread has allocated, less those that it has freed.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends frees memory after its variables.
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: all of it is the system's allocator, and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn settings() -> Settings {
    let (routes, patience) = (Routes::SHARED_MEMORY, Duration::from_secs(100));
    Settings { routes, patience, ..Settings::default() }
}

/// One test: both count what this process has.
#[test]
fn strangers_at_a_listener_cost_nothing_but_their_turn() {
    one_that_has_proved_nothing_takes_little_memory();
    many_of_all_kinds();
}

fn one_that_has_proved_nothing_takes_little_memory() {
    let mut listener =
        Listener::tcp("127.0.0.1:0".parse().expect("an address"), [7; 16], &settings()).expect("a listener");
    let at = listener.address().expect("an address");
    // What the system keeps of one that is not served yet.
    let mut eager = TcpStream::connect(at).expect("a connection");
    eager.set_nonblocking(true).expect("a mode");
    let full = loop {
        if let Err(error) = eager.write_all(&[b'L'; 1 << 16]) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    let unread = unread(at);
    assert!(unread > 0 && unread <= MOST_MEMORY, "{unread} bytes that were not read");
    assert!(listener.accept(Some(Instant::now())).expect("no session").is_none());
    assert_eq!(listener.seen().strangers, 1);
    // What this process keeps of one whose proof lacks its last byte, while it waits for it.
    let greeting = [&b"LAPICON1OpenLAPI session\x02"[..], &[0; 15], &[9; 16], &[0; 15]].concat();
    let mut unproved = Vec::with_capacity(KEPT);
    let before = HELD.get();
    for _ in 0..KEPT {
        let mut stream = TcpStream::connect(at).expect("a connection");
        stream.write_all(&greeting).expect("bytes");
        stream.set_nonblocking(true).expect("a mode");
        // The answer tells that it was read.
        let mut deadline = Deadline::after(Duration::from_secs(20));
        while stream.read(&mut [0; 64]).is_err() {
            assert!(!deadline.has_passed(), "a greeting has no answer");
            assert!(listener.accept(Some(Instant::now())).expect("no session").is_none());
        }
        unproved.push(stream);
    }
    let each = usize::try_from(HELD.get() - before).expect("they take memory") / KEPT;
    println!("one that has proved nothing: {each} bytes, or {unread} that were not read");
    assert!(each <= MOST_MEMORY, "{each} bytes");
    assert_eq!(listener.seen().strangers, 1, "they were taken for something else");
}

/// The bytes that have come to a port of this host's and were not read.
fn unread(at: SocketAddr) -> usize {
    let all = fs::read_to_string("/proc/net/tcp").expect("the connections");
    let port = format!(":{:04X}", at.port());
    let queues = all.lines().skip(1).filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // 01: an open connection; the listening socket has connections in its queue.
        let is_one = words.get(1)?.ends_with(&port) && *words.get(3)? == "01";
        let (_, received) = words.get(4)?.split_once(':')?;
        is_one.then(|| usize::from_str_radix(received, 16).expect("a number"))
    });
    queues.sum()
}

fn many_of_all_kinds() {
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
    // At most as many are kept, whatever they send.
    assert!(descriptors() <= before + silent.len() + KEPT + 8, "{} after {before}", descriptors());
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
    // Those that have proved nothing are closed after their time, though their ends here are open.
    let mut deadline = Deadline::after(Duration::from_secs(20));
    while descriptors() > before + silent.len() {
        let left = descriptors() - silent.len();
        assert!(!deadline.has_passed(), "{left} descriptors after {before}");
        assert!(tcp.accept(Some(Instant::now() + Duration::from_millis(50))).expect("no session").is_none());
    }
    drop(silent);
    let mut stranger = UnixStream::connect(&path).expect("a connection");
    stranger.write_all(&[9; 100]).expect("bytes");
    assert!(unix.accept(Some(Instant::now())).expect("no session").is_none());
    assert_eq!(unix.seen().strangers, 1);
    assert_eq!(stranger.read(&mut [0; 8]).unwrap_or(0), 0, "it was closed");
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("descriptors").count()
}
