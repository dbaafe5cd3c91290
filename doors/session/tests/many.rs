//! A server with many sessions: what an idle one costs, and that one descriptor wakes for all.
//! Alone in its process, so that what is counted belongs to the sessions.

use openlapi_session::{Error, Listener, Routes, Session, Settings};
use openlapi_tests::{Deadline, skipped};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::fs;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SESSIONS: usize = 1000;
/// Over libfabric alone, whose `ofi_rxm` has 2,048 buffers for each endpoint: 71 MB.
const FABRIC_SESSIONS: usize = 10;
/// Libfabric or UDP.
const BOTH: Routes = Routes(2 | 4);
/// Sessions that may use either; `MANY_SESSIONS` asks for another number.
const OF_BOTH: usize = 100;
/// Those of them that are over libfabric: the first ones.
const OVER_FABRIC: usize = 4;
/// Bytes of memory that an idle session may take.
const MOST_MEMORY: usize = 512 << 10;
const MOST_FABRIC_MEMORY: usize = 100 << 20;
/// Descriptors that a session takes, at most.
const MOST_DESCRIPTORS: usize = 16;
const MOST_FABRIC_DESCRIPTORS: usize = 24;

/// What the sessions of one way are, and may take.
struct Bounds {
    sessions: usize,
    memory: usize,
    descriptors: usize,
}

fn bounds(route: Routes) -> Bounds {
    if route == Routes::FABRIC {
        let (memory, descriptors) = (MOST_FABRIC_MEMORY, MOST_FABRIC_DESCRIPTORS);
        Bounds { sessions: FABRIC_SESSIONS, memory, descriptors }
    } else if route == BOTH {
        let asked = std::env::var("MANY_SESSIONS").ok();
        let sessions = asked.map_or(OF_BOTH, |count| count.parse().expect("a number"));
        // The first one is there before anything is counted.
        let over_fabric = (OVER_FABRIC - 1) * MOST_FABRIC_MEMORY / (sessions - 1);
        let memory = MOST_MEMORY + over_fabric;
        Bounds { sessions, memory, descriptors: MOST_DESCRIPTORS }
    } else {
        Bounds { sessions: SESSIONS, memory: MOST_MEMORY, descriptors: MOST_DESCRIPTORS }
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

fn wait(epoll: &impl AsFd, at_most: Duration) -> bool {
    let limit = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: i64::from(at_most.subsec_nanos()) };
    poll(&mut [PollFd::new(epoll, PollFlags::IN)], Some(&limit)).is_ok_and(|ready| ready != 0)
}

/// Serves a session until it may sleep; returns whether it is still open.
fn serve(session: &Session) -> bool {
    loop {
        match session.progress().and_then(|moved| if moved { Ok(false) } else { session.arm() }) {
            Ok(true) => return true,
            Ok(false) => {}
            Err(Error::Closed) => return false,
            Err(error) => panic!("{error}"),
        }
    }
}

/// One way after the other: what is counted is that of the whole process.
#[test]
fn many_idle_sessions_sleep_on_one_descriptor() {
    let fabric = openlapi_tests::has_fabric().then_some(Routes::FABRIC);
    let both = fabric.map(|_| BOTH);
    for route in [Routes::SHARED_MEMORY, Routes::UDP].into_iter().chain(fabric).chain(both) {
        many(route);
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
    let before = (memory(), descriptors(), threads());
    let mut sessions = vec![first];
    while sessions.len() < most.sessions {
        sessions.push(listener.accept(late()).expect("a session").expect("in time"));
    }
    for session in &sessions {
        assert_eq!(session.receive(late()).expect("a message").expect("in time").data, b"idle");
        session.send(b"", b"idle").expect("a message");
    }
    if route == BOTH {
        let over_fabric = |session: &&Session| session.route() == Routes::FABRIC;
        assert_eq!(sessions.iter().filter(over_fabric).count(), OVER_FABRIC);
        assert!(sessions[..OVER_FABRIC].iter().all(|session| over_fabric(&session)));
    }
    let each = |now: usize, before: usize| now.saturating_sub(before) / (most.sessions - 1);
    let (memory, count) = (each(memory(), before.0), each(descriptors(), before.1));
    println!("{route}, an idle session: {memory} bytes, {count} descriptors; {} threads in all", threads());
    assert!(memory <= most.memory, "{memory} bytes for a session");
    assert!(count <= most.descriptors, "{count} descriptors for a session");
    assert_eq!(threads(), before.2, "a session has a thread");

    // One descriptor for all of them.
    let all = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll descriptor");
    for (number, session) in (0..).zip(&sessions) {
        epoll::add(&all, session, epoll::EventData::new_u64(number), epoll::EventFlags::IN).expect("room");
        assert!(serve(session));
    }
    let mut space = [std::mem::MaybeUninit::<epoll::Event>::uninit(); 64];
    let mut open: Vec<Option<Session>> = sessions.into_iter().map(Some).collect();
    let mut turn = |open: &mut Vec<Option<Session>>| {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = epoll::wait(&all, &mut space, Some(&zero)).expect("events").0.to_vec();
        for event in ready {
            let place = &mut open[event.data.u64() as usize];
            if place.as_ref().is_some_and(|session| !serve(session)) {
                place.take().expect("an open session").close().expect("it was closed in order");
            }
        }
    };
    let mut deadline = Deadline::after(Duration::from_secs(60));
    // They all come to rest.
    while wait(&all, Duration::from_millis(20)) {
        turn(&mut open);
        assert!(!deadline.has_passed(), "the sessions do not come to rest");
    }
    // This side closes half of them in order, and the peer leaves the others without a word.
    for place in open.iter_mut().step_by(2) {
        place.take().expect("an open session").close().expect("an orderly end");
    }
    peer.kill().expect("a signal");
    peer.wait().expect("its end");
    let mut deadline = Deadline::after(Duration::from_secs(120));
    let mut lost = 0;
    while lost < most.sessions / 2 {
        for place in open.iter_mut().skip(1).step_by(2) {
            if place.as_ref().is_some_and(|session| matches!(session.progress(), Err(Error::Lost(_)))) {
                *place = None;
                lost += 1;
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
    assert!(descriptors() <= before.1, "{} descriptors are left of {}", descriptors(), before.1);
}
