//! What the tasks of a network share: one inbox for each of them.

use super::Letter;
use super::MemOptions;
use super::remote::Registration;
use crate::base::descriptor::Descriptor;
use crate::base::sync::Mutex;
use crate::transport::{PeerState, Task, Ticket};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering};

pub(super) struct Network {
    pub(super) options: MemOptions,
    pub(super) ends: Vec<End>,
    /// The number of the next ticket.
    pub(super) tickets: AtomicU64,
    /// How many tasks have closed or died.
    pub(super) departures: AtomicU64,
    /// How many tasks are armed: while none is, a departure need not look for them among thousands.
    pub(super) sleepers: AtomicUsize,
    /// By (task, peer): the task lets the peer rejoin. Removed when the peer has taken note.
    pub(super) rejoins: Mutex<BTreeMap<(Task, Task), Rejoin>>,
    /// The registered memory of all tasks, by key. Locked during an access by key, so that memory
    /// whose registration was withdrawn is not accessed.
    pub(super) registrations: Mutex<BTreeMap<u64, Registration>>,
    /// (owner, peer): the peer may access all memory of the owner. Locked likewise.
    pub(super) open: Mutex<BTreeSet<(Task, Task)>>,
}

/// One task lets another one rejoin.
pub(super) struct Rejoin {
    pub(super) epoch: u64,
    /// How often the task had been restarted.
    pub(super) life: u64,
    /// The other lets this one rejoin, too: they are connected.
    pub(super) both: bool,
}

impl Network {
    pub(super) fn new(tasks: u32, options: MemOptions) -> Self {
        Self {
            options,
            ends: (0..tasks).map(|_| End::new()).collect(),
            tickets: AtomicU64::new(0),
            departures: AtomicU64::new(0),
            sleepers: AtomicUsize::new(0),
            rejoins: Mutex::default(),
            registrations: Mutex::default(),
            open: Mutex::new((0..tasks).flat_map(|one| (0..tasks).map(move |other| (one, other))).collect()),
        }
    }

    /// Forgets what `from` has sent to `to`. What was taken for it is reported: its memory is free.
    pub(super) fn empty(&self, from: Task, to: Task) {
        let mut inbox = self.end(to).inbox.lock();
        let lane = inbox.lanes.remove(&from);
        inbox.ready.retain(|&ready| ready != from);
        drop(inbox);
        self.report(
            from,
            lane.into_iter().flat_map(|lane| lane.queue).filter_map(|mut letter| letter.fetch()),
        );
    }

    /// The memory of these packets of `task` is free.
    pub(super) fn report(&self, task: Task, tickets: impl Iterator<Item = Ticket>) {
        let mut tickets = tickets.peekable();
        if tickets.peek().is_some() {
            let end = self.end(task);
            let mut inbox = end.inbox.lock();
            inbox.completed.extend(tickets);
            end.call(&mut inbox);
        }
    }

    /// Copies everything that `from` has sent to `to` and that is still in its memory; the tickets
    /// are not reported.
    pub(super) fn recall(&self, from: Task, to: Task) {
        if let Some(lane) = self.end(to).inbox.lock().lanes.get_mut(&from) {
            lane.queue.iter_mut().for_each(|letter| {
                letter.fetch();
            });
        }
    }

    /// Frees what all tasks that `from` has sent to hold of its memory.
    pub(super) fn free_memory_of(&self, from: Task) {
        if self.options.take {
            (0..self.ends.len() as Task).for_each(|to| self.recall(from, to));
        }
    }

    /// Withdraws these registrations.
    pub(super) fn withdraw(&self, which: impl Fn(&Registration) -> bool) {
        if self.options.keyed {
            self.registrations.lock().retain(|_, registration| !which(registration));
        }
    }

    /// The peer may not access all memory of `owner` any more; `None`: no peer may.
    pub(super) fn close_memory(&self, owner: Task, peer: Option<Task>) {
        if self.options.standing {
            self.open.lock().retain(|(of, to)| *of != owner || peer.is_some_and(|peer| *to != peer));
        }
    }

    pub(super) fn next_ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn end(&self, task: Task) -> &End {
        &self.ends[task as usize]
    }

    /// There is room again where `task` was refused: it wakes, or its next `arm` fails.
    pub(super) fn note_room(&self, task: Task) {
        let end = self.end(task);
        let mut inbox = end.inbox.lock();
        inbox.noted |= inbox.sleep == Sleep::Awake;
        end.call(&mut inbox);
    }

    pub(super) fn depart(&self, task: Task, how: PeerState) {
        let end = self.end(task);
        let mut inbox = end.inbox.lock();
        if end.state() != PeerState::Up {
            return;
        }
        end.state.store(how as u8, Ordering::Release);
        self.withdraw(|registration| registration.owner == task);
        self.close_memory(task, None);
        if how == PeerState::Dead {
            inbox.lanes.clear();
            inbox.ready.clear();
            end.signal();
        }
        drop(inbox);
        // SeqCst: as in `arm`.
        self.departures.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.ends.iter().for_each(|end| end.call(&mut end.inbox.lock()));
        }
    }
}

/// What the network holds of one task.
pub(super) struct End {
    pub(super) inbox: Mutex<Inbox>,
    /// A [`PeerState`]. Written under the lock of `inbox`, so that a sender that holds the lock
    /// sees the present state.
    pub(super) state: AtomicU8,
    /// How often the task was restarted.
    pub(super) life: AtomicU64,
    pub(super) polling: AtomicBool,
    pub(super) acknowledges_every: AtomicU16,
    /// Made when it is first needed: tasks that are stepped by one thread need none, and there
    /// may be thousands.
    pub(super) event: OnceLock<Descriptor>,
}

impl End {
    pub(super) fn new() -> Self {
        Self {
            inbox: Mutex::default(),
            state: AtomicU8::new(PeerState::Up as u8),
            life: AtomicU64::new(0),
            polling: AtomicBool::new(false),
            acknowledges_every: AtomicU16::new(0),
            event: OnceLock::new(),
        }
    }

    pub(super) fn state(&self) -> PeerState {
        match self.state.load(Ordering::Acquire) {
            0 => PeerState::Up,
            1 => PeerState::Closed,
            _ => PeerState::Dead,
        }
    }

    /// Puts a packet in; its place is taken already.
    pub(super) fn deliver(&self, inbox: &mut Inbox, letter: Letter) {
        let src = letter.parcel.src;
        let lane = inbox.lanes.entry(src).or_default();
        lane.queue.push_back(letter);
        if lane.queue.len() == 1 {
            inbox.ready.push_back(src);
        }
        self.call(inbox);
    }

    /// Wakes the task if it is armed, and has not been called yet.
    pub(super) fn call(&self, inbox: &mut Inbox) {
        if inbox.sleep == Sleep::Armed {
            inbox.sleep = Sleep::Called;
            self.signal();
        }
    }

    pub(super) fn event(&self) -> &Descriptor {
        self.event
            .get_or_init(|| Descriptor::event().expect("an event descriptor for a task (see ulimit -n)"))
    }

    pub(super) fn signal(&self) {
        self.event().signal();
    }

    pub(super) fn drain(&self) {
        if let Some(event) = self.event.get() {
            event.drain();
        }
    }
}

const _: () = assert!(PeerState::Up as u8 == 0 && PeerState::Closed as u8 == 1 && PeerState::Dead as u8 == 2);

#[derive(Default)]
pub(super) struct Inbox {
    /// The lane of each sender that has ever sent here.
    pub(super) lanes: BTreeMap<Task, Lane>,
    /// The senders whose lanes have something, in the order of their turns.
    pub(super) ready: VecDeque<Task>,
    /// Packets of this task whose memory is free again.
    pub(super) completed: VecDeque<Ticket>,
    /// Memory of released packets.
    pub(super) spare: Vec<Vec<u64>>,
    pub(super) sleep: Sleep,
    /// Room was made (see [`Network::note_room`]) while the task was awake and perhaps
    /// about to sleep.
    pub(super) noted: bool,
    /// How many departures the task knew of when it was last armed.
    pub(super) departures: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Sleep {
    #[default]
    Awake,
    /// Armed: the next event must make the descriptor readable.
    Armed,
    /// Armed, and the descriptor has been made readable.
    Called,
}

#[derive(Default)]
pub(super) struct Lane {
    pub(super) queue: VecDeque<Letter>,
    /// Places in use: packets in the queue, and the one that is handed out.
    pub(super) taken: usize,
    /// How many packets were given back.
    pub(super) released: u64,
    /// The sender was refused and waits for room.
    pub(super) wanted: bool,
}
