//! What this task knows of each other task: whether messages go to it, when it is looked after
//! and woken, and what it makes this task keep. No other part of the engine knows who is gone.
//!
//! One small entry for each task of the job. The paths of a packet read one entry, or one number
//! that shows that all peers are up; nothing there goes through the table.

use crate::base::clock::{elapsed, has_come, moment, now, ticks};
use crate::proto::liveness::{Liveness, Verdict};
use crate::proto::tasks::TaskSet;
use crate::transport::{PeerState, Task};
use bytemuck::Zeroable;
use bytemuck::allocation::zeroed_slice_box;
use std::time::{Duration, Instant};

/// Whether messages go to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Standing {
    /// Messages go to it.
    #[default]
    Up = 0,
    /// The peer has left or was given up; this has been reported to the program.
    Lost,
    /// The program has given the peer up (LAPI_Purge_totask).
    Purged,
    /// The program lets the peer rejoin (LAPI_Resume_totask), and the peer has not connected yet:
    /// messages wait.
    Rejoining,
}

/// What is known of one peer.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    standing: Standing,
    /// The peer was given up though it may live: what it still sends is dropped.
    quarantined: bool,
    /// Nothing is sent to it, because it is about to part: messages wait.
    held: bool,
    /// The peer has parted itself, for a checkpoint, and was let rejoin.
    away: bool,
    /// The program has purged it once or more often.
    purged: bool,
    /// How often the connection with the peer was given up, by the program's purge or without it.
    incarnation: u32,
    /// Messages of the peer that a header handler has refused, and their bytes here.
    kept: (u32, usize),
    /// Since when the peer is known to have ended LAPI while something was under way to it, as a
    /// moment; 0: not.
    left: u32,
    /// Something that was under way to it then was dropped.
    dropped: bool,
    /// The last time that the peer was woken because it did not look for packets.
    kick: Kick,
}

// SAFETY: `Peer::default()` is all zeros, and so are the defaults of its fields, as a
// test compares.
unsafe impl Zeroable for Peer {}

/// When a peer was last woken, and with what effect.
#[derive(Clone, Copy, Debug, Default)]
struct Kick {
    /// In ticks.
    at: u64,
    /// The peer's progress count then.
    progress: u64,
    /// How often the peer was woken without making progress.
    vain: u8,
}

/// The longest pause between two kicks, as a power of two of the shortest.
const LONGEST_PAUSE: u8 = 8;

/// A thread that never sleeps looks after its peers about this often, in ticks: some tenths of a
/// second.
const BETWEEN_LOOKS: u64 = 300_000_000;
/// Ticks between two kicks, about a millisecond: a peer that was woken is on its way.
const BETWEEN_KICKS: u64 = 2_000_000;

/// What is known of all peers.
pub struct Membership {
    /// A page of this table takes no memory until an entry in it is written.
    table: Box<[Peer]>,
    /// How many peers are not [`Standing::Up`], or are quarantined or held.
    unusual: u32,
    rejoining: TaskSet,
    /// The peers that have ended LAPI while something was under way to them, until
    /// that is reported.
    leaving: TaskSet,
    /// Of a task that has itself rejoined a job that runs: the highest number of collective
    /// operations that others had entered when they let it rejoin.
    joined_at: Option<u32>,
    /// Which peers have been silent, and for how long, since the context was opened.
    liveness: Liveness,
    opened: Instant,
    /// When peers are looked after next, in ticks; 0: now.
    next_look: u64,
    /// When peers were last kicked, in ticks.
    last_kick: u64,
}

impl Membership {
    /// Of a job of `tasks` tasks, all of them up. This task `replaces` another process, or has
    /// joined the job at its start.
    pub fn new(tasks: u32, replaces: bool) -> Self {
        let table = zeroed_slice_box(tasks as usize);
        Self {
            table,
            unusual: 0,
            rejoining: TaskSet::default(),
            leaving: TaskSet::default(),
            joined_at: replaces.then_some(0),
            liveness: Liveness::default(),
            opened: now(),
            next_look: 0,
            last_kick: 0,
        }
    }

    /// This task has rejoined a job that runs: it has yet to connect with all others.
    #[cfg(test)]
    pub fn await_all(&mut self, me: Task) {
        for peer in (0..self.table.len() as Task).filter(|&peer| peer != me) {
            self.set(peer, Standing::Rejoining);
        }
        self.joined_at = Some(0);
    }

    /// Whether messages go to the peer.
    #[inline]
    pub fn standing(&self, peer: Task) -> Standing {
        if self.unusual == 0 { Standing::Up } else { self.table[peer as usize].standing }
    }

    /// Whether messages go to all peers, and what any of them sends is taken.
    #[inline]
    pub fn are_all_up(&self) -> bool {
        self.unusual == 0
    }

    /// Whether the peer is lost or purged.
    #[inline]
    pub fn is_down(&self, peer: Task) -> bool {
        matches!(self.standing(peer), Standing::Lost | Standing::Purged)
    }

    /// Whether what the peer sends is dropped.
    #[inline]
    pub fn is_quarantined(&self, peer: Task) -> bool {
        self.unusual != 0 && self.table[peer as usize].quarantined
    }

    /// Nothing is sent to the peer any more for now, or it is again.
    pub fn hold(&mut self, peer: Task, held: bool) {
        self.change(peer, |peer| peer.held = held);
    }

    /// Whether what is sent to the peer waits because it is about to part.
    #[inline]
    pub fn is_held(&self, peer: Task) -> bool {
        self.unusual != 0 && self.table[peer as usize].held
    }

    /// The peer, which may rejoin, has left by itself and will come back.
    pub fn note_away(&mut self, peer: Task) {
        self.table[peer as usize].away = true;
    }

    /// Whether the peer is being connected: it may rejoin, and is not away.
    pub fn is_joining(&self, peer: Task) -> bool {
        self.standing(peer) == Standing::Rejoining && !self.table[peer as usize].away
    }

    /// Whether a peer is about to part.
    pub fn is_any_held(&self) -> bool {
        self.unusual != 0 && self.table.iter().any(|peer| peer.held)
    }

    /// How often the peer was purged: what belongs to an earlier incarnation is not sent
    /// to a later one.
    #[inline]
    pub fn incarnation(&self, peer: Task) -> u32 {
        self.table[peer as usize].incarnation
    }

    /// The peers that are lost.
    pub fn lost(&self) -> impl Iterator<Item = Task> + '_ {
        (0..).zip(&self.table).filter(|(_, peer)| peer.standing == Standing::Lost).map(|(task, _)| task)
    }

    /// The peers that may rejoin and have not connected yet, in no order.
    pub fn rejoining(&self) -> &[Task] {
        self.rejoining.members()
    }

    /// The peer has left, or is given up. Returns whether to report that to the program: once, and
    /// not for a peer that it has purged itself.
    pub fn lose(&mut self, peer: Task) -> bool {
        let reported = self.is_down(peer);
        if !reported {
            self.set(peer, Standing::Lost);
        }
        !reported
    }

    /// The peer has ended LAPI while something was under way to it. Returns since when
    /// that is known.
    pub fn leaves(&mut self, peer: Task) -> u32 {
        let entry = &mut self.table[peer as usize];
        if entry.left == 0 {
            entry.left = moment();
            self.leaving.insert(peer);
        }
        entry.left
    }

    /// The peer has left so, and something was dropped. The program gets a report when all
    /// operations with the peer have ended: at once of a death, and of a peer that has ended LAPI
    /// unless this task does so, too.
    #[cold]
    pub fn note_gone(&mut self, peer: Task, state: PeerState) {
        if !self.is_down(peer) {
            self.leaves(peer);
            self.table[peer as usize].dropped = true;
        }
        if state != PeerState::Closed {
            self.next_look = 0;
        }
    }

    /// Whether peers are to be looked after at once: a death is to be reported.
    #[inline]
    pub fn look_is_wanted(&self) -> bool {
        self.next_look == 0
    }

    /// Whether a thread that never sleeps is to look after its peers.
    pub fn look_is_due(&self) -> bool {
        has_come(self.next_look, BETWEEN_LOOKS, ticks())
    }

    /// Peers are looked after now.
    pub fn begin_look(&mut self) {
        self.next_look = ticks() + BETWEEN_LOOKS;
    }

    /// A number that changes with each look.
    #[cfg(test)]
    pub fn looks(&self) -> u64 {
        self.next_look
    }

    /// The peers among these that have been silent for too long, and what to do about them. They
    /// come in ascending order, each with its progress count.
    pub fn silent(
        &mut self,
        timeout: Duration,
        peers: impl Iterator<Item = (Task, u64)>,
    ) -> Vec<(Task, Verdict)> {
        self.liveness.look(elapsed(self.opened), timeout, peers)
    }

    /// Whether something was dropped that was under way to the peer when it ended LAPI.
    pub fn has_dropped(&self, peer: Task) -> bool {
        self.table[peer as usize].dropped
    }

    /// The peers that have ended LAPI, as [`Self::leaves`] has noted.
    pub fn leaving(&self) -> &[Task] {
        self.leaving.members()
    }

    /// The peer owes nothing after all, or the program got its report.
    pub fn forget_leaving(&mut self, peer: Task) {
        if self.leaving.remove(peer) {
            let entry = &mut self.table[peer as usize];
            (entry.left, entry.dropped) = (0, false);
        }
    }

    /// What the peer sends from now on is dropped.
    pub fn quarantine(&mut self, peer: Task) {
        self.change(peer, |peer| peer.quarantined = true);
    }

    /// The program gives the peer up. Returns whether it had not done so before.
    pub fn purge(&mut self, peer: Task) -> bool {
        if self.standing(peer) == Standing::Purged {
            return false;
        }
        self.set(peer, Standing::Purged);
        self.table[peer as usize].purged = true;
        self.end_incarnation(peer);
        true
    }

    /// Whether the library connects with a peer again that has parted from this task: where this
    /// task has taken the place of another process, until the program purges the peer. Otherwise
    /// the program purges and resumes it.
    pub fn connects_again(&self, peer: Task) -> bool {
        self.joined_at.is_some() && !self.table[peer as usize].purged
    }

    /// The highest number of collective operations that others had entered when they let this task
    /// rejoin; `None`: it has not rejoined a job that runs.
    pub fn joined_at(&self) -> Option<u32> {
        self.joined_at
    }

    /// This task has rejoined a job that runs, in which others have entered this many operations.
    pub fn join_at(&mut self, position: u32) {
        self.joined_at = Some(position);
    }

    /// What belongs to the peer until now counts no more.
    pub fn end_incarnation(&mut self, peer: Task) {
        let entry = &mut self.table[peer as usize];
        entry.incarnation = entry.incarnation.wrapping_add(1);
        (entry.kept, entry.kick) = ((0, 0), Kick::default());
    }

    /// The peer, which was purged or is otherwise parted from, may rejoin.
    pub fn resume(&mut self, peer: Task) {
        self.change(peer, |peer| peer.quarantined = false);
        self.set(peer, Standing::Rejoining);
    }

    /// The peer has rejoined. One that was given up meanwhile stays lost.
    pub fn rejoined(&mut self, peer: Task) {
        if self.standing(peer) == Standing::Rejoining {
            self.set(peer, Standing::Up);
        }
    }

    /// Waits for no peer to rejoin any more, and returns those that were waited for.
    pub fn give_up_rejoining(&mut self) -> Vec<Task> {
        let waited = self.rejoining.members().to_vec();
        waited.iter().for_each(|&peer| self.set(peer, Standing::Up));
        waited
    }

    /// A message of this many bytes from the peer is kept because its header handler has refused
    /// it.
    pub fn keep(&mut self, peer: Task, bytes: usize) {
        let kept = &mut self.table[peer as usize].kept;
        *kept = (kept.0 + 1, kept.1 + bytes);
    }

    /// Such a message is kept no more.
    pub fn unkeep(&mut self, peer: Task, bytes: usize) {
        let kept = &mut self.table[peer as usize].kept;
        *kept = (kept.0.saturating_sub(1), kept.1.saturating_sub(bytes));
    }

    /// No message of the peer is kept any more.
    pub fn unkeep_all(&mut self, peer: Task) {
        self.table[peer as usize].kept = (0, 0);
    }

    /// How many messages of the peer are kept, and their bytes.
    pub fn kept(&self, peer: Task) -> (u32, usize) {
        self.table[peer as usize].kept
    }

    /// Whether peers that do not look for packets may be woken now, in ticks.
    pub fn begin_kicks(&mut self, now: u64) -> bool {
        let due = now.wrapping_sub(self.last_kick) >= BETWEEN_KICKS;
        self.last_kick = if due { now } else { self.last_kick };
        due
    }

    /// Whether a peer that does not look for packets is to be woken now. One that makes no progress
    /// is woken ever more seldom: [`BETWEEN_KICKS`] after the last time, then twice as long, and so
    /// on.
    pub fn kick_is_due(&mut self, peer: Task, progress: u64, now: u64) -> bool {
        let kick = &mut self.table[peer as usize].kick;
        if kick.progress != progress {
            *kick = Kick { at: now, progress, vain: 0 };
            return true;
        }
        if now.wrapping_sub(kick.at) < BETWEEN_KICKS << kick.vain {
            return false;
        }
        *kick = Kick { at: now, progress, vain: (kick.vain + 1).min(LONGEST_PAUSE) };
        true
    }

    fn set(&mut self, peer: Task, standing: Standing) {
        self.forget_leaving(peer);
        self.change(peer, |peer| (peer.standing, peer.held, peer.away) = (standing, false, false));
        if standing == Standing::Rejoining {
            self.rejoining.insert(peer);
        } else {
            self.rejoining.remove(peer);
        }
    }

    fn change(&mut self, peer: Task, change: impl FnOnce(&mut Peer)) {
        let entry = &mut self.table[peer as usize];
        let unusual = |peer: &Peer| u32::from(peer.standing != Standing::Up || peer.quarantined || peer.held);
        self.unusual -= unusual(entry);
        change(entry);
        self.unusual += unusual(entry);
    }
}

#[cfg(test)]
#[path = "membership_tests.rs"]
mod tests;
