//! What this task knows of each other task: whether messages go to it, and what it makes
//! this task keep.
//!
//! One small entry for each task of the job. The paths of a packet read one entry, or one number
//! that shows that all peers are up; nothing there goes through the table.

use crate::proto::tasks::TaskSet;
use crate::transport::Task;
use bytemuck::Zeroable;
use bytemuck::allocation::zeroed_slice_box;

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

/// What is known of all peers.
pub struct Peers {
    /// A page of this table takes no memory until an entry in it is written.
    table: Box<[Peer]>,
    /// How many peers are not [`Standing::Up`] or are quarantined.
    unusual: u32,
    rejoining: TaskSet,
    /// The peers that have ended LAPI while something was under way to them, until
    /// that is reported.
    leaving: TaskSet,
    /// Of a task that has itself rejoined a job that runs: the highest number of collective
    /// operations that others had entered when they let it rejoin.
    pub joined_at: Option<u32>,
}

impl Peers {
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
        }
    }

    /// This task has rejoined a job that runs: it has yet to connect with all others.
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
    pub fn leaves(&mut self, peer: Task, now: u32) -> u32 {
        let entry = &mut self.table[peer as usize];
        if entry.left == 0 {
            entry.left = now;
            self.leaving.insert(peer);
        }
        entry.left
    }

    /// The peer has left, and something was dropped, which is to be reported to the program.
    pub fn note_dropped(&mut self, peer: Task, now: u32) {
        if !self.is_down(peer) {
            self.leaves(peer, now);
            self.table[peer as usize].dropped = true;
        }
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
    /// it. Returns how many messages of the peer are kept now, and their bytes.
    pub fn keep(&mut self, peer: Task, bytes: usize) -> (u32, usize) {
        let kept = &mut self.table[peer as usize].kept;
        *kept = (kept.0 + 1, kept.1 + bytes);
        *kept
    }

    /// Such a message is kept no more.
    pub fn unkeep(&mut self, peer: Task, bytes: usize) {
        let kept = &mut self.table[peer as usize].kept;
        *kept = (kept.0.saturating_sub(1), kept.1.saturating_sub(bytes));
    }

    /// How many messages of the peer are kept, and their bytes.
    pub fn kept(&self, peer: Task) -> (u32, usize) {
        self.table[peer as usize].kept
    }

    /// Whether a peer that does not look for packets is to be woken now. One that makes no progress
    /// is woken ever more seldom: `pause` ticks after the last time, then twice as long, and so on.
    pub fn kick_is_due(&mut self, peer: Task, progress: u64, now: u64, pause: u64) -> bool {
        let kick = &mut self.table[peer as usize].kick;
        if kick.progress != progress {
            *kick = Kick { at: now, progress, vain: 0 };
            return true;
        }
        if now.wrapping_sub(kick.at) < pause << kick.vain {
            return false;
        }
        *kick = Kick { at: now, progress, vain: (kick.vain + 1).min(LONGEST_PAUSE) };
        true
    }

    fn set(&mut self, peer: Task, standing: Standing) {
        self.forget_leaving(peer);
        self.change(peer, |peer| peer.standing = standing);
        if standing == Standing::Rejoining {
            self.rejoining.insert(peer);
        } else {
            self.rejoining.remove(peer);
        }
    }

    fn change(&mut self, peer: Task, change: impl FnOnce(&mut Peer)) {
        let entry = &mut self.table[peer as usize];
        let unusual = |peer: &Peer| u32::from(peer.standing != Standing::Up || peer.quarantined);
        self.unusual -= unusual(entry);
        change(entry);
        self.unusual += unusual(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use std::collections::{BTreeMap, BTreeSet};

    /// A model of the peers: sets, as simple as can be.
    #[derive(Default)]
    struct Model {
        lost: BTreeSet<Task>,
        purged: BTreeSet<Task>,
        rejoining: BTreeSet<Task>,
        quarantined: BTreeSet<Task>,
        incarnations: BTreeMap<Task, u32>,
    }

    #[test]
    fn an_entry_of_zeros_is_the_default() {
        assert_eq!(format!("{:?}", Peer::zeroed()), format!("{:?}", Peer::default()));
    }

    #[test]
    fn every_history_gives_the_state_of_the_model() {
        for seed in 1..=30 {
            let mut rng = Rng::stream(seed, 11);
            let (mut peers, mut model) = (Peers::new(6, false), Model::default());
            for step in 0..400 {
                let task = rng.below(6) as Task;
                let down = model.lost.contains(&task) || model.purged.contains(&task);
                match rng.below(5) {
                    0 => {
                        assert_eq!(peers.lose(task), !down, "seed {seed}, step {step}: reported once");
                        if !down {
                            model.rejoining.remove(&task);
                            model.lost.insert(task);
                        }
                    }
                    1 => {
                        let new = model.purged.insert(task);
                        assert_eq!(peers.purge(task), new, "seed {seed}, step {step}");
                        *model.incarnations.entry(task).or_default() += u32::from(new);
                        model.lost.remove(&task);
                        model.rejoining.remove(&task);
                    }
                    2 if model.purged.remove(&task) => {
                        peers.resume(task);
                        model.quarantined.remove(&task);
                        model.rejoining.insert(task);
                    }
                    3 => {
                        peers.rejoined(task);
                        model.rejoining.remove(&task);
                    }
                    _ => {
                        peers.quarantine(task);
                        model.quarantined.insert(task);
                    }
                }
                for task in 0..6 {
                    let expected = match () {
                        () if model.purged.contains(&task) => Standing::Purged,
                        () if model.lost.contains(&task) => Standing::Lost,
                        () if model.rejoining.contains(&task) => Standing::Rejoining,
                        () => Standing::Up,
                    };
                    assert_eq!(peers.standing(task), expected, "seed {seed}, step {step}, task {task}");
                    assert_eq!(peers.is_quarantined(task), model.quarantined.contains(&task), "seed {seed}");
                    let incarnation = model.incarnations.get(&task).copied().unwrap_or_default();
                    assert_eq!(peers.incarnation(task), incarnation, "seed {seed}");
                }
                assert_eq!(peers.rejoining().iter().copied().collect::<BTreeSet<_>>(), model.rejoining);
                assert_eq!(peers.lost().collect::<BTreeSet<_>>(), model.lost);
            }
        }
    }

    #[test]
    fn a_new_process_connects_again_until_its_program_purges_the_peer() {
        let mut peers = Peers::new(3, true);
        assert!(peers.connects_again(1) && peers.connects_again(2));
        peers.purge(1);
        peers.resume(1);
        assert!(!peers.connects_again(1) && peers.connects_again(2));
        assert!(!Peers::new(3, false).connects_again(1));
        let mut late = Peers::new(3, false);
        late.purge(1);
        late.await_all(0);
        assert!(!late.connects_again(1) && late.connects_again(2), "it has learnt late that it is one");
    }

    #[test]
    fn a_peer_without_progress_is_woken_ever_more_seldom() {
        let mut peers = Peers::new(2, false);
        let kicks = |peers: &mut Peers, progress, from: u64| {
            (from..from + 1000).filter(|&now| peers.kick_is_due(1, progress, now, 10)).count()
        };
        assert_eq!(kicks(&mut peers, 7, 0), 7, "after 0, 10, 30, 70, 150, 310 and 630 ticks");
        assert!(kicks(&mut peers, 7, 1000) <= 1);
        assert!(kicks(&mut peers, 8, 2000) >= 6, "it has made progress");
    }

    #[test]
    fn an_entry_is_a_few_words() {
        assert!(size_of::<Peer>() <= 64);
    }
}
