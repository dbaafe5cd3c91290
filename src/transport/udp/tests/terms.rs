//! Tasks that have not agreed upon anything before their first contact.

use super::{Listed, ends_on, met, send, serve_until, settings, socket, take};
use crate::base::process::Process;
use crate::error::Result;
use crate::transport::conformance::Calls;
use crate::transport::udp::seal::Security;
use crate::transport::udp::socket::Socket;
use crate::transport::udp::{Directory, UdpSettings, UdpTransport};
use crate::transport::{Endpoint, Outgoing, PeerState, Peers, Piece, SendOutcome, Task, Want};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Two ends, each with settings of its own.
fn two(change: impl Fn(&mut UdpSettings)) -> Vec<UdpTransport> {
    let sockets = [socket(), socket()];
    let listed = Arc::new(sockets.iter().map(Socket::local).collect::<Vec<_>>());
    let ends = sockets.into_iter().zip(0..).map(|(socket, me)| {
        let mut own = settings(me, 2, Security::Auth, 1472);
        change(&mut own);
        UdpTransport::new(&own, Box::new(socket), Box::new(Listed(listed.clone()))).expect("an end")
    });
    ends.collect()
}

/// Offers a packet whose body are these bytes.
fn send_bytes(end: &mut UdpTransport, to: Task, body: &[u8]) -> SendOutcome {
    let first = Piece { ptr: body.as_ptr(), len: body.len() };
    let packet = Outgoing { head: &[1; 8], first, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // SAFETY: the body is readable during the call.
    unsafe { end.try_send(to, &packet) }
}

fn take_bytes(end: &mut UdpTransport) -> Option<Vec<u8>> {
    let packet = end.recv()?;
    // SAFETY: readable until the packet is released.
    let body = unsafe { std::slice::from_raw_parts(packet.body, packet.body_len) }.to_vec();
    end.release(packet);
    Some(body)
}

/// Both use the shorter length, also for packets that were accepted before it was known.
#[test]
fn datagrams_are_as_long_as_both_sides_take_them() {
    for (one, other) in [(512, 65_000), (65_000, 512), (1472, 8972)] {
        let mut ends = two(|own| own.datagram = if own.me == 0 { one } else { other });
        let body =
            |number: usize| (0..30_000 + number).map(|at| (at * 7 + number) as u8).collect::<Vec<u8>>();
        let sent = [(0, 1), (1, 0)].map(|(at, peer): (usize, Task)| {
            let accepts =
                |number: &usize| matches!(send_bytes(&mut ends[at], peer, &body(*number)), SendOutcome::Sent);
            (0..7).take_while(accepts).count()
        });
        // As long as no length is proven, the window has as many fragments as the longest
        // packet at least.
        assert!(sent.iter().all(|sent| *sent >= 2), "{sent:?}");
        let mut found = [Vec::new(), Vec::new()];
        serve_until(&mut ends, "what was accepted", |ends| {
            for (end, found) in ends.iter_mut().zip(&mut found) {
                found.extend(take_bytes(end));
            }
            ends.iter().all(|end| end.settled())
        });
        for ((end, found), sent) in ends.iter_mut().zip(&mut found).zip(sent.into_iter().rev()) {
            found.extend(std::iter::from_fn(|| take_bytes(end)));
            assert_eq!(found.len(), sent, "{one} and {other}");
            found.sort_by_key(Vec::len);
            assert!(found.iter().enumerate().all(|(number, own)| *own == body(number)), "{one} and {other}");
        }
    }
}

/// A task that has begun again does not meet the former context of another one.
#[test]
fn first_contact_is_made_within_one_opening() {
    let mut ends = two(|own| own.opening = 2 - own.me);
    ends.iter_mut().zip([1, 0]).for_each(|(end, peer)| end.want(Want::Connection(peer)));
    let hellos = |end: &UdpTransport, peer| {
        let session = end.peer(peer).and_then(|peer| peer.session.as_ref()).expect("a session");
        session.connection.theirs()
    };
    let mut turns = 0;
    serve_until(&mut ends, "hellos in both directions", |ends| {
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!((hellos(&ends[0], 1), hellos(&ends[1], 0)), (0, 0), "they have met");
        turns += 1;
        turns == 100
    });
    // The one that is slower is now in the same opening.
    ends[1].credentials.opening = 2;
    serve_until(&mut ends, "a connection", |ends| {
        ends.iter().zip([1, 0]).all(|(end, peer)| end.standing(peer).absence.is_none())
    });
}

/// What is entered in a directory.
#[derive(Default)]
struct Noted {
    processes: Vec<(Task, Process)>,
    openings: Vec<u16>,
}

struct Noting(Listed, Arc<Mutex<Noted>>);

impl Directory<SocketAddr> for Noting {
    fn address_of(&mut self, peer: Task) -> Result<SocketAddr> {
        self.0.address_of(peer)
    }

    fn note_process(&mut self, peer: Task, process: Process) {
        self.1.lock().expect("not poisoned").processes.push((peer, process));
    }

    fn note_opening(&mut self, opening: u16) {
        self.1.lock().expect("not poisoned").openings.push(opening);
    }
}

/// A process that begins again takes the place of one that has died in a later opening.
#[test]
fn a_process_that_rejoins_is_in_the_opening_of_the_others() {
    let sockets = [socket(), socket()];
    let listed = Arc::new(sockets.iter().map(Socket::local).collect::<Vec<_>>());
    let noted: Arc<Mutex<Noted>> = Arc::default();
    let ends = sockets.into_iter().zip(0..).map(|(socket, me)| {
        let own = UdpSettings {
            opening: 5 - 4 * me,
            patience: Some(Duration::from_secs(60)),
            ..settings(me, 2, Security::Auth, 1472)
        };
        let directory: Box<dyn Directory<SocketAddr>> = match me {
            0 => Box::new(Listed(listed.clone())),
            _ => Box::new(Noting(Listed(listed.clone()), Arc::clone(&noted))),
        };
        UdpTransport::new(&own, Box::new(socket), directory).expect("an end")
    });
    let mut ends: Vec<_> = ends.collect();
    // It may be the successor of a process that the peer knows: nothing is accepted for that one.
    assert!(matches!(send(&mut ends[1], 0, 5), SendOutcome::NoRoom));
    assert_eq!((ends[1].standing(0).state, ends[1].is_open(0)), (PeerState::Connecting, true));
    ends[0].part(1);
    ends[0].rejoin(1, 8).expect("can rejoin");
    serve_until(&mut ends, "the peer that rejoins", |ends| ends[0].rejoined().is_some());
    serve_until(&mut ends, "the connection", |ends| ends[1].rejoined() == Some((0, 8)));
    assert!(matches!(send(&mut ends[1], 0, 5), SendOutcome::Sent));
    serve_until(&mut ends, "its packet", |ends| take(&mut ends[0]) == Some((1, 5)));
    let noted = noted.lock().expect("not poisoned");
    assert_eq!((&*noted.processes, &*noted.openings), (&[(0, Process::own())][..], &[5][..]));
}

#[test]
fn a_peer_that_never_replies_is_given_up_when_it_is_wanted() {
    let mut ends = impatient(|own| own.secret = [own.me as u8; 16]);
    let last = ends.pop().expect("two ends");
    // What a stranger sends in its name gives no reason to wait for it.
    ends[0].add(1);
    serve_until(&mut ends, "the end of its patience", |ends| ends[0].now() > 200_000_000);
    assert_eq!(ends[0].standing(1).state, PeerState::Connecting);
    ends.push(last);
    be_patient(&mut ends);
    ends[1].want(Want::Connection(0));
    assert!(matches!(send(&mut ends[0], 1, 5), SendOutcome::NoRoom));
    serve_until(&mut ends, "the other secret", |ends| ends[0].peer(1).is_some_and(|peer| peer.other_key));
    lose_patience(&mut ends);
    serve_until(&mut ends, "the end of both", |ends| {
        ends[0].standing(1).state == PeerState::Dead && ends[1].standing(0).state == PeerState::Dead
    });
    let why = ends[0].standing(1).absence.expect("a reason");
    assert!(why.contains("127.0.0.1:") && why.contains("another secret"), "{why}");
    assert_eq!(ends[1].outlet.refusals.replayed, 0);
}

fn be_patient(ends: &mut [UdpTransport]) {
    ends.iter_mut().for_each(|end| end.credentials.patience = Some(Duration::from_secs(60)));
}

fn lose_patience(ends: &mut [UdpTransport]) {
    ends.iter_mut().for_each(|end| end.credentials.patience = Some(Duration::from_millis(50)));
}

/// Whether each of the two has found that the other one is in another opening.
fn both_differ(ends: &[UdpTransport]) -> bool {
    let differs =
        |(end, peer): (&UdpTransport, Task)| end.peer(peer).is_some_and(|peer| peer.other_opening.is_some());
    ends.iter().zip([1, 0]).all(differs)
}

/// Two tasks that wait for each other for a short time.
fn impatient(change: impl Fn(&mut UdpSettings)) -> Vec<UdpTransport> {
    two(|own| {
        own.patience = Some(Duration::from_millis(50));
        change(own);
    })
}

/// A task that has begun again, and one that has not, learn that this is why they do not connect.
#[test]
fn the_error_names_openings_that_differ() {
    let mut ends = two(|own| own.opening = 2 - own.me);
    be_patient(&mut ends);
    ends.iter_mut().zip([1, 0]).for_each(|(end, peer)| end.want(Want::Connection(peer)));
    serve_until(&mut ends, "a hello", |ends| both_differ(ends));
    lose_patience(&mut ends);
    serve_until(&mut ends, "the end of their patience", |ends| {
        ends[0].standing(1).state == PeerState::Dead && ends[1].standing(0).state == PeerState::Dead
    });
    for (end, peer, text) in [
        (&ends[0], 1, "number 1, and this task in number 2"),
        (&ends[1], 0, "number 2, and this task in number 1"),
    ] {
        let why = end.standing(peer).absence.expect("a reason");
        assert!(why.contains(text) && why.contains("LAPI_INIT_TIMEOUT"), "{why}");
    }
    // One that was slower is no reason any more.
    let mut ends = two(|own| own.opening = 2 - own.me);
    be_patient(&mut ends);
    ends.iter_mut().zip([1, 0]).for_each(|(end, peer)| end.want(Want::Connection(peer)));
    serve_until(&mut ends, "a hello", |ends| both_differ(ends));
    ends[1].credentials.opening = 2;
    serve_until(&mut ends, "a connection", |ends| {
        ends.iter().zip([1, 0]).all(|(end, peer)| end.standing(peer).absence.is_none())
    });
}

/// What waited for it has ended with an error: it stays so until the program lets it join, and the
/// reason says that.
#[test]
fn a_peer_that_comes_after_it_was_given_up_joins_when_it_is_resumed() {
    let mut ends = impatient(|_| ());
    let mut last = ends.pop().expect("two ends");
    last.credentials.patience = Some(Duration::from_secs(60));
    ends[0].want(Want::Connection(1));
    serve_until(&mut ends, "the end of its patience", |ends| ends[0].standing(1).state == PeerState::Dead);
    let why = ends[0].standing(1).absence.expect("a reason");
    assert!(why.contains("is it started") && !why.contains("LAPI_Resume_totask"), "{why}");
    assert!(matches!(send(&mut last, 0, 5), SendOutcome::NoRoom));
    ends.push(last);
    let reported =
        |end: &UdpTransport| end.standing(1).absence.is_some_and(|why| why.contains("it has come since"));
    serve_until(&mut ends, "its hello", |ends| reported(&ends[0]));
    (0..100).for_each(|_| ends.iter_mut().for_each(|end| end.serve()));
    assert_eq!(
        (ends[0].standing(1).state, ends[1].standing(0).state),
        (PeerState::Dead, PeerState::Connecting)
    );
    let why = ends[0].standing(1).absence.expect("a reason");
    assert_eq!(why.matches("LAPI_Resume_totask").count(), 1, "{why}");
    ends[0].part(1);
    ends[0].rejoin(1, 8).expect("can rejoin");
    serve_until(&mut ends, "the peer that is resumed", |ends| ends[0].rejoined().is_some());
    serve_until(&mut ends, "the connection", |ends| ends[1].rejoined() == Some((0, 8)));
    assert!(matches!(send(&mut ends[1], 0, 5), SendOutcome::Sent));
    serve_until(&mut ends, "its packet", |ends| take(&mut ends[0]) == Some((1, 5)));
}

/// ACK_THRESHOLD acts on connections that there are, and on those that come.
#[test]
fn how_many_datagrams_are_acknowledged_together_can_change() {
    let mut ends = met(ends_on(2, Security::Auth, 1472, |socket, _| Box::new(socket)));
    ends[1].want(Want::AcknowledgeEvery(31));
    assert_eq!(ends[1].parameters.acknowledge_every, 31);
    let session = ends[1].peer(0).and_then(|peer| peer.session.as_ref()).expect("a connection");
    assert_eq!(session.connection.acknowledges_every(), 31);
}

/// How many packets of the peer have arrived and were not taken.
fn waiting(end: &UdpTransport, peer: Task) -> usize {
    let session = end.peer(peer).and_then(|peer| peer.session.as_ref()).expect("a connection");
    session.connection.waiting()
}

/// A sender without room waits for a part of what has arrived to be taken, and not for all of it.
#[test]
fn the_sender_learns_of_room_while_packets_are_taken() {
    let mut ends = met(two(|_| ()));
    let mut sent = 0;
    serve_until(&mut ends, "a full window", |ends| {
        while matches!(send(&mut ends[0], 1, sent), SendOutcome::Sent) {
            sent += 1;
        }
        waiting(&ends[1], 0) as u64 == sent && ends[0].view(1).connection.is_some_and(|seen| seen.no_room)
    });
    ends[0].serve();
    assert!(matches!(send(&mut ends[0], 1, sent), SendOutcome::NoRoom));
    for _ in 0..sent / 2 {
        assert!(take(&mut ends[1]).is_some());
    }
    ends[0].serve();
    assert!(matches!(send(&mut ends[0], 1, sent), SendOutcome::Sent), "{sent} packets, half of them taken");
}

/// What waits for slow handlers is acknowledged meanwhile: its sender takes it for lost otherwise.
#[test]
fn packets_are_acknowledged_while_others_are_handled() {
    let mut ends = met(two(|own| own.acknowledge_every = 31));
    for number in 0..10 {
        assert!(matches!(send(&mut ends[0], 1, number), SendOutcome::Sent));
    }
    serve_until(&mut ends[1..], "the packets", |ends| waiting(&ends[0], 0) == 10);
    assert!(take(&mut ends[1]).is_some());
    std::thread::sleep(Duration::from_millis(20));
    assert!(take(&mut ends[1]).is_some());
    ends[0].serve();
    assert_eq!(ends[0].tally().sent_again, 0);
    assert!(ends[0].settled(), "{:?}", ends[0].view(1).connection);
}
