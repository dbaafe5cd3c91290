//! Tasks of tests, which are threads of one process: all are connected from the beginning, and part
//! and rejoin without sockets.

use super::connection::{self, Absence, Connector, Particulars, Site};
use super::remote::{self, CrossMemory};
use super::{Door, Group, Own, ShmTransport, polled};
use crate::base::asymmetric_barrier;
use crate::base::machine::page;
use crate::base::sync::Mutex;
use crate::transport::{NO_EPOCH, PeerState, Task};
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// The ends of a job of `tasks` tasks, all connected.
pub(crate) fn ends(tasks: u32) -> Vec<ShmTransport> {
    ends_with_pages(tasks, page())
}

/// The ends of a job on a machine with pages of this size; that of a larger page is a multiple of
/// each smaller one, so that any machine can have them.
pub(super) fn ends_with_pages(tasks: u32, page: usize) -> Vec<ShmTransport> {
    connected(Group::all(tasks), page, |rank| 0..rank)
}

/// The ends of a job of `tasks` tasks, each connected with task 0 only.
pub(crate) fn star(tasks: u32) -> Vec<ShmTransport> {
    connected(Group::all(tasks), page(), |rank| 0..rank.min(1))
}

/// The ends of the tasks of a host, all connected.
pub(super) fn ends_of(group: Group) -> Vec<ShmTransport> {
    connected(group, page(), |rank| 0..rank)
}

/// The ends of the tasks of a host, in which each is connected with those of these ranks before it.
fn connected(group: Group, page: usize, before: impl Fn(u32) -> Range<u32>) -> Vec<ShmTransport> {
    let tasks: Vec<Task> = (0..group.count()).filter_map(|rank| group.task(rank)).collect();
    let asymmetric = asymmetric_barrier::registered();
    let (owns, sites): (Vec<_>, Vec<_>) =
        tasks.iter().map(|&me| Own::with_pages(me, group.clone(), page).expect("shared memory")).unzip();
    let sites = tasks.iter().copied().zip(sites).collect();
    let exchange = Arc::new(Exchange { sites, waiting: Mutex::new(BTreeMap::new()), asymmetric });
    for rank in 0..group.count() {
        let peers = before(rank).map(|peer| tasks[peer as usize]);
        peers.for_each(|peer| exchange.connect((tasks[rank as usize], None), (peer, None)));
    }
    // Where the machine has no copies across address spaces, as qemu has none, the rest is tested.
    // What needs them, remote::tests first, fails there.
    let copies = remote::landmark().look_up(std::process::id().cast_signed()).is_ok();
    let end = |own: Own| {
        let memory = copies.then(|| CrossMemory::new(group.job, false, None));
        let connector = Box::new(Hub { task: own.me, exchange: exchange.clone() });
        let mut end = ShmTransport::new(own, asymmetric, memory, connector);
        end.fetch_first_contacts();
        end
    };
    owns.into_iter().map(end).collect()
}

/// The ends of a job, where every task stops polling each ring that it finds empty.
pub(crate) fn selective_ends(tasks: u32) -> Vec<ShmTransport> {
    let mut ends = ends(tasks);
    ends.iter_mut().for_each(|end| end.set_bounds(polled::Bounds::NONE));
    ends
}

/// The process of `peer` has ended, as `end` sees it. The number of the process belongs to another
/// one now, which is this one.
pub(crate) fn end_process(end: &mut ShmTransport, peer: Task) {
    let process = &mut end.peers.get_mut(peer).expect("a connection").process;
    let (here, _) = UnixStream::pair().expect("sockets");
    process.life = Some(Box::new(here));
    process.landmark.mark += 1;
}

/// The owner of this door has learnt that it is to announce its next packet, and is killed before
/// it does. Returns whether it had to announce one.
pub(crate) fn die_before_announcing(door: &Door) -> bool {
    door.out.must_announce()
}

/// Connects the tasks of one process.
struct Exchange {
    sites: BTreeMap<Task, Site>,
    /// Which task lets which other one rejoin, with which epoch.
    waiting: Mutex<BTreeMap<(Task, Task), u64>>,
    asymmetric: bool,
}

/// One task's way to it.
struct Hub {
    task: Task,
    exchange: Arc<Exchange>,
}

impl Exchange {
    fn connect(&self, one: (Task, Option<u64>), other: (Task, Option<u64>)) {
        let offer = |from: Task, to: Task| self.sites[&from].offer(to).expect("a ring");
        let (to_one, to_other) = (offer(one.0, other.0), offer(other.0, one.0));
        let accept = |by: Task, from: Task, offer: &connection::Offer| {
            let passed = self.sites[&from].descriptors(offer);
            let passed = passed.map(|fd| fd.try_clone_to_owned().expect("a descriptor"));
            self.sites[&by].accept(from, passed.into()).expect("shared memory")
        };
        let by_one = accept(one.0, other.0, &to_other);
        let by_other = accept(other.0, one.0, &to_one);
        let (here, there) = UnixStream::pair().expect("sockets");
        let about = |of: (Task, Option<u64>), by: (Task, Option<u64>)| Particulars {
            task: of.0,
            pid: std::process::id() as i32,
            landmark: remote::landmark(),
            asymmetric: self.asymmetric,
            epoch: of.1.unwrap_or(NO_EPOCH),
            rejoins: by.1.is_some(),
        };
        self.sites[&one.0].establish(about(other, one), to_one, by_one, Box::new(here));
        self.sites[&other.0].establish(about(one, other), to_other, by_other, Box::new(there));
    }
}

impl Connector for Hub {
    fn absence(&self, _peer: Task) -> Absence {
        Absence { state: PeerState::Dead, why: "has left".into() }
    }

    fn has_parted(&self, peer: Task) -> bool {
        self.exchange.waiting.lock().contains_key(&(peer, self.task))
    }

    fn part(&self, peer: Task) {
        self.exchange.waiting.lock().remove(&(self.task, peer));
        self.exchange.sites[&self.task].take_back(peer);
    }

    fn rejoin(&self, peer: Task, epoch: u64) {
        let mut waiting = self.exchange.waiting.lock();
        match waiting.remove(&(peer, self.task)) {
            Some(theirs) => self.exchange.connect((self.task, Some(epoch)), (peer, Some(theirs))),
            None => drop(waiting.insert((self.task, peer), epoch)),
        }
    }
}
