//! The deaths of tasks of other hosts, without a launcher that knows of them.

use super::disturbed::Disturbed;
use super::{Listed, ends_on, serve_until};
use crate::base::clock::test_deadline;
use crate::base::process::Process;
use crate::base::sync::Mutex;
use crate::error::Result;
use crate::transport::udp::seal::{Announcement, JobKey, Security};
use crate::transport::udp::{Directory, UdpTransport};
use crate::transport::{Endpoint, PeerState, Peers, Task, Want};
use crate::wire::network::{Content, Notice};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A process that ends when it is dropped.
struct Living {
    child: Child,
    known: Process,
}

impl Living {
    fn new() -> Self {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
        let known = Process::of(child.id());
        Self { child, known }
    }

    fn process(&self) -> Process {
        self.known
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.end();
    }
}

/// Two hosts with two tasks each, on a network that loses, and the process of task 1.
fn two_hosts(seed: u64) -> (Vec<UdpTransport>, Living) {
    let one = Living::new();
    let mut ends = ends_on(4, Security::Auth, 1472, |socket, me| {
        Box::new(Disturbed::new(socket, seed + u64::from(me), 0.1))
    });
    for (end, me) in ends.iter_mut().zip(0..) {
        let mut processes = vec![Process::own(); 4];
        processes[1] = one.process();
        if me == 1 {
            end.acts_as(one.process());
        }
        end.watch_others(vec![0, 0, 1, 1], processes, Box::default());
    }
    (ends, one)
}

fn knows(end: &UdpTransport, task: Task) -> bool {
    end.standing(task).state == PeerState::Dead
}

/// Tasks that have had no contact with the one that has died learn of it, as those that have.
#[test]
fn a_death_is_known_to_the_tasks_of_every_host() {
    for seed in 0..4 {
        let (mut ends, mut one) = two_hosts(100 * seed);
        ends[2].want(Want::Connection(1));
        serve_until(&mut ends, "contact", |ends| ends[2].standing(1).absence.is_none());
        one.end();
        let mut dead = ends.remove(1);
        dead.outlet.close();
        serve_until(&mut ends, "the news", |ends| ends.iter().all(|end| knows(end, 1)));
        assert_eq!(
            ends[1].standing(1).absence.as_deref(),
            Some("has ended without calling LAPI_Term"),
            "seed {seed}"
        );
        assert!(ends.iter().all(|end| [0, 2, 3].iter().all(|task| !knows(end, *task))));
    }
}

/// A task that has ended LAPI has not died when its process ends, also where no task had
/// contact with it.
#[test]
fn the_end_of_a_process_that_has_ended_lapi_is_no_death() {
    for seed in 0..4 {
        let (mut ends, mut one) = two_hosts(100 * seed);
        (0..20).for_each(|_| ends.iter_mut().for_each(|end| end.serve()));
        let mut leaving = ends.remove(1);
        // This process may pause for as long as a task waits for receipts.
        leaving.deaths.linger = test_deadline();
        let closing = std::thread::spawn(move || leaving.close());
        let deadline = Instant::now() + test_deadline();
        while !closing.is_finished() {
            ends.iter_mut().for_each(|end| end.serve());
            assert!(Instant::now() < deadline, "the end of a task hangs");
        }
        one.end();
        let soon = Instant::now() + Duration::from_millis(700);
        while Instant::now() < soon {
            ends.iter_mut().for_each(|end| end.serve());
            std::thread::yield_now();
        }
        assert!(!ends.iter().any(|end| knows(end, 1)), "seed {seed}");
    }
}

/// A process that has taken the place of another one had no contact with the one that has died: it
/// awaits the next one.
#[test]
fn a_process_that_replaces_another_awaits_the_successor_of_a_dead_task() {
    let (mut ends, mut one) = two_hosts(7);
    ends[2].replaces_another();
    one.end();
    let mut dead = ends.remove(1);
    dead.outlet.close();
    serve_until(&mut ends, "the news", |ends| knows(&ends[2], 1));
    let soon = Instant::now() + Duration::from_millis(500);
    while Instant::now() < soon {
        ends.iter_mut().for_each(|end| end.serve());
    }
    assert!(!knows(&ends[1], 1));
    assert_eq!(ends[1].standing(1).absence.as_deref(), Some("has not rejoined yet"));
}

/// Addresses, and the cards of processes that take the places of others.
struct Cards {
    listed: Listed,
    /// The process of task 1.
    one: Arc<Mutex<Process>>,
}

impl Directory<SocketAddr> for Cards {
    fn address_of(&mut self, peer: Task) -> Result<SocketAddr> {
        self.listed.address_of(peer)
    }

    fn process_of(&mut self, peer: Task) -> Option<Process> {
        Some(if peer == 1 { *self.one.lock() } else { Process::own() })
    }
}

/// All tasks of a host have died, and others have taken their places: the cards show it. The death
/// is reported before, and the successor is not connected with before that.
#[test]
fn a_death_is_reported_before_another_process_takes_the_place() {
    let (mut former, successor) = (Living::new(), Living::new());
    let one = Arc::new(Mutex::new(former.process()));
    let mut ends = ends_on(2, Security::Auth, 1472, |socket, _| Box::new(socket));
    let addresses: Vec<SocketAddr> =
        (0..2).map(|task| ends[0].directory.address_of(task).expect("an address")).collect();
    let listed = Listed(Arc::new(addresses));
    ends[0].directory = Box::new(Cards { listed, one: one.clone() });
    ends[0].watch_others(vec![0, 1], vec![Process::own(), former.process()], Box::default());
    ends[1].acts_as(former.process());
    ends[1].want(Want::Connection(0));
    serve_until(&mut ends, "contact", |ends| {
        ends[0].standing(1).absence.is_none() && ends[0].table.met().contains(&1)
    });
    former.end();
    // The successor may greet before its card is seen.
    assert!(!ends[0].knows_process(1, successor.process()));
    *one.lock() = successor.process();
    serve_until(&mut ends[..1], "the report", |ends| knows(&ends[0], 1));
    assert!(ends[0].knows_process(1, successor.process()));
    assert!(!ends[0].knows_process(1, former.process()), "a process that is no more");
}

/// What a process says that this task does not know yet is not lost: its card shows that it has
/// taken the place of the one before.
#[test]
fn a_process_that_is_not_known_yet_ends_lapi() {
    let (former, successor) = (Living::new(), Living::new());
    let one = Arc::new(Mutex::new(former.process()));
    let mut ends = ends_on(2, Security::Auth, 1472, |socket, _| Box::new(socket));
    let addresses: Vec<SocketAddr> =
        (0..2).map(|task| ends[0].directory.address_of(task).expect("an address")).collect();
    ends[0].directory = Box::new(Cards { listed: Listed(Arc::new(addresses)), one: one.clone() });
    ends[0].watch_others(vec![0, 0], vec![Process::own(), former.process()], Box::default());
    let end = &mut ends[0];
    let stranger = Process { pid: 1, started: 1 };
    for (present, said, closed) in [
        // The card shows another one than that which has ended LAPI.
        (former.process(), stranger, false),
        (successor.process(), successor.process(), true),
    ] {
        *one.lock() = present;
        let notice = Notice { content: Content::Closed, task: 1, life: said.life() };
        let mut datagram = JobKey::new(&[7; 16], Security::Auth).announce(
            1,
            0,
            &Announcement { notice, is_receipt: false, life: said.life() },
        );
        let now = end.now();
        end.note_datagram(now, (Ipv4Addr::LOCALHOST, 9).into(), &mut datagram);
        let ring = end.deaths.watch.as_ref().expect("a watch").shared.ring();
        assert_eq!((ring.life(1), ring.is_living(1)), (present.life(), !closed));
    }
}

/// A notice that no task of the job has made changes nothing.
#[test]
fn a_forged_notice_is_refused() {
    let (mut ends, one) = two_hosts(1);
    let notice = Notice { content: Content::Died, task: 1, life: one.process().life() };
    let announcement = Announcement { notice, is_receipt: false, life: Process::own().life() };
    let stranger = JobKey::new(&[8; 16], Security::Auth).announce(3, 2, &announcement);
    let other = JobKey::new(&[7; 16], Security::Auth).announce(3, 0, &announcement);
    let genuine = JobKey::new(&[7; 16], Security::Auth).announce(3, 2, &announcement);
    for (datagram, refused, dead) in [(stranger, 1, false), (other, 2, false), (genuine, 2, true)] {
        let now = ends[2].now();
        ends[2].note_datagram(now, (Ipv4Addr::LOCALHOST, 9).into(), &mut datagram.clone());
        let ended = Instant::now() + Duration::from_millis(400);
        while Instant::now() < ended {
            ends[2].serve();
        }
        assert_eq!((ends[2].outlet.refusals.forged, knows(&ends[2], 1)), (refused, dead));
    }
}

/// A process that takes the place of one that has got a notice has not got it.
#[test]
fn the_receipt_of_a_former_process_is_not_that_of_its_successor() {
    let (mut ends, mut one) = two_hosts(3);
    one.end();
    let news = |end: &UdpTransport| {
        let watch = end.deaths.watch.as_ref().expect("a watch");
        watch.outgoing.iter().find(|(_, notice)| notice.task == 1 && notice.content != Content::Watches)
    };
    serve_until(&mut ends[..1], "a notice", |ends| news(&ends[0]).is_some());
    let (to, notice) = news(&ends[0]).expect("it was there");
    let (now, successor) = (ends[0].now(), Living::new());
    ends[0].note_process(to, successor.process());
    for (process, still) in [(Process::own(), true), (successor.process(), false)] {
        let receipt = Announcement { notice, is_receipt: true, life: process.life() };
        let mut receipt = JobKey::new(&[7; 16], Security::Auth).announce(to, 0, &receipt);
        ends[0].note_datagram(now, (Ipv4Addr::LOCALHOST, 9).into(), &mut receipt);
        assert_eq!((news(&ends[0]).is_some(), ends[0].outlet.refusals.forged), (still, 0));
    }
}
