//! A server with many sessions: what an idle one costs, and that one descriptor wakes for all.
//! Alone in its process, so that what is counted belongs to the sessions.

use openlapi_session::{Error, Listener, Message, Routes, Session, Settings};
use openlapi_tests::{Deadline, skipped};
use rustix::event::{Timespec, epoll};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SESSIONS: usize = 1000;
/// Over libfabric alone, whose `ofi_rxm` has 2,048 buffers for each endpoint: 71 MB.
const FABRIC_SESSIONS: usize = 10;
/// Libfabric or UDP.
const BOTH: Routes = Routes(2 | 4);
/// Sessions that may use either; `MANY_SESSIONS` asks for another number.
const OF_BOTH: usize = 100;
/// Those of them that are over libfabric.
const OVER_FABRIC: usize = 4;
/// Bytes of memory that an idle session may take over shared memory and UDP, and one of a thousand
/// by the best network on average.
const MOST_MEMORY: usize = 512 << 10;
const MOST_FABRIC_MEMORY: usize = 100 << 20;
/// Descriptors that a session takes, at most.
const MOST_DESCRIPTORS: usize = 16;
const MOST_FABRIC_DESCRIPTORS: usize = 24;

/// Between two looks at a deadline.
const SHORT: Duration = Duration::from_millis(500);

/// What the sessions of one way are, and may take.
struct Bounds {
    sessions: usize,
    /// How many of them are over libfabric: the first ones.
    over_fabric: usize,
    descriptors: usize,
}

fn bounds(route: Routes) -> Bounds {
    if route == Routes::FABRIC {
        let sessions = FABRIC_SESSIONS;
        Bounds { sessions, over_fabric: sessions, descriptors: MOST_FABRIC_DESCRIPTORS }
    } else if route == BOTH {
        let asked = std::env::var("MANY_SESSIONS").ok();
        let sessions = asked.map_or(OF_BOTH, |count| count.parse().expect("a number"));
        Bounds { sessions, over_fabric: OVER_FABRIC, descriptors: MOST_DESCRIPTORS }
    } else {
        Bounds { sessions: SESSIONS, over_fabric: 0, descriptors: MOST_DESCRIPTORS }
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").expect("threads").count()
}

/// The memory that this process uses, in bytes; shared memory counts in full.
fn memory() -> usize {
    let text = fs::read_to_string("/proc/self/status").expect("the status");
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
    let kib: usize =
        line.split_ascii_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number");
    kib << 10
}

/// Serves a session until it may sleep; returns what has come.
fn serve(session: &Session) -> Result<Vec<Message>, Error> {
    let mut messages = Vec::new();
    loop {
        let moved = session.progress()?;
        messages.extend(std::iter::from_fn(|| session.take()));
        if !moved && session.arm()? {
            return Ok(messages);
        }
    }
}

/// Takes the peer's message of each session, and answers it: all that an idle session has is there.
fn converse(sessions: &[Session]) {
    let late = || Some(Instant::now() + Duration::from_secs(600));
    for session in sessions {
        assert_eq!(session.receive(late()).expect("a message").expect("in time").data, b"idle");
        session.send(b"", b"idle").expect("a message");
    }
}

/// An idle session takes at most so much memory.
fn costs(which: &str, bytes: usize, most: usize) {
    println!("an idle session {which}: {bytes} bytes");
    assert!(bytes <= most, "an idle session {which}: {bytes} bytes");
}

/// Each way has a process of its own, this program again: what is counted is that of the whole
/// process, and memory that one way has freed would be the next one's.
#[test]
fn many_idle_sessions_sleep_on_one_descriptor() {
    if let Ok(route) = std::env::var("MANY_ROUTE") {
        return many(Routes(route.parse().expect("a number")));
    }
    let fabric = openlapi_tests::has_fabric().then_some(Routes::FABRIC);
    let both = fabric.map(|_| BOTH);
    let own = std::env::current_exe().expect("this program");
    for route in [Routes::SHARED_MEMORY, Routes::UDP].into_iter().chain(fabric).chain(both) {
        let mut again = Command::new(&own);
        again.args(["--exact", "many_idle_sessions_sleep_on_one_descriptor", "--nocapture"]);
        let status = again.env("MANY_ROUTE", route.0.to_string()).status().expect("this program");
        assert!(status.success(), "{route}: {status}");
    }
}

fn many(route: Routes) {
    let most = bounds(route);
    let needed = most.sessions * most.descriptors + 100;
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < needed as u64) {
        let why = format!("RLIMIT_NOFILE is {:?}, and {needed} descriptors may be needed", limit.maximum);
        return skipped("1,000 sessions of a server", &why);
    }
    setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit })
        .expect("a limit");
    let path = std::env::temp_dir().join(format!("openlapi-many-{}", std::process::id()));
    let settings = Settings { routes: route, patience: Duration::from_secs(600), ..Settings::default() };
    let mut listener = Listener::unix(&path, &settings).expect("a listener");
    let mut peer = Command::new(env!("CARGO_BIN_EXE_session_peer"))
        .args(["call", &format!("unix:{}", path.display()), &route.0.to_string(), "idle"])
        .arg(most.sessions.to_string())
        .stdout(Stdio::null())
        .spawn()
        .expect("the peer");
    let late = || Some(Instant::now() + Duration::from_secs(600));
    let first = listener.accept(late()).expect("a session").expect("in time");
    // What the process has once is there.
    let before = (descriptors(), threads());
    let mut last = memory();
    let mut grown = || {
        let now = memory();
        now.saturating_sub(std::mem::replace(&mut last, now))
    };
    let mut sessions = vec![first];
    let mut accept_until = |count| {
        while sessions.len() < count {
            sessions.push(listener.accept(late()).expect("a session").expect("in time"));
        }
    };
    accept_until(most.over_fabric);
    let mut by_fabric = grown();
    accept_until(most.sessions);
    let mut by_others = grown();
    let (fabric, others) = sessions.split_at(most.over_fabric);
    converse(fabric);
    by_fabric += grown();
    converse(others);
    by_others += grown();
    assert!(route != BOTH || fabric.iter().all(|session| session.route() == Routes::FABRIC));
    assert!(others.iter().all(|session| session.route() != Routes::FABRIC));
    // The first one was there before.
    if let Some(more) = fabric.len().checked_sub(1) {
        costs("by libfabric", by_fabric / more, MOST_FABRIC_MEMORY);
    }
    if !others.is_empty() {
        let more = others.len() - usize::from(fabric.is_empty());
        costs(&format!("by {}", others[0].route()), by_others / more, MOST_MEMORY);
    }
    if most.sessions >= SESSIONS {
        costs("on average", (by_fabric + by_others) / (most.sessions - 1), MOST_MEMORY);
    }
    let count = descriptors().saturating_sub(before.0) / (most.sessions - 1);
    println!("{route}: {count} descriptors for a session, {} threads in all", threads());
    assert!(count <= most.descriptors, "{count} descriptors for a session");
    assert_eq!(threads(), before.1, "a session has a thread");

    // One descriptor for all of them.
    let all = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll descriptor");
    for (number, session) in (0..).zip(&sessions) {
        epoll::add(&all, session, epoll::EventData::new_u64(number), epoll::EventFlags::IN).expect("room");
        assert_eq!(serve(session).expect("an open session"), []);
    }
    let mut space = [std::mem::MaybeUninit::<epoll::Event>::uninit(); 64];
    let mut open: Vec<Option<Session>> = sessions.into_iter().map(Some).collect();
    // Serves the sessions that the descriptor names after a wait.
    let mut turn = |open: &[Option<Session>], at_most: Duration| {
        let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(at_most.subsec_nanos()) };
        let ready = epoll::wait(&all, &mut space, Some(&limit)).expect("events").0;
        let serve = |event: &epoll::Event| {
            let number = event.data.u64() as usize;
            open[number].as_ref().map(|session| (number, serve(session)))
        };
        ready.iter().filter_map(serve).collect::<Vec<_>>()
    };
    let mut deadline = Deadline::after(Duration::from_secs(60));
    // They all come to rest.
    loop {
        let woken = turn(&open, Duration::from_millis(20));
        if woken.is_empty() {
            break;
        }
        for (_, came) in woken {
            assert_eq!(came.expect("an open session"), []);
        }
        assert!(!deadline.has_passed(), "the sessions do not come to rest");
    }
    // The peer sends by one that sleeps when another one asks it to.
    let asking = open[0].as_ref().expect("an open session");
    asking.progress().expect("an open session");
    asking.send(b"next", b"woken").expect("a message");
    assert_eq!(serve(asking).expect("an open session"), []);
    let mut deadline = Deadline::after(Duration::from_secs(60));
    let mut arrived: Vec<(usize, Vec<u8>)> = Vec::new();
    while arrived.is_empty() {
        for (number, came) in turn(&open, SHORT) {
            let came = came.expect("an open session");
            arrived.extend(came.into_iter().map(|message| (number, message.data)));
        }
        assert!(!deadline.has_passed(), "a message does not wake the descriptor");
    }
    assert!(matches!(&arrived[..], [(1.., data)] if data == b"woken"), "{arrived:?}");
    // This side closes half of them in order, and the peer leaves the others without a word.
    for place in open.iter_mut().step_by(2) {
        place.take().expect("an open session").close().expect("an orderly end");
    }
    peer.kill().expect("a signal");
    peer.wait().expect("its end");
    let mut deadline = Deadline::after(Duration::from_secs(120));
    let mut lost = 0;
    while lost < most.sessions / 2 {
        for (number, came) in turn(&open, SHORT) {
            match came {
                Ok(came) => assert_eq!(came, []),
                Err(Error::Lost(_)) => {
                    open[number] = None;
                    lost += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(!deadline.has_passed(), "{lost} of the sessions know that the peer is gone");
    }
    drop(open);
    if route == BOTH {
        // Their endpoints are free for others.
        let mut peer = Command::new(env!("CARGO_BIN_EXE_session_peer"))
            .args(["call", &format!("unix:{}", path.display()), &route.0.to_string(), "idle"])
            .stdout(Stdio::null())
            .spawn()
            .expect("the peer");
        let session = listener.accept(late()).expect("a session").expect("in time");
        assert_eq!(session.route(), Routes::FABRIC);
        session.close().expect("an orderly end");
        peer.wait().expect("its end");
    }
    assert!(descriptors() <= before.0, "{} descriptors are left of {}", descriptors(), before.0);
}
