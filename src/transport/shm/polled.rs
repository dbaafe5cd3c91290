//! Which rings a task polls.
//!
//! A poll that finds nothing must not cost one look for each peer that has ever sent something.
//! While a task is connected with few peers it polls all their rings. When there are more, it stops
//! polling the rings in which nothing has arrived for some rounds; those peers are *quiet*. A quiet
//! peer announces its next packet ([`crate::base::announcements`]), and its ring is polled again.
//! So a task polls a few rings, those in which packets arrive, and one word for all others; and the
//! looks that find nothing in a ring, before it is not polled any more, are paid for by the packet
//! that came before.

use super::ShmTransport;
use super::peer::Peer;
use crate::transport::Task;

/// When a task stops polling rings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The task polls all rings while there are no more than these.
    most: usize,
    /// When there are more, it keeps polling at least these.
    least: usize,
    /// In one of this number of rounds it looks for rings in which nothing has arrived since
    /// the last time.
    rounds: u32,
}

impl Bounds {
    /// Of every job. A look costs a few nanoseconds, and a ring that is polled again costs its
    /// producer two atomic operations on memory that others write too, a hundred times as much.
    pub(super) const USUAL: Self = Self { most: 16, least: 8, rounds: 128 };

    /// Every ring becomes quiet whenever it is found empty.
    #[cfg(test)]
    pub(super) const NONE: Self = Self::of(0, 0, 1);

    #[cfg(test)]
    pub(super) const fn of(most: usize, least: usize, rounds: u32) -> Self {
        Self { most, least, rounds }
    }
}

/// The number of no task: a job has fewer.
const NO_TASK: Task = Task::MAX;

/// The peers whose rings are polled, and whose turn it is.
pub(super) struct Polled {
    tasks: Vec<Task>,
    /// The peer whose turn it is, by its place in `tasks`, which is 0 when there are none.
    turn: usize,
    /// The peer itself, or [`NO_TASK`].
    current: Task,
    /// There is none but that peer, and all rings are polled.
    alone: bool,
    /// Packets that were taken, one after the other, since this task has last looked at what it
    /// does not poll.
    pub(super) streak: u32,
    /// How many peers are quiet.
    quiet: usize,
    /// There are quiet peers, or too many that are not.
    selective: bool,
    /// Rounds since the last search for quiet peers.
    rounds: u32,
    bounds: Bounds,
}

impl Default for Polled {
    fn default() -> Self {
        let (tasks, bounds) = (Vec::new(), Bounds::USUAL);
        let (current, alone) = (NO_TASK, true);
        Self { tasks, turn: 0, current, alone, streak: 0, quiet: 0, selective: false, rounds: 0, bounds }
    }
}

impl Polled {
    pub(super) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Whether this task does not poll all rings, or should not: then [`ShmTransport::select`] must
    /// be called in every round.
    #[inline]
    pub(super) fn selective(&self) -> bool {
        self.selective
    }

    /// The peer whose turn it is, or a number that no peer has.
    #[inline(always)]
    pub(super) fn current(&self) -> Task {
        self.current
    }

    /// Whether there is none but that peer, and all rings are polled.
    #[inline(always)]
    pub(super) fn alone(&self) -> bool {
        self.alone
    }

    /// The next peer's turn.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.set_turn(if self.turn + 1 < self.tasks.len() { self.turn + 1 } else { 0 });
    }

    fn set_turn(&mut self, turn: usize) {
        self.turn = turn;
        self.current = self.tasks.get(turn).copied().unwrap_or(NO_TASK);
    }

    /// Polls the ring of this peer too.
    pub(super) fn add(&mut self, task: Task) {
        self.tasks.push(task);
        self.update();
    }

    /// Polls the ring of this peer no longer, or forgets that it is quiet. Returns whether it did
    /// one or the other.
    pub(super) fn remove(&mut self, task: Task, quiet: bool) -> bool {
        let before = self.tasks.len();
        if quiet {
            self.quiet -= 1;
        } else {
            self.tasks.retain(|&polled| polled != task);
            self.set_turn(0);
            self.streak = 0;
        }
        self.update();
        quiet || self.tasks.len() < before
    }

    fn update(&mut self) {
        self.selective = self.quiet != 0 || self.tasks.len() > self.bounds.most;
        self.alone = !self.selective && self.tasks.len() <= 1;
        // The first one may be new.
        self.set_turn(self.turn);
    }
}

impl ShmTransport {
    /// Polls again the rings of the peers that have announced something, and now and then stops
    /// polling those in which nothing arrives. To be called once a round. Returns whether a peer
    /// has announced something.
    #[inline(never)]
    pub(super) fn select(&mut self) -> bool {
        let announced = self.has_announcements() && self.take_announcements();
        self.polled.rounds += 1;
        if self.polled.rounds >= self.polled.bounds.rounds {
            self.polled.rounds = 0;
            self.find_quiet();
        }
        announced
    }

    /// Whether a quiet peer has announced something.
    #[inline]
    pub(super) fn has_announcements(&self) -> bool {
        self.polled.quiet != 0 && self.segment.announcements().any()
    }

    #[cold]
    fn take_announcements(&mut self) -> bool {
        let (polled, peers) = (&mut self.polled, &mut self.peers);
        let before = polled.quiet;
        self.segment.announcements().take(|rank| {
            let Some(task) = self.group.task(rank) else { return };
            // It may have been found in another way since, or be a peer that this task is no longer
            // connected with.
            let peer = peers.get_mut(task);
            if peer.is_some_and(|peer| std::mem::take(&mut peer.quiet)) {
                polled.quiet -= 1;
                polled.tasks.push(task);
            }
        });
        polled.update();
        let fewer = polled.quiet < before;
        self.hear_all();
        fewer
    }

    /// Peers announce nothing any more when none is quiet.
    pub(super) fn hear_all(&self) {
        if self.polled.quiet == 0 && self.segment.doorbell().selective() {
            self.segment.doorbell().set_selective(false);
        }
    }

    /// Stops polling the rings in which nothing has arrived since the last call, if they are too
    /// many. The peers that have been polled for longest come first.
    #[cold]
    fn find_quiet(&mut self) {
        let Polled { tasks, bounds, .. } = &self.polled;
        let excess = if tasks.len() > bounds.most { tasks.len() - bounds.least } else { 0 };
        let mut idle = 0;
        for &task in tasks {
            let Some(peer) = self.peers.get_mut(task) else { continue };
            let taken = peer.door.inward.taken();
            if std::mem::replace(&mut peer.taken_before, taken) == taken && idle < excess {
                idle += 1;
                peer.quiet = true;
            }
        }
        // The barrier costs a system call where it is asymmetric, and is worth it for many.
        let worth_it = 2 * idle >= excess;
        if worth_it && idle != 0 {
            self.segment.doorbell().set_selective(true);
            self.quiet_peers().for_each(|peer| peer.door.inward.stop_polling());
            // A packet that was sent before may not be announced: it is found by the
            // look that follows.
            self.heavy.fence();
        }
        let (polled, peers) = (&mut self.polled, &mut self.peers);
        polled.tasks.retain(|&task| {
            let Some(peer) = peers.get_mut(task).filter(|peer| peer.quiet) else { return true };
            if !worth_it {
                peer.quiet = false;
            } else if peer.door.inward.ready() {
                peer.quiet = false;
                peer.door.inward.poll_again();
            }
            polled.quiet += usize::from(peer.quiet);
            !peer.quiet
        });
        polled.set_turn(0);
        polled.streak = 0;
        polled.update();
        self.hear_all();
    }

    /// Those of the peers in the list that were found quiet.
    fn quiet_peers(&self) -> impl Iterator<Item = &Peer> {
        self.polled.tasks.iter().filter_map(|&task| self.peer(task)).filter(|peer| peer.quiet)
    }

    #[cfg(test)]
    pub(super) fn set_bounds(&mut self, bounds: Bounds) {
        self.polled.bounds = bounds;
        self.polled.update();
    }
}
