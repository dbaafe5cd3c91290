//! Strangers who see what the tasks send, and send it again, from other addresses and earlier than
//! it would arrive: without sockets, from seeds.

use super::{Listed, OTHER, met, send, serve_until, settings, take};
use crate::base::rng::Rng;
use crate::transport::conformance::Calls;
use crate::transport::udp::UdpTransport;
use crate::transport::udp::address_validation::AddressValidation;
use crate::transport::udp::contact::VALIDATION;
use crate::transport::udp::device::{Datagram, Device};
use crate::transport::udp::seal::{Claim, ENVELOPE, Security};
use crate::transport::{Endpoint, Peers, SendOutcome, Task, Want};
use crate::wire::datagram::Hello;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

/// Where task `task` receives.
fn of_task(task: Task) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, task as u8 + 1), 7000).into()
}

fn of_stranger(number: u64) -> SocketAddr {
    (Ipv4Addr::new(198, 51, 100, number as u8 + 1), 7000).into()
}

/// The network, and the strangers on it.
struct Network {
    rng: Rng,
    arriving: HashMap<SocketAddr, VecDeque<(SocketAddr, Vec<u8>)>>,
    /// What arrives only after some more calls.
    late: Vec<(u64, SocketAddr, SocketAddr, Vec<u8>)>,
    recorded: Vec<(SocketAddr, Vec<u8>)>,
    /// How probably a stranger sends a datagram again before it arrives, and an old one beside it.
    chance: f64,
    /// Some datagrams arrive late.
    delays: bool,
    /// The strangers pass on what is sent to them, too.
    relays: bool,
    /// Sealed datagrams that went to strangers.
    diverted: usize,
}

impl Network {
    fn arrive(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.arriving.entry(to).or_default().push_back((from, bytes.to_vec()));
    }

    fn carry(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        let stranger = of_stranger(self.rng.below(3));
        if to != of_task(0) && to != of_task(1) {
            let sealed = Claim::of(&bytes).is_some_and(|claim| claim.number != 0);
            self.diverted += usize::from(sealed);
            if self.relays {
                // To the task that has not sent it, as if the stranger had.
                let other = if from == of_task(0) { of_task(1) } else { of_task(0) };
                self.arrive(to, other, &bytes);
            }
            return;
        }
        if self.rng.chance(self.chance) {
            self.arrive(stranger, to, &bytes);
        }
        if self.rng.chance(self.chance / 2.0) && !self.recorded.is_empty() {
            let at = self.rng.below(self.recorded.len() as u64) as usize;
            let (to, old) = self.recorded[at].clone();
            self.arrive(stranger, to, &old);
        }
        self.recorded.push((to, bytes.clone()));
        if self.delays && self.rng.chance(self.chance) {
            self.late.push((self.rng.below(20), from, to, bytes));
        } else {
            self.arrive(from, to, &bytes);
        }
    }
}

struct OnNetwork {
    own: SocketAddr,
    network: Arc<Mutex<Network>>,
    event: OwnedFd,
}

impl OnNetwork {
    fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock().expect("no thread has panicked")
    }
}

impl Device for OnNetwork {
    fn send(&mut self, datagrams: &[Datagram<'_>]) -> usize {
        let mut network = self.network();
        datagrams.iter().for_each(|datagram| network.carry(self.own, datagram.to, datagram.bytes.to_vec()));
        datagrams.len()
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, &mut [u8])) -> usize {
        let mut network = self.network();
        for (turns, from, to, bytes) in std::mem::take(&mut network.late) {
            match turns {
                0 => network.arrive(from, to, &bytes),
                _ => network.late.push((turns - 1, from, to, bytes)),
            }
        }
        let mut arrived = network.arriving.remove(&self.own).unwrap_or_default();
        drop(network);
        arrived.iter_mut().for_each(|(from, bytes)| take(*from, bytes));
        arrived.len()
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// Two tasks on such a network; the directory of task 0 lists `listed` for task 1.
fn ends(
    seed: u64,
    chance: f64,
    relays: bool,
    listed: SocketAddr,
) -> (Vec<UdpTransport>, Arc<Mutex<Network>>) {
    let network = Network {
        rng: Rng::new(seed),
        arriving: HashMap::new(),
        late: Vec::new(),
        recorded: Vec::new(),
        chance,
        delays: relays || seed.is_multiple_of(2),
        relays,
        diverted: 0,
    };
    let network = Arc::new(Mutex::new(network));
    let end = |me: Task| {
        let event = eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor");
        let device = OnNetwork { own: of_task(me), network: network.clone(), event };
        let directory = Listed(Arc::new(match me {
            0 => vec![of_task(0), listed],
            _ => vec![of_task(0), of_task(1)],
        }));
        let settings = settings(me, 2, Security::Auth, 1472);
        UdpTransport::new(&settings, Box::new(device), Box::new(directory)).expect("an end")
    };
    (vec![end(0), end(1)], network)
}

/// Sends packets in both directions until all have arrived.
fn exchange(seed: u64, ends: &mut [UdpTransport], from: u64) {
    for number in from..from + 30 {
        for to in [1, 0] {
            let outcome = send(&mut ends[1 - to as usize], to, number);
            assert!(matches!(outcome, SendOutcome::Sent), "seed {seed}: packet {number}: {outcome:?}");
        }
        for me in [0, 1] {
            let what = format!("seed {seed}: packet {number}");
            serve_until(ends, &what, |ends| take(&mut ends[me]) == Some((1 - me as Task, number)));
        }
    }
}

/// `UDP_SEEDS` in the environment asks for more.
fn seeds(usual: u64) -> std::ops::RangeInclusive<u64> {
    1..=std::env::var("UDP_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

fn used(ends: &[UdpTransport]) -> [Option<SocketAddr>; 2] {
    [(0, 1), (1, 0)].map(|(me, peer)| ends[me].peer(peer).and_then(|peer| peer.address_validation.address()))
}

#[test]
fn nothing_is_diverted_to_those_who_send_it_again() {
    for seed in seeds(20) {
        let chance = (seed % 5 + 1) as f64 / 5.0;
        let (mut ends, network) = ends(seed, chance, false, of_task(1));
        exchange(seed, &mut ends, 0);
        for (end, peer) in ends.iter_mut().zip([1, 0]) {
            end.part(peer);
            end.rejoin(peer, seed).expect("can rejoin");
        }
        for me in [0, 1] {
            serve_until(&mut ends, "the peer", |ends| ends[me].rejoined() == Some((1 - me as Task, seed)));
        }
        exchange(seed, &mut ends, 100);
        assert_eq!(network.lock().expect("unpoisoned").diverted, 0, "seed {seed}");
        assert_eq!(used(&ends), [1, 0].map(|peer| Some(of_task(peer))), "seed {seed}");
        assert!(ends.iter().all(|end| end.outlet.waiting().1 < 10), "seed {seed}: questions pile up");
    }
}

/// Who passes the questions on proves that he can pass on datagrams, until one of the
/// peer's arrives.
#[test]
fn those_who_relay_lose_what_they_got_to_the_listed_address() {
    let mut diverted = 0;
    for seed in seeds(20) {
        let (mut ends, network) = ends(seed, 0.8, true, of_task(1));
        for round in 0.. {
            exchange(seed, &mut ends, 100 * round);
            if used(&ends) == [1, 0].map(|peer| Some(of_task(peer))) && round > 1 {
                break;
            }
            assert!(round < 50, "seed {seed}: {:?}", used(&ends));
        }
        diverted += network.lock().expect("unpoisoned").diverted;
    }
    assert_ne!(diverted, 0, "the strangers relay nothing");
}

/// As a process whose address is not listed yet, because it has taken the place of another one.
#[test]
fn a_peer_that_is_not_where_it_is_listed_is_found_among_strangers() {
    for seed in seeds(15) {
        let nowhere = (Ipv4Addr::new(203, 0, 113, 1), 7000).into();
        let (ends, network) = ends(seed, (seed % 3) as f64 / 4.0, false, nowhere);
        let mut ends = met(ends);
        exchange(seed, &mut ends, 0);
        assert_eq!(used(&ends), [1, 0].map(|peer| Some(of_task(peer))), "seed {seed}");
        // A reply to a question counts for the address from which it comes alone, and in
        // its connection.
        let theirs = ends[0].peer(1).and_then(|peer| peer.session.as_ref()).expect("a session");
        let (mine, yours) = (theirs.connection.theirs(), 5);
        let guessed = Hello { mine, yours, epoch: VALIDATION, process: OTHER, longest: 0, opening: 0 };
        let reply = ends[1].credentials.greet(0, &guessed);
        network.lock().expect("unpoisoned").arrive(of_stranger(1), of_task(0), &reply);
        let replies: Vec<_> = {
            let network = network.lock().expect("unpoisoned");
            let short = |bytes: &&(SocketAddr, Vec<u8>)| bytes.1.len() > ENVELOPE && bytes.0 == of_task(0);
            network.recorded.iter().filter(short).cloned().collect()
        };
        for (to, bytes) in replies {
            network.lock().expect("unpoisoned").arrive(of_stranger(2), to, &bytes);
        }
        exchange(seed, &mut ends, 100);
        assert_eq!(used(&ends), [1, 0].map(|peer| Some(of_task(peer))), "seed {seed}");
    }
}

/// Until the other side knows of the connection, too, it is greeted where it was heard,
/// listed there or not.
#[test]
fn a_peer_is_greeted_where_it_was_heard_also_after_the_connection_is_made() {
    let nowhere: SocketAddr = (Ipv4Addr::new(203, 0, 113, 1), 7000).into();
    let (mut ends, network) = ends(2, 0.0, false, nowhere);
    network.lock().expect("unpoisoned").delays = false;
    ends[1].want(Want::Connection(0));
    let made = |end: &UdpTransport| end.peer(1).is_some() && end.standing(1).absence.is_none();
    serve_until(&mut ends, "a connection", |ends| made(&ends[0]));
    let peer = ends[0].peer(1).expect("it has greeted");
    assert!(!peer.address_validation.is_settled(), "it has proven nothing of its address");
    let hello = Hello { mine: 3, yours: 9, epoch: 1, process: OTHER, longest: 0, opening: 0 };
    network.lock().expect("unpoisoned").arriving.clear();
    ends[0].peer_mut(1).expect("it has greeted").address_validation = AddressValidation::made(Some(nowhere));
    ends[0].greet(1, &hello);
    let arrived = network.lock().expect("unpoisoned").arriving.remove(&of_task(1)).unwrap_or_default();
    assert_eq!(arrived.len(), 1);
}
