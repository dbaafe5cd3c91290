//! A network that loses, repeats, delays and reorders datagrams, and brings old ones again.

use super::{ends_on, met, send, take};
use crate::base::clock::test_deadline;
use crate::base::rng::Rng;
use crate::transport::conformance::Calls;
use crate::transport::conformance::{self, served};
use crate::transport::udp::UdpTransport;
use crate::transport::udp::device::{Datagram, Device};
use crate::transport::udp::seal::Security;
use crate::transport::udp::socket::Socket;
use crate::transport::{PeerState, Peers, SendOutcome, Task, Wakeup};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Datagrams that are kept to be brought again.
const RECORDED: usize = 500;

/// A device on such a network.
pub(super) struct Disturbed {
    socket: Socket,
    rng: Rng,
    /// How probable each of the disturbances is.
    chance: f64,
    /// What arrives after some more calls.
    late: Vec<(u64, SocketAddr, Vec<u8>)>,
    recorded: Vec<(SocketAddr, Vec<u8>)>,
}

impl Disturbed {
    pub(super) fn new(socket: Socket, seed: u64, chance: f64) -> Self {
        Self { socket, rng: Rng::new(seed), chance, late: Vec::new(), recorded: Vec::new() }
    }
}

impl Device for Disturbed {
    fn send(&mut self, datagrams: &[Datagram<'_>]) -> usize {
        if self.rng.chance(self.chance / 4.0) {
            // No room, or for the first one only.
            return self.socket.send(&datagrams[..datagrams.len().min(self.rng.below(2) as usize)]);
        }
        self.socket.send(datagrams)
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, &mut [u8])) -> usize {
        let Self { socket, rng, chance, late, recorded } = self;
        let mut taken = 0;
        let mut pass = |from: SocketAddr, bytes: &[u8]| {
            taken += 1;
            take(from, &mut bytes.to_vec());
        };
        let mut at = 0;
        while at < late.len() {
            late[at].0 -= 1;
            if late[at].0 == 0 {
                let (_, from, bytes) = late.swap_remove(at);
                pass(from, &bytes);
            } else {
                at += 1;
            }
        }
        socket.receive(&mut |from, bytes| {
            let kept = (from, bytes.to_vec());
            if recorded.len() < RECORDED {
                recorded.push(kept);
            } else if rng.chance(0.02) {
                recorded[rng.below(RECORDED as u64) as usize] = kept;
            }
            if rng.chance(*chance) {
                return;
            }
            if rng.chance(*chance) {
                late.push((1 + rng.below(20), from, bytes.to_vec()));
            } else {
                pass(from, bytes);
            }
            if rng.chance(*chance) {
                late.push((1 + rng.below(40), from, bytes.to_vec()));
            }
            if rng.chance(*chance) {
                let (from, old) = &recorded[rng.below(recorded.len() as u64) as usize];
                pass(*from, old);
            }
        });
        taken
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.socket.event_fd()
    }
}

fn ends(tasks: u32, datagram: usize, seed: u64, chance: f64) -> Vec<UdpTransport> {
    ends_on(tasks, Security::Auth, datagram, |socket, task| {
        Box::new(Disturbed::new(socket, seed << 8 | u64::from(task), chance))
    })
}

#[test]
fn carries_everything_over_a_network_that_disturbs() {
    conformance::disturbed(|tasks| served(met(ends(tasks, 8_000, 1, 0.01))));
}

/// One task in [`parts_and_rejoins`].
struct One {
    /// The epoch that it has sent, and the one that it was sent.
    own: u64,
    theirs: Option<u64>,
    sent: BTreeSet<u64>,
    got: BTreeSet<u64>,
    next: u64,
}

impl One {
    /// The next packet: both epochs, as the sender knows them, and a number.
    fn packet(&self) -> Option<u64> {
        Some(self.own << 48 | self.theirs? << 32 | self.next)
    }

    fn part(&mut self, end: &mut UdpTransport, peer: Task, rng: &mut Rng) {
        end.part(peer);
        self.own += 1;
        if rng.chance(0.2) {
            // It changes its mind.
            end.rejoin(peer, self.own).expect("can rejoin");
            end.part(peer);
            self.own += 1;
        }
        end.rejoin(peer, self.own).expect("can rejoin");
        self.theirs = None;
        self.sent.clear();
        self.got.clear();
    }

    fn step(&mut self, end: &mut UdpTransport, peer: Task, rng: &mut Rng, parts: bool) {
        if let Some((task, epoch)) = end.rejoined() {
            assert_eq!((task, self.theirs), (peer, None), "named twice");
            self.theirs = Some(epoch);
        }
        let standing = end.standing(peer);
        assert!(standing.state == PeerState::Up || standing.has_parted, "{standing:?}");
        let answers = standing.has_parted && rng.chance(0.05);
        if answers || parts && rng.chance(0.002) {
            self.part(end, peer, rng);
        }
        for _ in 0..rng.below(4) {
            let Some(packet) = self.packet().filter(|_| self.sent.len() < 3_000) else { break };
            if !matches!(send(end, peer, packet), SendOutcome::Sent) {
                break;
            }
            self.sent.insert(packet);
            self.next += 1;
        }
        for _ in 0..rng.below(6) {
            let Some((from, packet)) = take(end) else { break };
            let epochs = (Some(packet >> 48), packet >> 32 & 0xffff);
            assert_eq!((from, epochs), (peer, (self.theirs, self.own)), "a packet of another connection");
            assert!(self.got.insert(packet), "packet {packet:x} came twice");
        }
        if rng.chance(0.3) {
            if end.arm() {
                end.disarm();
            }
        } else {
            end.serve();
        }
    }
}

fn parts_and_rejoins(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut ends = ends(2, 512, seed, 0.05);
    let mut tasks: Vec<One> = [1, 0x100]
        .map(|own| One { own, theirs: None, sent: BTreeSet::new(), got: BTreeSet::new(), next: 0 })
        .into();
    for (at, end) in ends.iter_mut().enumerate() {
        end.rejoin(1 - at as Task, tasks[at].own).expect("can rejoin");
    }
    let deadline = Instant::now() + test_deadline();
    for step in 0_u64.. {
        assert!(Instant::now() < deadline, "seed {seed}: the tasks never have everything");
        for at in 0..2 {
            tasks[at].step(&mut ends[at], 1 - at as Task, &mut rng, step < 4_000);
        }
        let [one, other] = &tasks[..] else { unreachable!("two") };
        let agree = one.theirs == Some(other.own) && other.theirs == Some(one.own);
        let whole = one.sent.len() >= 200 && one.sent == other.got && other.sent == one.got;
        if step > 4_000 && agree && whole && other.sent.len() >= 200 {
            return;
        }
    }
}

#[test]
fn tasks_part_and_rejoin_on_a_network_that_disturbs() {
    for seed in 1..=4 {
        parts_and_rejoins(seed);
    }
}
