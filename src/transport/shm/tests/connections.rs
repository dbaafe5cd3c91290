//! Shared memory whose tasks connect by real sockets, each with the thread of its listener.

use super::*;
use crate::base::clock::test_deadline;
use crate::base::process::Process;
use crate::base::this_program::this_program;
use crate::job::Link;
use crate::job::connect::{ConnectSettings, Connections, Service};
use crate::transport::conformance::Calls;
use crate::transport::{Endpoint, Outgoing, Piece, SendOutcome, Want};
use crate::wire::hello::Hello;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn begin(task: Task, tasks: u32, key: &str) -> ShmTransport {
    begin_within(task, tasks, key, test_deadline())
}

fn begin_within(task: Task, tasks: u32, key: &str, init_timeout: Duration) -> ShmTransport {
    begin_among(task, key, &vec![Process::default(); tasks as usize], init_timeout)
}

/// A task of a job with these processes.
fn begin_among(task: Task, key: &str, processes: &[Process], init_timeout: Duration) -> ShmTransport {
    let tasks = processes.len() as u32;
    let (own, site) = Own::create(task, Group::all(tasks)).expect("shared memory");
    let key = format!("shm {} {key}", std::process::id());
    let landmark = remote::landmark();
    let asymmetric = asymmetric_barrier::registered();
    let incarnation = u64::from_ne_bytes(crate::base::random::random());
    let (landmark, mark) = (landmark.address, landmark.mark);
    let link = Link::none();
    let openings = link.openings(&key, tasks, 0);
    let generation = openings.open(task);
    let hello =
        Hello { task, tasks, generation, incarnation, landmark, mark, asymmetric, ..Hello::default() };
    let settings = ConnectSettings {
        job: key,
        instance: 0,
        ends: link.ends().clone(),
        openings,
        hello,
        init_timeout,
        log: crate::error::Log::none(),
        info_level: 0,
        processes: processes.into(),
        hint: None,
    };
    let start = |service: Service| {
        let thread = std::thread::spawn(move || service.run());
        let join: Box<dyn FnOnce() + Send> = Box::new(move || thread.join().expect("the listener's thread"));
        Ok(join)
    };
    let connections = Connections::open(settings, site, start).expect("a listener");
    let memory = Some(CrossMemory::new(tasks, false, None));
    ShmTransport::new(own, asymmetric, memory, Box::new(connections))
}

#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + test_deadline();
    while !done() {
        assert!(Instant::now() < end, "waited without success until {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn try_pass(from: &mut ShmTransport, to: Task, word: u64) -> SendOutcome {
    let head = word.to_ne_bytes();
    let packet =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // SAFETY: the head lives during the call.
    unsafe { from.try_send(to, &packet) }
}

/// A packet of nothing but a head, from one to the other.
#[track_caller]
fn pass(from: &mut ShmTransport, to: &mut ShmTransport, word: u64) {
    until("a packet is sent", || match try_pass(from, to.me, word) {
        SendOutcome::Sent => true,
        outcome => {
            assert_eq!(outcome, SendOutcome::NoRoom);
            assert!(to.recv().is_none());
            false
        }
    });
    take(from.me, to, word);
}

/// The packet that `from` has sent arrives.
#[track_caller]
fn take(from: Task, to: &mut ShmTransport, word: u64) {
    let mut found = None;
    until("a packet arrives", || {
        found = to.recv();
        found.is_some()
    });
    let packet = found.expect("a packet");
    // SAFETY: the packet is not released yet, and its head is 8-byte aligned.
    assert_eq!((packet.src, unsafe { packet.head.cast::<u64>().read() }), (from, word));
    to.release(packet);
}

/// The two let each other rejoin; what is reported to each of the other.
#[track_caller]
fn meet(one: &mut ShmTransport, other: &mut ShmTransport) -> [Option<(Task, u64)>; 2] {
    let mut met = [None; 2];
    until("both are back", || {
        met = [met[0].or_else(|| one.rejoined()), met[1].or_else(|| other.rejoined())];
        assert!(one.recv().is_none() && other.recv().is_none());
        met.iter().all(Option::is_some)
    });
    met
}

#[test]
fn tasks_connect_when_they_first_need_each_other() {
    let mut ends: Vec<_> = (0..3).map(|task| begin(task, 3, "first")).collect();
    let [one, two, three] = &mut ends[..] else { panic!("three tasks") };
    assert_eq!(one.standing(2).state, PeerState::Connecting);
    pass(one, two, 5);
    pass(two, one, 6);
    // Both at once.
    assert_ne!(try_pass(two, 2, 7), SendOutcome::Sent);
    if try_pass(three, 1, 8) == SendOutcome::Sent {
        // The listeners have connected the two in the meantime.
        take(2, two, 8);
    }
    pass(three, two, 9);
    pass(two, three, 10);
    assert!(
        one.standing(1).absence.is_none() && one.standing(2).absence.is_some(),
        "tasks 0 and 2 have not needed each other"
    );
    assert_eq!(three.polled.tasks(), [1]);
}

#[test]
fn a_task_that_does_not_come_counts_as_dead_after_a_while() {
    let mut one = begin_within(0, 2, "never", Duration::from_millis(300));
    assert_eq!(one.standing(1).absence.as_deref(), Some("has not called LAPI_Init, or has died since"));
    assert_eq!(try_pass(&mut one, 1, 1), SendOutcome::NoRoom);
    until("it counts as dead", || one.standing(1).state == PeerState::Dead);
    let why = one.standing(1).absence.expect("a reason");
    assert!(why.contains("LAPI_INIT_TIMEOUT"), "{why}");
}

#[test]
fn a_task_whose_process_has_ended_is_dead_before_the_timeout() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
    let processes = [Process::own(), Process::of(child.id()), Process::default()];
    let mut one = begin_among(0, "ended", &processes, Duration::MAX);
    assert_eq!(try_pass(&mut one, 1, 1), SendOutcome::NoRoom);
    assert_eq!(
        (one.standing(1).state, one.standing(2).state),
        (PeerState::Connecting, PeerState::Connecting)
    );
    drop(child.stdin.take());
    child.wait().expect("its status");
    until("it counts as dead", || one.standing(1).state == PeerState::Dead);
    assert_eq!(one.standing(2).state, PeerState::Connecting, "a process that is not known");
    let why = one.standing(1).absence.expect("a reason");
    assert!(why.ends_with("has ended") && why.contains(&child.id().to_string()), "{why}");
}

/// Counts what the transport asks of it.
struct Counting(Arc<AtomicUsize>);

impl Connector for Counting {
    fn want(&self, _peer: Task) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn absence(&self, _peer: Task) -> connection::Absence {
        connection::Absence { state: PeerState::Connecting, why: String::new() }
    }
}

/// What waits for a peer is offered in every round of the dispatcher, and may wait for
/// hundreds of peers.
#[test]
fn a_connection_is_asked_for_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let (own, _site) = Own::create(0, Group::all(3)).expect("shared memory");
    let mut end = ShmTransport::new(own, false, None, Box::new(Counting(asked.clone())));
    for _ in 0..1000 {
        assert_eq!(try_pass(&mut end, 1, 1), SendOutcome::NoRoom);
        end.want(Want::Connection(1));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    end.want(Want::Connection(2));
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[test]
fn a_task_may_come_late() {
    let mut one = begin(0, 2, "late");
    assert_eq!(try_pass(&mut one, 1, 1), SendOutcome::NoRoom);
    std::thread::sleep(Duration::from_millis(50));
    let mut two = begin(1, 2, "late");
    pass(&mut one, &mut two, 40);
    pass(&mut two, &mut one, 41);
}

#[test]
fn a_task_that_drops_its_end_is_seen_to_have_left() {
    let (mut one, mut two) = (begin(0, 2, "drop"), begin(1, 2, "drop"));
    pass(&mut one, &mut two, 1);
    drop(two);
    assert_eq!(one.standing(1).state, PeerState::Closed);
}

fn in_use() -> (usize, usize) {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("/proc").count();
    (descriptors, maps().filter(|line| line.contains("memfd")).count())
}

/// Other tests of this process open descriptors too: this one is run again in a process of its own.
#[test]
fn two_hundred_restarts_leave_nothing_behind() {
    const NAME: &str = "transport::shm::tests::connections::two_hundred_restarts_leave_nothing_behind";
    const ALONE: &str = "TWO_HUNDRED_RESTARTS";
    if std::env::var_os(ALONE).is_none() {
        let run = this_program().args([NAME, "--exact"]).env(ALONE, "1").output();
        let run = run.expect("a process");
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let mut one = begin(0, 2, "restarts");
    let mut before = None;
    for round in 0..200 {
        let mut other = begin(1, 2, "restarts");
        if round != 0 {
            one.rejoin(1, 7).expect("a listener");
            other.want(Want::Connection(0));
            assert_eq!(meet(&mut one, &mut other), [Some((1, NO_EPOCH)), Some((0, 7))]);
        }
        pass(&mut one, &mut other, round);
        pass(&mut other, &mut one, round + 1);
        // Every third time the two part and reconnect before the other one is gone.
        if round % 3 == 0 {
            one.part(1);
            other.part(0);
            assert!(one.recv().is_none() && other.recv().is_none());
            one.rejoin(1, 8).expect("a listener");
            other.rejoin(0, 9).expect("a listener");
            assert_eq!(meet(&mut one, &mut other), [Some((1, 9)), Some((0, 8))]);
            pass(&mut one, &mut other, round);
        }
        drop(other);
        one.part(1);
        assert!(one.recv().is_none());
        match before {
            Some(before) => assert_eq!(in_use(), before, "descriptors and mappings after round {round}"),
            None => before = Some(in_use()),
        }
    }
}
