//! Rails over transports in memory, whose links go down and come up.

mod accesses;
mod replacement;

use super::endpoint::ACKNOWLEDGE;
use super::{Rail, RailEvent, Rails};
use crate::base::clock::test_deadline;
use crate::base::rng::Rng;
use crate::error::Result;
use crate::transport::conformance::{self, Served, served};
use crate::transport::link_state::Links;
use crate::transport::parcel::Parcel;
use crate::transport::testing::forward::forward;
use crate::transport::testing::mem::{self, MemOptions, MemTransport};
use crate::transport::{
    AccessId, Door, Endpoint, Inbound, Limits, NO_EPOCH, Outgoing, PeerState, Peers, Piece, RemoteAccess,
    Report, SendOutcome, Tally, Task, Wakeup, Want, Withdrawal,
};
use crate::wire::rails::NOTE;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The links of all rails, the same for all tasks.
struct Network {
    up: AtomicU8,
    /// Rails that refuse packets though their peers are there, bit by bit.
    refusing: AtomicU8,
    /// Tasks whose processes have ended, as the launcher reports it, bit by bit.
    ended: AtomicU8,
    /// By rail and task.
    boxes: Vec<Vec<Mutex<Notes>>>,
    events: Vec<OwnedFd>,
    over: AtomicBool,
}

#[derive(Default)]
struct Notes {
    arrived: VecDeque<(Task, [u8; NOTE])>,
    armed: bool,
}

impl Network {
    fn set(&self, up: u8) {
        self.up.store(up, Ordering::Release);
        for event in &self.events {
            rustix::io::write(event, &1_u64.to_ne_bytes()).expect("an event");
        }
    }
}

struct TestLinks {
    network: Arc<Network>,
    task: usize,
}

impl Links for TestLinks {
    fn poll(&mut self) -> Option<u8> {
        let _ = rustix::io::read(&self.network.events[self.task], &mut [0; 8]);
        Some(self.network.up.load(Ordering::Acquire))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.network.events[self.task].as_fd())
    }
}

/// One task's end of one rail. While its link is down, what is sent stays here, and
/// nothing is received.
struct TestRail {
    inner: MemTransport,
    me: Task,
    tasks: u32,
    number: usize,
    /// The rail's process has taken the place of another one.
    replaces: bool,
    network: Arc<Network>,
    held: VecDeque<(Task, Parcel)>,
    lost: BTreeSet<Task>,
    /// Tasks whose end was reported.
    buried: BTreeSet<Task>,
    rng: Rng,
    /// Peers that have rejoined, and other reports, which are asked for elsewhere.
    joined: VecDeque<(Task, u64)>,
    accesses: VecDeque<(AccessId, io::Result<()>)>,
}

impl TestRail {
    fn new(inner: MemTransport, me: Task, tasks: u32, number: usize, network: &Arc<Network>) -> Self {
        Self {
            inner,
            me,
            tasks,
            number,
            replaces: false,
            network: network.clone(),
            held: VecDeque::new(),
            lost: BTreeSet::new(),
            buried: BTreeSet::new(),
            rng: Rng::stream(number as u64, me.into()),
            joined: VecDeque::new(),
            accesses: VecDeque::new(),
        }
    }

    fn inner(&self) -> &MemTransport {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut MemTransport {
        &mut self.inner
    }

    fn is_up(&self) -> bool {
        self.network.up.load(Ordering::Acquire) & 1 << self.number != 0
    }

    fn send_held(&mut self) {
        while self.is_up()
            && let Some((to, parcel)) = self.held.front()
        {
            let packet = parcel.inbound(0);
            // SAFETY: the parcel lives.
            let sent = unsafe {
                let head = std::slice::from_raw_parts(packet.head, packet.head_len);
                let first = Piece { ptr: packet.body, len: packet.body_len };
                let out = Outgoing { head, first, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
                self.inner.try_send(*to, &out)
            };
            if sent == SendOutcome::NoRoom {
                return;
            }
            self.held.pop_front();
        }
    }

    /// Sorts what the rail reports: its owner asks for accesses apart from events.
    fn sort_reports(&mut self) {
        while let Some(report) = self.inner.report() {
            match report {
                Report::Joined(task, epoch) => self.joined.push_back((task, epoch)),
                Report::Accessed(id, outcome) => self.accesses.push_back((id, outcome)),
                Report::Free(_) | Report::Written(_) => unreachable!("a rail is given copies, and no key"),
            }
        }
    }

    fn notes(&self, task: Task) -> &Mutex<Notes> {
        &self.network.boxes[self.number][task as usize]
    }
}

impl Rail for TestRail {
    fn become_rail(&mut self) {}

    fn replaces(&self) -> bool {
        self.replaces
    }

    fn note_contact(&mut self, _peer: Task) {}

    fn admit(&mut self, _peer: Task) {}

    fn send_note(&mut self, peer: Task, note: &[u8; NOTE]) -> bool {
        if !self.is_up() || self.rng.chance(0.1) {
            return self.rng.chance(0.5);
        }
        let copies = 1 + self.rng.below(2);
        let mut notes = self.notes(peer).lock().expect("a lock");
        for _ in 0..copies {
            notes.arrived.push_back((self.me, *note));
        }
        let armed = notes.armed;
        drop(notes);
        if armed {
            self.inner.want(Want::Attention(peer));
        }
        true
    }

    fn event(&mut self) -> Option<RailEvent> {
        for peer in (0..self.tasks).filter(|peer| *peer != self.me) {
            let standing = self.inner.standing(peer);
            let away = matches!(standing.state, PeerState::Closed | PeerState::Dead);
            if !away {
                self.lost.remove(&peer);
            } else if self.lost.insert(peer) {
                return Some(if standing.has_parted {
                    RailEvent::Parted(peer, NO_EPOCH)
                } else {
                    RailEvent::Lost(peer)
                });
            }
            let ended = self.network.ended.load(Ordering::Acquire) & 1 << peer != 0;
            if ended && self.buried.insert(peer) {
                return Some(RailEvent::Ended(peer));
            }
        }
        if !self.is_up() {
            return None;
        }
        self.sort_reports();
        if let Some((task, epoch)) = self.joined.pop_front() {
            return Some(RailEvent::Rejoined(task, epoch));
        }
        let (src, note) = self.notes(self.me).lock().expect("a lock").arrived.pop_front()?;
        Some(RailEvent::Note(src, note))
    }

    fn leave(&mut self, peer: Task, _failed: bool) {
        self.withdraw(peer, Withdrawal::Connection);
    }
}

impl Endpoint for TestRail {
    forward!(look, release);

    fn limits(&self, peer: Task) -> Limits {
        Limits { keeps_time: true, ..self.inner.limits(peer) }
    }

    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> SendOutcome {
        if self.network.refusing.load(Ordering::Acquire) & 1 << self.number != 0 {
            return SendOutcome::Gone;
        }
        self.send_held();
        if self.held.is_empty() && self.is_up() || !self.inner.is_open(peer) {
            // SAFETY: the caller's promise.
            return unsafe { self.inner.try_send(peer, packet) };
        }
        if self.held.len() > 100 {
            return SendOutcome::NoRoom;
        }
        // SAFETY: the caller's promise.
        self.held.push_back((peer, unsafe { Parcel::gather(self.me, packet, Vec::new()) }));
        SendOutcome::Sent
    }

    fn door(&mut self, _peer: Task) -> Option<&mut Door> {
        None
    }

    fn report(&mut self) -> Option<Report> {
        self.sort_reports();
        self.accesses.pop_front().map(|(id, outcome)| Report::Accessed(id, outcome))
    }

    fn recv(&mut self) -> Option<Inbound> {
        self.send_held();
        if self.is_up() { self.inner.recv() } else { None }
    }

    fn due(&self) -> Option<Instant> {
        (!self.held.is_empty()).then(|| Instant::now() + Duration::from_millis(1))
    }

    fn want(&mut self, what: Want) {
        if what == Want::Serve {
            self.send_held();
        }
        self.inner.want(what);
    }

    fn tally(&self) -> Tally {
        let inner = self.inner.tally();
        Tally { outstanding: inner.outstanding + self.held.len() as u64, ..inner }
    }

    fn close(&mut self) {
        self.send_held();
        self.inner.close();
    }
}

impl RemoteAccess for TestRail {
    forward!(RemoteAccess);
}

impl Wakeup for TestRail {
    forward!(event_fd);

    fn arm(&mut self) -> bool {
        self.send_held();
        let mut notes = self.network.boxes[self.number][self.me as usize].lock().expect("a lock");
        if self.is_up() && !notes.arrived.is_empty() {
            return false;
        }
        notes.armed = self.inner.arm();
        notes.armed
    }

    fn disarm(&mut self) {
        self.notes(self.me).lock().expect("a lock").armed = false;
        self.inner.disarm();
    }
}

impl Peers for TestRail {
    forward!(standing, is_open, view);

    fn withdraw(&mut self, peer: Task, what: Withdrawal) {
        if what == Withdrawal::Connection {
            self.joined.retain(|(task, _)| *task != peer);
            self.held.retain(|(to, _)| *to != peer);
            self.lost.insert(peer);
        }
        self.inner.withdraw(peer, what);
    }

    fn rejoin(&mut self, peer: Task, epoch: u64) -> Result<()> {
        self.held.retain(|(to, _)| *to != peer);
        self.lost.remove(&peer);
        self.inner.rejoin(peer, epoch)
    }
}

/// Rails that reach memory by keys, and report accesses later.
fn keyed() -> MemOptions {
    MemOptions { remote: true, keyed: true, pending: true, ..MemOptions::default() }
}

/// Takes links down and up while it lives.
struct LinkFailures {
    network: Arc<Network>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for LinkFailures {
    fn drop(&mut self) {
        self.network.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A task, and what ends with it.
type End = Served<Rails<TestRail>>;

/// `rails` rails between `tasks` tasks.
fn network(tasks: u32, rails: usize, options: MemOptions) -> (Vec<End>, Arc<Network>) {
    let (ends, network) = unserved(tasks, rails, options);
    (served(ends), network)
}

/// The ends of a network without a thread that serves them.
fn unserved(tasks: u32, rails: usize, options: MemOptions) -> (Vec<Rails<TestRail>>, Arc<Network>) {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let network = Arc::new(Network {
        up: AtomicU8::new(u8::MAX),
        refusing: AtomicU8::new(0),
        ended: AtomicU8::new(0),
        boxes: (0..rails).map(|_| (0..tasks).map(|_| Mutex::default()).collect()).collect(),
        events: (0..tasks).map(|_| eventfd(0, flags).expect("an event descriptor")).collect(),
        over: AtomicBool::new(false),
    });
    let mut ends: Vec<Vec<TestRail>> = (0..tasks).map(|_| Vec::new()).collect();
    for number in 0..rails {
        for (task, inner) in mem::network(tasks, options).into_iter().enumerate() {
            ends[task].push(TestRail::new(inner, task as Task, tasks, number, &network));
        }
    }
    let joined = ends.into_iter().enumerate().map(|(task, rails)| {
        let links = Box::new(TestLinks { network: network.clone(), task });
        Rails::new(rails, task as Task, tasks, links, None).expect("rails")
    });
    (joined.collect(), network)
}

fn calm(tasks: u32, rails: usize, options: MemOptions) -> Vec<End> {
    network(tasks, rails, options).0
}

/// The links of `changing` go down and come up as the seed decides, one at a time.
fn failures(network: &Arc<Network>, changing: u8, seed: u64) -> LinkFailures {
    let own = network.clone();
    let mut rng = Rng::new(seed);
    let thread = std::thread::spawn(move || {
        while !own.over.load(Ordering::Acquire) {
            let rail = rng.below(8);
            if changing & 1 << rail != 0 {
                own.set(!(1 << rail));
                std::thread::sleep(Duration::from_micros(200 + rng.below(3_000)));
            }
            own.set(u8::MAX);
            std::thread::sleep(Duration::from_micros(10_000 + rng.below(40_000)));
        }
        own.set(u8::MAX);
    });
    LinkFailures { network: network.clone(), thread: Some(thread) }
}

#[test]
fn conforms() {
    conformance::suite(|tasks| calm(tasks, 2, MemOptions::default()));
}

#[test]
fn conforms_when_rails_report_later() {
    let later = MemOptions { take: true, capacity: 2, lose: 31, ..keyed() };
    conformance::suite(|tasks| calm(tasks, 3, later));
}

#[test]
fn conforms_with_keys() {
    for pending in [false, true] {
        conformance::checks_keys(|tasks| calm(tasks, 2, MemOptions { pending, ..keyed() }));
    }
    conformance::suite(|tasks| calm(tasks, 8, keyed()));
}

/// The links of `changing` fail all the time.
fn conforms_while_links_fail(rails: usize, changing: u8, options: MemOptions, seed: u64) {
    println!("seed {seed}");
    let made = Mutex::new(None);
    conformance::disturbed(|tasks| {
        let (ends, network) = network(tasks, rails, options);
        *made.lock().expect("a lock") = Some(failures(&network, changing, seed));
        ends
    });
}

/// One rail is stable: an access needs the keys of one at least.
#[test]
fn conforms_while_a_link_fails() {
    conforms_while_links_fail(2, 0b10, keyed(), 1);
}

#[test]
fn conforms_while_all_links_fail() {
    conforms_while_links_fail(2, 0b11, MemOptions::default(), 2);
    conforms_while_links_fail(3, 0b111, MemOptions::default(), 3);
}

/// A provider may refuse the address of a peer that is there.
#[test]
fn a_rail_that_refuses_packets_is_replaced() {
    let body = *b"a packet";
    let packet = Outgoing {
        head: &[1; 8],
        first: Piece { ptr: body.as_ptr(), len: body.len() },
        second: Piece::EMPTY.into(),
        copy_limit: usize::MAX,
    };
    for (refusing, outcome, state) in [
        (0b01, SendOutcome::Sent, PeerState::Up),
        (0b10, SendOutcome::Sent, PeerState::Up),
        (0b11, SendOutcome::Gone, PeerState::Dead),
    ] {
        let (mut ends, network) = network(2, 2, MemOptions::default());
        network.refusing.store(refusing, Ordering::Release);
        // SAFETY: the pieces are readable during the call.
        assert_eq!(unsafe { ends[0].try_send(1, &packet) }, outcome, "{refusing:b}");
        assert_eq!(ends[0].standing(1).state, state, "{refusing:b}");
    }
}

/// A packet that finds no room brings no acknowledgement: a note does.
#[test]
fn what_was_accepted_is_acknowledged_without_room_for_packets() {
    let (mut ends, _network) = unserved(2, 1, MemOptions { capacity: 1, ..MemOptions::default() });
    let packet =
        Outgoing { head: &[1; 8], first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // SAFETY: the pieces are empty.
    let send = |end: &mut Rails<TestRail>, to| unsafe { end.try_send(to, &packet) };
    assert_eq!(send(&mut ends[1], 0), SendOutcome::Sent);
    for _ in 0..3 {
        assert_eq!(send(&mut ends[0], 1), SendOutcome::Sent);
        let packet = ends[1].recv().expect("the packet");
        ends[1].release(packet);
    }
    assert_eq!(send(&mut ends[1], 0), SendOutcome::NoRoom);
    std::thread::sleep(2 * ACKNOWLEDGE);
    ends[1].want(Want::Serve);
    ends[0].want(Want::Serve);
    assert_eq!(ends[0].view(1).connection.map(|seen| seen.in_flight), Some(0));
}
