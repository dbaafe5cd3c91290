//! The endpoints of libfabric, tested against the contract of transports. The tasks are in this
//! process, and reach each other by the loopback interface or, with the provider `shm`, by
//! shared memory.

mod bursts;
mod departures;
mod former;
mod network;
mod notices;
mod own_memory;
mod replacement;
mod shares;
mod strangers;

use super::{Directory, FabricTransport, Own, Preferences};
use crate::base::clock::test_deadline;
use crate::base::poll::await_events;
use crate::base::process::Process;
use crate::error::Result;
use crate::transport::conformance::Calls;
use crate::transport::conformance::{self, Served, served};
use crate::transport::link_state::Links;
use crate::transport::rails::{Rail, RailEvent, Rails};
use crate::transport::testing::faults::{FaultPlan, Faulty};
use crate::transport::{
    Access, Copy, Endpoint, Exposure, NO_EPOCH, Outgoing, PeerState, Peers, Piece, RemoteAccess, SendOutcome,
    Started, Task, Wakeup, Want,
};
use crate::wire::network::{Content, Notice, Rejoin};
use network::{Published, network, network_as, patient, preferring};
use std::io::Write as _;
use std::ptr::with_exposed_provenance;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Two joined tasks of this process.
pub(crate) fn two(provider: &str) -> Vec<FabricTransport> {
    network::unserved(2, &preferring(provider))
}

/// Whether the provider is there; says so loudly when it is not.
pub(crate) fn is_there(provider: &str) -> bool {
    let found = network::open(1, provider);
    if let Err(why) = &found {
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: no tests of libfabric's provider {provider}: {why}");
    }
    found.is_ok()
}

fn conforms_on(provider: &str) {
    if is_there(provider) {
        conformance::suite_with(|tasks| network(tasks, provider), |tasks| patient(tasks, provider));
    }
}

#[test]
fn conforms_on_tcp() {
    conforms_on("tcp;ofi_rxm");
}

#[test]
fn conforms_where_nothing_wakes_a_sleeper() {
    if is_there("tcp;ofi_rxm") {
        let preferences = Preferences { polls: true, ..preferring("tcp;ofi_rxm") };
        conformance::suite(|tasks| network_as(tasks, &preferences));
    }
}

#[test]
fn conforms_on_udp() {
    conforms_on("udp;ofi_rxd");
}

/// Two endpoints of this provider in one process share a mapping that ends with the first of them:
/// a task that does not know that its peer has parted from it, and left, writes into it. Processes
/// have mappings of their own.
#[test]
fn conforms_on_shm() {
    if is_there("shm") {
        conformance::connected(|tasks| network(tasks, "shm"));
    }
}

/// `TEST_FABRIC_PROVIDER=verbs;ofi_rxm` tests another one.
#[test]
fn conforms_on_the_provider_that_is_named() {
    if let Ok(provider) = std::env::var("TEST_FABRIC_PROVIDER") {
        assert!(is_there(&provider), "no provider {provider}");
        conforms_on(&provider);
    }
}

#[test]
fn conforms_under_faults() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let plan = FaultPlan::rough(1);
    println!("{plan}");
    conformance::suite(|tasks| Faulty::join(network(tasks, "tcp;ofi_rxm"), &plan));
}

#[test]
fn accesses_that_are_under_way_when_the_peer_leaves_are_reported() {
    for provider in ["tcp;ofi_rxm", "udp;ofi_rxd", "shm"] {
        if is_there(provider) {
            println!("{provider}");
            conformance::reports_what_is_under_way_when_the_peer_leaves(&|tasks| patient(tasks, provider));
        }
    }
}

#[test]
fn a_task_that_ends_tells_a_peer_that_waits_for_it_to_rejoin() {
    for provider in ["tcp;ofi_rxm", "udp;ofi_rxd"] {
        if is_there(provider) {
            conformance::tells_its_end_to_a_peer_that_waits_for_it(&|tasks| patient(tasks, provider));
        }
    }
}

/// Links that stay as they are.
struct Calm;

impl Links for Calm {
    fn poll(&mut self) -> Option<u8> {
        None
    }
}

#[test]
fn accesses_over_two_rails_that_are_under_way_when_the_peer_leaves_are_reported() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    conformance::reports_what_is_under_way_when_the_peer_leaves(&two_rails);
}

fn two_rails(tasks: u32) -> Vec<Served<Rails<FabricTransport>>> {
    let [first, second] = [(); 2].map(|()| network::unserved(tasks, &preferring("tcp;ofi_rxm")));
    let pairs = first.into_iter().zip(second).enumerate();
    let join = |(me, (first, second))| {
        let rails = Rails::new(vec![first, second], me as Task, tasks, Box::new(Calm), None);
        rails.expect("rails")
    };
    served(pairs.map(join).collect())
}

#[test]
fn a_task_of_two_rails_that_ends_tells_a_peer_that_waits_for_it_to_rejoin() {
    if is_there("tcp;ofi_rxm") {
        conformance::tells_its_end_to_a_peer_that_waits_for_it(&two_rails);
    }
}

/// The provider writes a long message to the socket at once: nothing comes from the network that
/// would wake the sleeper.
#[test]
fn a_message_that_ends_in_the_call_of_another_thread_wakes_a_sleeper() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let mut ends = network::unserved(2, &preferring("tcp;ofi_rxm"));
    let deadline = Instant::now() + test_deadline();
    while !ends[0].arm() {
        assert!(Instant::now() < deadline, "there is always something to do");
        ends.iter_mut().for_each(|end| end.serve());
    }
    let data = vec![5_u8; 2 * super::COPY];
    let packet =
        Outgoing { head: &[1; 24], first: Piece::EMPTY, second: Piece::of(&data).into(), copy_limit: 0 };
    // SAFETY: the data lives until the message has ended.
    let SendOutcome::Taken(ticket) = (unsafe { ends[0].try_send(1, &packet) }) else {
        panic!("it is not taken");
    };
    assert!(await_events([ends[0].event_fd()], Some(test_deadline()))[0], "nothing wakes the sleeper");
    ends[0].disarm();
    while ends[0].completed() != Some(ticket) {
        assert!(Instant::now() < deadline, "it is not reported");
        ends[0].serve();
    }
}

/// What was under way on a rail that both sides have left is done again by another rail, and the
/// program may have the memory back: bytes that were still in the kernel's buffers are not stored.
#[test]
fn nothing_is_placed_after_both_sides_have_left_a_rail() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let mut ends = network::unserved(2, &preferring("tcp;ofi_rxm"));
    ends.iter_mut().for_each(Rail::become_rail);
    let (mut here, mut there) = (vec![1_u8; 64 << 20], vec![0_u8; 64 << 20]);
    let (local, remote) = (here.as_mut_ptr(), there.as_mut_ptr().expose_provenance());
    let memory = Piece { ptr: with_exposed_provenance(remote), len: there.len() };
    // SAFETY: both places live until the endpoints are closed.
    let key = unsafe { ends[1].expose(0, memory, Exposure { access: Access::Write, one_rail: false }) }
        .expect("a key");
    let copy = Copy { local, remote: remote as u64, len: here.len() };
    // SAFETY: both places live until the endpoints are closed.
    let started = unsafe { ends[0].start(Access::Write, 1, Some(key), &[copy]) };
    assert!(matches!(started, Ok(Started::Pending(_))));
    let stored = |at: usize| {
        let at: *const u8 = with_exposed_provenance(remote + at);
        // SAFETY: in the memory of `there`, which only the kernel and the provider write meanwhile.
        unsafe { at.read_volatile() }
    };
    let all = || (0..here.len()).step_by(64).filter(|at| stored(*at) == 1).count();
    let deadline = Instant::now() + test_deadline();
    while stored(0) == 0 {
        assert!(Instant::now() < deadline, "the first bytes are never stored");
        ends.iter_mut().for_each(|end| end.serve());
    }
    ends[0].leave(1, false);
    ends[1].leave(0, false);
    let before = all();
    assert!(before < here.len() / 64, "all of it was stored before: nothing is tested");
    (0..2000).for_each(|_| ends.iter_mut().for_each(|end| end.serve()));
    assert_eq!(all(), before);
}

/// A directory whose launcher says when the last task has died.
struct Launched(Published, Arc<AtomicBool>);

impl Directory<Vec<u8>> for Launched {
    fn address_of(&mut self, peer: Task) -> Result<Vec<u8>> {
        self.0.address_of(peer)
    }

    fn has_died(&mut self, peer: Task) -> bool {
        peer as usize + 1 == self.0.0.len() && self.1.load(Ordering::Relaxed)
    }
}

/// On a rail that was left nothing is received from the peer; its process may die while all
/// rails are left.
#[test]
fn a_death_that_the_launcher_knows_of_is_reported_by_a_rail_that_was_left() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let (own, published): (Vec<Own>, Vec<Vec<u8>>) =
        network::open(2, "tcp;ofi_rxm").expect("endpoints").into_iter().unzip();
    let (published, died) = (Arc::new(published), Arc::new(AtomicBool::new(false)));
    let mut ends: Vec<FabricTransport> = own
        .into_iter()
        .map(|own| {
            let directory = Launched(Published(published.clone()), died.clone());
            let mut end = FabricTransport::new(own, &[7; 16], Box::new(directory)).expect("a transport");
            end.become_rail();
            end.watch_others(vec![0, 1], vec![Process::own(); 2], Box::default());
            end
        })
        .collect();
    ends[0].want(Want::Connection(1));
    Rail::leave(&mut ends[0], 1, false);
    while let Some(event) = ends[0].event() {
        assert_ne!(event, RailEvent::Ended(1));
    }
    died.store(true, Ordering::Relaxed);
    let deadline = Instant::now() + test_deadline();
    let mut ended = false;
    while !ended {
        assert!(Instant::now() < deadline, "the death is not reported");
        ends[0].serve();
        ended = std::iter::from_fn(|| ends[0].event()).any(|event| event == RailEvent::Ended(1));
    }
}

/// A directory in which another process has taken the place of task 1.
struct Replaced(Published, Process);

impl Directory<Vec<u8>> for Replaced {
    fn address_of(&mut self, peer: Task) -> Result<Vec<u8>> {
        self.0.address_of(peer)
    }

    fn process_of(&mut self, peer: Task) -> Option<Process> {
        (peer == 1).then_some(self.1)
    }
}

/// A task that was started while another one was replaced may have the card of the former process,
/// of whose death no notice comes.
#[test]
fn a_death_of_a_process_that_is_not_known_yet() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let (own, published): (Vec<Own>, Vec<Vec<u8>>) =
        network::open(3, "tcp;ofi_rxm").expect("endpoints").into_iter().unzip();
    let directory = |process| Replaced(Published(Arc::new(published.clone())), process);
    let process = |started| Process { started, ..Process::own() };
    let (former, present) = (process(7), process(8));
    let own = own.into_iter().next().expect("an endpoint");
    let mut end = FabricTransport::new(own, &[7; 16], Box::new(directory(present))).expect("a transport");
    end.watch_others(vec![0, 1, 2], vec![Process::own(), former, Process::own()], Box::default());
    let died = |end: &mut FabricTransport, process: Process| {
        let notice = Notice { content: Content::Died, task: 1, life: process.life() };
        end.keep_notice(2, &notice.encode());
        end.note_notices();
    };
    died(&mut end, process(6));
    let deadline = Instant::now() + test_deadline();
    while end.standing(1).state != PeerState::Dead {
        assert!(Instant::now() < deadline, "the process that was known has ended, too");
        end.serve();
    }
    // The present one is known now.
    let dead = |end: &FabricTransport| end.watch.as_ref().expect("a watch").shared.ring().has_died(1);
    assert!(!dead(&end));
    died(&mut end, former);
    assert!(!dead(&end), "a late notice");
    died(&mut end, present);
    assert!(dead(&end));
}

/// A directory in which another process takes the place of task 1 at some time.
struct ReplacedLater(Published, Arc<AtomicBool>, [Process; 2]);

impl Directory<Vec<u8>> for ReplacedLater {
    fn address_of(&mut self, peer: Task) -> Result<Vec<u8>> {
        self.0.address_of(peer)
    }

    fn process_of(&mut self, peer: Task) -> Option<Process> {
        (peer == 1).then_some(self.2[usize::from(self.1.load(Ordering::Relaxed))])
    }
}

/// When two processes of a task follow each other quickly, its neighbours may not have seen the
/// first one: no notice of its death is sent.
#[test]
fn a_death_of_which_no_notice_comes_is_seen_on_the_card_of_the_successor() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let (own, published): (Vec<Own>, Vec<Vec<u8>>) =
        network::open(2, "tcp;ofi_rxm").expect("endpoints").into_iter().unzip();
    let (published, replaced) = (Arc::new(published), Arc::new(AtomicBool::new(false)));
    let process = |started| Process { started, ..Process::own() };
    let processes = [process(7), process(8)];
    let mut ends: Vec<FabricTransport> = own
        .into_iter()
        .map(|own| {
            let directory = ReplacedLater(Published(published.clone()), replaced.clone(), processes);
            let mut end = FabricTransport::new(own, &[7; 16], Box::new(directory)).expect("a transport");
            end.watch_others(vec![0, 1], vec![Process::own(), processes[0]], Box::default());
            end
        })
        .collect();
    ends[0].want(Want::Connection(1));
    let deadline = Instant::now() + test_deadline();
    while !ends[0].peer(1).is_some_and(|peer| peer.has_met()) {
        assert!(Instant::now() < deadline, "the two do not meet");
        ends.iter_mut().for_each(|end| end.serve());
    }
    (0..5).for_each(|_| ends[0].look_at_others_now());
    assert_eq!(ends[0].standing(1).state, PeerState::Up, "it is the process that was known");
    replaced.store(true, Ordering::Relaxed);
    while ends[0].standing(1).state != PeerState::Dead {
        assert!(Instant::now() < deadline, "the process that was known has been replaced");
        ends[0].serve();
    }
}

/// What task 0 sends to rejoin, as task 1 receives it.
fn rejoins(ends: &mut [FabricTransport], rejoin: Rejoin) {
    let mut after = rejoin.encode().to_vec();
    after.extend(&ends[0].credentials.published);
    let len = after.len();
    ends[1].note_hello(0, &after, len);
}

#[test]
fn a_peer_has_parted_when_its_own_process_sends_a_later_tag() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let mut ends = network::unserved(2, &preferring("tcp;ofi_rxm"));
    let own = Process::own();
    let rejoin = |tag, epoch| Rejoin { tag, echo: 0, epoch, process: own, waits: true };
    let parted = |ends: &[FabricTransport]| {
        let standing = ends[1].standing(0);
        assert_eq!(standing.has_parted, standing.state == PeerState::Dead);
        standing.has_parted
    };
    ends[1].watch_others(vec![0, 1], vec![own; 2], Box::default());
    rejoins(&mut ends, rejoin(101, NO_EPOCH));
    assert!(!parted(&ends), "a process that was not resumed, and has resumed no task");
    rejoins(&mut ends, rejoin(101, 9));
    assert!(parted(&ends));
    // Once more, from a connection that both have resumed.
    ends[1].part(0);
    Peers::rejoin(&mut ends[1], 0, 3).expect("can rejoin");
    let mine = ends[1].peer(0).expect("a peer").mine;
    rejoins(&mut ends, Rejoin { echo: mine, ..rejoin(101, 9) });
    assert_eq!(ends[1].rejoined(), Some((0, 9)));
    rejoins(&mut ends, Rejoin { echo: mine, ..rejoin(101, 9) });
    rejoins(&mut ends, rejoin(99, 8));
    assert!(!parted(&ends), "a message that comes late");
    rejoins(&mut ends, rejoin(103, 10));
    assert!(parted(&ends));
    // Another process has the peer's number: the one that was known has died, and is
    // reported as that.
    ends[1].part(0);
    Peers::rejoin(&mut ends[1], 0, 4).expect("can rejoin");
    let mine = ends[1].peer(0).expect("a peer").mine;
    rejoins(&mut ends, Rejoin { echo: mine, ..rejoin(103, 10) });
    rejoins(&mut ends, Rejoin { process: Process { started: own.started + 1, ..own }, ..rejoin(205, 11) });
    assert!(!ends[1].standing(0).has_parted);
}

/// Neither has an epoch, so the peer is not named.
#[test]
fn packets_of_a_peer_that_is_held_while_it_rejoins_wait() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let mut ends = network::unserved(2, &preferring("tcp;ofi_rxm"));
    ends[1].await_first(0);
    ends[1].want(Want::Hold(0, true));
    let mine = ends[1].peer(0).expect("a peer").mine;
    ends[0].peer_mut(1).expect("a peer").theirs = mine;
    let packet =
        Outgoing { head: &[1; 8], first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    let deadline = Instant::now() + test_deadline();
    // SAFETY: the head is readable during the call.
    while unsafe { ends[0].try_send(1, &packet) } != SendOutcome::Sent {
        assert!(Instant::now() < deadline, "there is no room");
    }
    while ends[1].peer(0).expect("a peer").aside.is_empty() {
        assert!(Instant::now() < deadline, "the packet does not arrive");
        ends.iter_mut().for_each(|end| end.serve());
    }
    let process = Process::own();
    rejoins(&mut ends, Rejoin { tag: 101, echo: mine, epoch: NO_EPOCH, process, waits: false });
    assert_eq!(ends[1].standing(0).state, PeerState::Up);
    assert!(ends[1].recv().is_none(), "it is held");
    ends[1].want(Want::Hold(0, false));
    let packet = ends[1].recv().expect("it is held no more");
    ends[1].release(packet);
}

/// Latency of 8 bytes and bandwidth of long accesses, of this transport and of libfabric alone:
/// `MEASURE_FABRIC=tcp;ofi_rxm`.
#[test]
fn measure() {
    if let Ok(provider) = std::env::var("MEASURE_FABRIC") {
        measure::all(&provider);
    }
}

mod measure;
