//! First contact: with tasks that replace others, that end, and that are greeted by an old hello.

use super::{Listed, OTHER, ends_on, met, send, serve_until, settings, socket, take};
use crate::base::clock::test_deadline;
use crate::transport::conformance::{self, Calls, served};
use crate::transport::udp::contact::CHALLENGE;
use crate::transport::udp::device::{Datagram, Device};
use crate::transport::udp::seal::{ANNOUNCEMENT, Claim, ENVELOPE, JobKey, Security};
use crate::transport::udp::socket::Socket;
use crate::transport::udp::{Directory, UdpTransport};
use crate::transport::{Endpoint, NO_EPOCH, PeerState, Peers, SendOutcome, Task, Wakeup, Want};
use crate::wire::datagram::Hello;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

fn two() -> Vec<UdpTransport> {
    ends_on(2, Security::Auth, 1472, |socket, _| Box::new(socket))
}

/// A hello of a task of the job, as a stranger may have recorded it.
fn recorded(from: Task, to: Task, hello: &Hello) -> Vec<u8> {
    JobKey::new(&[7; 16], Security::Auth).greet(from, to, hello).to_vec()
}

fn inject(end: &mut UdpTransport, datagram: &[u8]) {
    let now = end.now();
    end.note_datagram(now, (Ipv4Addr::LOCALHOST, 9).into(), &mut datagram.to_vec());
    end.serve();
}

/// Keeps what it sends.
struct Recording(Socket, Arc<Mutex<Vec<Vec<u8>>>>);

impl Device for Recording {
    fn send(&mut self, datagrams: &[Datagram<'_>]) -> usize {
        let sent = self.0.send(datagrams);
        let mut kept = self.1.lock().expect("no thread has panicked");
        kept.extend(datagrams[..sent].iter().map(|datagram| datagram.bytes.to_vec()));
        sent
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, &mut [u8])) -> usize {
        self.0.receive(take)
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.0.event_fd()
    }
}

/// What strangers send, and what is sent again, is counted, and changes nothing.
#[test]
fn what_is_refused_is_counted() {
    let sent: [Arc<Mutex<Vec<Vec<u8>>>>; 2] = Default::default();
    let device = |socket, task| Box::new(Recording(socket, sent[task as usize].clone())) as Box<dyn Device>;
    let mut ends = met(ends_on(2, Security::Auth, 1472, device));
    sent[1].lock().expect("unpoisoned").clear();
    assert!(matches!(send(&mut ends[1], 0, 6), SendOutcome::Sent));
    serve_until(&mut ends, "a packet", |ends| take(&mut ends[0]) == Some((1, 6)));
    let sealed = sent[1].lock().expect("unpoisoned")[0].clone();
    let before = ends[0].tally();
    assert_eq!((before.refused, before.duplicates), (0, 0));
    let stranger = JobKey::new(&[8; 16], Security::Auth);
    let hello = Hello { mine: 3, yours: 0, epoch: NO_EPOCH, process: OTHER, longest: 0, opening: 0 };
    let mut changed = recorded(1, 0, &hello);
    *changed.last_mut().expect("a hello") ^= 1;
    let mut renumbered = sealed.clone();
    renumbered[9] ^= 1;
    let forged = [
        &[][..],
        &[7; 20],
        &[7; 2000],
        &stranger.greet(1, 0, &hello),
        &changed,
        &renumbered,
        &sealed[..ENVELOPE - 1],
    ];
    forged.iter().for_each(|datagram| inject(&mut ends[0], datagram));
    assert_eq!(ends[0].tally().refused, 7);
    (0..3).for_each(|_| inject(&mut ends[0], &sealed));
    let after = ends[0].tally();
    assert_eq!((after.refused, after.duplicates), (7, 3));
    assert_eq!(take(&mut ends[0]), None);
    assert!(matches!(send(&mut ends[0], 1, 5), SendOutcome::Sent));
    serve_until(&mut ends, "a packet", |ends| take(&mut ends[1]) == Some((0, 5)));
    assert_eq!(ends[0].tally().refused, 7);
}

/// The other side waits for the hello of the process that has taken the place of another one.
#[test]
fn a_task_that_replaces_another_replies_to_a_task_that_greets_it_first() {
    let mut ends = two();
    ends[1].replaces_another();
    assert!(matches!(send(&mut ends[0], 1, 5), SendOutcome::Sent));
    serve_until(&mut ends, "a packet at first contact", |ends| take(&mut ends[1]) == Some((0, 5)));
    assert!(matches!(send(&mut ends[1], 0, 6), SendOutcome::Sent));
    serve_until(&mut ends, "a reply", |ends| take(&mut ends[0]) == Some((1, 6)));
}

/// A challenge that was recorded makes a peer known, and this task greets it as any other.
#[test]
fn a_peer_that_is_known_by_a_useless_hello_is_greeted() {
    let mut ends = two();
    let old = Hello { mine: 3, yours: 9, epoch: CHALLENGE, process: OTHER, longest: 0, opening: 0 };
    inject(&mut ends[0], &recorded(1, 0, &old));
    ends[0].want(Want::Connection(1));
    serve_until(&mut ends, "a connection", |ends| {
        ends.iter()
            .zip([1, 0])
            .all(|(end, peer)| end.table.met().contains(&peer) && end.standing(peer).absence.is_none())
    });
}

/// What was accepted arrives although the connection was not made when the task ended.
#[test]
fn packets_of_first_contact_arrive_when_the_sender_ends() {
    let mut ends = two();
    let mut last = ends.pop().expect("two ends");
    assert!(matches!(send(&mut ends[0], 1, 5), SendOutcome::Sent));
    let (runs, begun) = std::sync::mpsc::channel();
    let receiver = std::thread::spawn(move || {
        let deadline = Instant::now() + test_deadline();
        let mut found = None;
        runs.send(()).expect("it is awaited");
        while found.is_none() || last.standing(0).state != PeerState::Closed {
            found = take(&mut last).or(found);
            assert!(Instant::now() < deadline, "found {found:?}, {:?}", last.standing(0).state);
            std::thread::yield_now();
        }
        found
    });
    begun.recv().expect("the receiver begins");
    ends[0].close();
    assert_eq!(receiver.join().expect("the receiver"), Some((0, 5)));
}

/// The peer has the proof that this task lives, and awaits its end.
#[test]
fn a_peer_that_is_connected_learns_of_an_end_before_the_connection_is_made_here() {
    let mut ends = two();
    ends[1].want(Want::Connection(0));
    ends[0].want(Want::Connection(1));
    // Both have the other's number.
    serve_until(&mut ends, "the numbers", |ends| {
        let theirs = |end: &UdpTransport, peer| {
            end.peer(peer)
                .and_then(|peer| peer.session.as_ref())
                .is_some_and(|own| own.connection.theirs() != 0)
        };
        theirs(&ends[0], 1) && theirs(&ends[1], 0)
    });
    let mut last = ends.pop().expect("two ends");
    let receiver = std::thread::spawn(move || {
        let deadline = Instant::now() + test_deadline();
        while last.standing(0).state != PeerState::Closed {
            last.serve();
            assert!(Instant::now() < deadline, "{:?}", last.standing(0).absence);
            std::thread::yield_now();
        }
    });
    ends[0].close();
    receiver.join().expect("the receiver");
}

#[test]
fn a_peer_that_waits_for_a_task_to_rejoin_learns_of_its_end() {
    conformance::tells_its_end_to_a_peer_that_waits_for_it(&|tasks| {
        assert_eq!(tasks, 2);
        served(met(two()))
    });
}

/// What was accepted for the process that began with the job, or for its first successor, is not
/// for one that has purged this task.
#[test]
fn packets_of_first_contact_are_not_sent_to_a_task_that_has_purged_this_one() {
    let mut ends = two();
    assert!(matches!(send(&mut ends[0], 1, 5), SendOutcome::Sent));
    // A successor has proven itself, and ends before the connection is made.
    let now = ends[0].now();
    ends[0].begin_again(1, now);
    ends[1].rejoin(0, 8).expect("can rejoin");
    serve_until(&mut ends, "the report that the peer has parted", |ends| {
        assert_eq!(take(&mut ends[1]), None, "a packet for another incarnation");
        ends[0].standing(1).has_parted
    });
}

/// One has proven to the other that it lives, and does not know that yet. Then a hello of a former
/// opening comes, in which the other was a process that had taken the place of another one.
#[test]
fn an_old_hello_does_not_part_two_tasks_that_connect() {
    let mut ends = two();
    ends[1].want(Want::Connection(0));
    ends[0].want(Want::Connection(1));
    ends[0].serve();
    let deadline = Instant::now() + test_deadline();
    while ends[1].standing(0).absence.is_some() {
        ends[1].serve();
        assert!(Instant::now() < deadline, "the other side is never connected");
    }
    let old = Hello { mine: 3, yours: 0, epoch: NO_EPOCH, process: OTHER, longest: 0, opening: 0 };
    assert!(ends[0].standing(1).absence.is_some(), "its hello is not received yet");
    inject(&mut ends[0], &recorded(1, 0, &old));
    serve_until(&mut ends, "a connection", |ends| {
        assert_eq!((ends[0].standing(1).state, ends[1].standing(0).state), (PeerState::Up, PeerState::Up));
        ends[0].standing(1).absence.is_none() && ends[0].due().is_none() && ends[1].due().is_none()
    });
    assert!(matches!(send(&mut ends[0], 1, 5), SendOutcome::Sent));
    serve_until(&mut ends, "a packet", |ends| {
        assert_eq!(ends[1].standing(0).state, PeerState::Up);
        take(&mut ends[1]) == Some((0, 5))
    });
}

/// A task has parted from another one twice. Its hello of the first time knows the other's number,
/// and arrives after that of the second time, which does not.
#[test]
fn a_hello_that_was_overtaken_makes_no_connection() {
    let mut ends = two();
    let mine = |end: &UdpTransport| {
        let own = end.peer(0).and_then(|peer| peer.session.as_ref()).expect("a session");
        (own.connection.mine(), own.connection.theirs())
    };
    ends[1].rejoin(0, NO_EPOCH).expect("it may rejoin");
    let number = |order| Hello::number(order, 5 << 90);
    let say = |end: &mut UdpTransport, order, yours| {
        let hello = Hello { mine: number(order), yours, epoch: 1, process: OTHER, longest: 1472, opening: 1 };
        inject(end, &recorded(0, 1, &hello));
    };
    let own = mine(&ends[1]).0;
    say(&mut ends[1], 9, 0);
    say(&mut ends[1], 8, own);
    assert_eq!(mine(&ends[1]), (own, number(9)));
    assert!(ends[1].standing(0).absence.is_some());
    say(&mut ends[1], 9, own);
    assert_eq!((mine(&ends[1]), ends[1].standing(0).absence), ((own, number(9)), None));
}

/// Counts the questions.
struct Asked(Listed, Arc<AtomicUsize>);

impl Directory<SocketAddr> for Asked {
    fn address_of(&mut self, peer: Task) -> crate::error::Result<SocketAddr> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.address_of(peer)
    }
}

/// A question may cost one at the launcher, and a peer that is noted memory: a stranger causes
/// neither.
#[test]
fn the_directory_is_not_asked_for_what_no_task_has_made() {
    let device = socket();
    let listed = Listed(Arc::new(vec![device.local(); 2]));
    let asked = Arc::new(AtomicUsize::new(0));
    let own = settings(0, 2, Security::Auth, 1472);
    let directory = Box::new(Asked(listed, asked.clone()));
    let mut end = UdpTransport::new(&own, Box::new(device), directory).expect("an end");
    let stranger = JobKey::new(&[8; 16], Security::Auth);
    let hello = Hello { mine: 3, yours: 0, epoch: NO_EPOCH, process: OTHER, longest: 0, opening: 0 };
    for number in 0..100 {
        inject(&mut end, &stranger.greet(1, 0, &hello));
        // As datagrams of a connection, and as notices of deaths.
        for (number, length) in [(number + 1, ENVELOPE + 100), (0, ANNOUNCEMENT)] {
            let mut forged = vec![7; length];
            let claim = Claim { from: 1, connection: 0, number }.bytes();
            forged[..claim.len()].copy_from_slice(&claim);
            inject(&mut end, &forged);
        }
    }
    assert_eq!((end.tally().refused, asked.load(Ordering::Relaxed)), (300, 0));
    assert!(end.peer(1).is_none(), "a peer is noted");
    // The hello of a task is replied to where the task is listed.
    inject(&mut end, &recorded(1, 0, &hello));
    assert!(end.peer(1).is_some() && asked.load(Ordering::Relaxed) > 0);
    end.part(1);
}

struct WithDead(Listed);

impl Directory<SocketAddr> for WithDead {
    fn address_of(&mut self, peer: Task) -> crate::error::Result<SocketAddr> {
        self.0.address_of(peer)
    }

    fn has_died(&mut self, _: Task) -> bool {
        true
    }
}

/// The process that has died is not the one that is awaited.
#[test]
fn a_death_before_a_task_rejoins_is_no_news() {
    let device = socket();
    let listed = Listed(Arc::new(vec![device.local(); 2]));
    let own = settings(0, 2, Security::Auth, 1472);
    let mut end = UdpTransport::new(&own, Box::new(device), Box::new(WithDead(listed))).expect("an end");
    end.rejoin(1, 8).expect("can rejoin");
    end.look_for_deaths();
    assert_eq!(
        (end.standing(1).state, end.standing(1).absence),
        (PeerState::Up, Some("has not rejoined yet".to_owned()))
    );
    end.part(1);
    // A process that has taken the place of another one awaits those that began with the job.
    end.table.clear();
    end.replaces_another();
    end.want(Want::Connection(1));
    end.deaths.next_look = 0;
    end.look_for_deaths();
    assert_eq!(end.standing(1).state, PeerState::Dead);
}

/// Takes nothing.
struct Full(Socket);

impl Device for Full {
    fn send(&mut self, _: &[Datagram<'_>]) -> usize {
        0
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, &mut [u8])) -> usize {
        self.0.receive(take)
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.0.event_fd()
    }
}

/// Counts the polls.
struct Counting(Socket, Arc<AtomicUsize>);

impl Device for Counting {
    fn send(&mut self, datagrams: &[Datagram<'_>]) -> usize {
        self.0.send(datagrams)
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, &mut [u8])) -> usize {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.receive(take)
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.0.event_fd()
    }
}

/// The engine offers a packet to each of them in every round.
#[test]
fn many_peers_without_room_are_one_poll() {
    let polls = Arc::new(AtomicUsize::new(0));
    let device = |socket, _| Box::new(Counting(socket, Arc::clone(&polls))) as Box<dyn Device>;
    let mut ends = ends_on(21, Security::Auth, 1472, device);
    let (end, peers) = (&mut ends[0], 1..21);
    for peer in peers.clone() {
        while matches!(send(end, peer, 5), SendOutcome::Sent) {}
    }
    let mut round = || {
        let before = polls.load(Ordering::Relaxed);
        assert!(peers.clone().all(|peer| matches!(send(end, peer, 5), SendOutcome::NoRoom)));
        polls.load(Ordering::Relaxed) - before
    };
    // A thread that is interrupted, or slow, polls more often.
    let fewest = (0..1000).map(|_| round()).min();
    assert!(fewest <= Some(2), "{fewest:?}");
    // Otherwise each would wait for the others at its end.
    peers.for_each(|peer| end.part(peer));
    ends[1..].iter_mut().for_each(|other| other.part(0));
}

/// Recorded hellos cause replies, which need no memory while the device takes nothing.
#[test]
fn replies_to_hellos_do_not_pile_up() {
    let mut ends = ends_on(2, Security::Auth, 1472, |socket, _| Box::new(Full(socket)));
    assert!(matches!(send(&mut ends[0], 1, 5), SendOutcome::Sent));
    let own = ends[0].peer(1).and_then(|peer| peer.session.as_ref()).expect("a session").connection.mine();
    let asked = Hello { mine: 3, yours: own, epoch: CHALLENGE, process: OTHER, longest: 0, opening: 0 };
    for _ in 0..1_000 {
        inject(&mut ends[0], &recorded(1, 0, &asked));
    }
    assert!(ends[0].outlet.waiting().0 < 100, "{} datagrams wait", ends[0].outlet.waiting().0);
}

/// The engine asks for such peers when it has slept.
#[test]
fn a_peer_that_waits_to_be_named_keeps_no_thread_from_sleeping() {
    let mut ends = met(two());
    for (end, peer) in ends.iter_mut().zip([1, 0]) {
        end.part(peer);
        end.rejoin(peer, 5).expect("can rejoin");
    }
    serve_until(&mut ends, "a connection", |ends| {
        ends.iter().zip([1, 0]).all(|(end, peer)| end.standing(peer).absence.is_none())
    });
    let armed = (0..100).any(|_| ends[0].arm());
    assert!(armed, "it may never sleep");
    ends[0].disarm();
    assert_eq!((ends[0].rejoined(), ends[1].rejoined()), (Some((1, 5)), Some((0, 5))));
}
