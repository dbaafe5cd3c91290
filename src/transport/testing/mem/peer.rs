//! The state of the peers; parting and rejoining.

use super::MemTransport;
use super::network::Rejoin;
use crate::error::Result;
use crate::transport::rails::OF_RAIL;
use crate::transport::{HAS_PURGED, PeerStanding, PeerState, Peers, Task, View, Withdrawal};
use std::sync::atomic::Ordering;

impl Peers for MemTransport {
    fn standing(&self, peer: Task) -> PeerStanding {
        let has_parted = self.was_purged_by(peer);
        let state = match self.absent.get(&peer) {
            Some(true) => PeerState::Up,
            Some(false) => PeerState::Dead,
            None if !self.knows(peer) || has_parted => PeerState::Dead,
            None => self.network.end(peer).state(),
        };
        PeerStanding { state, absence: has_parted.then(|| HAS_PURGED.to_owned()), has_parted }
    }

    fn is_open(&self, peer: Task) -> bool {
        self.standing(peer).state == PeerState::Up
    }

    fn view(&self, peer: Task) -> View {
        let released = |at: Task, from: Task| {
            self.network.end(at).inbox.lock().lanes.get(&from).map_or(0, |lane| lane.released)
        };
        let progress = released(self.task, peer).wrapping_add(released(peer, self.task));
        let polls = self.network.end(peer).polling.load(Ordering::Relaxed);
        View { progress, polls, connection: None }
    }

    fn withdraw(&mut self, task: Task, what: Withdrawal) {
        match what {
            Withdrawal::Key(key) => self.withdraw_key(task, key),
            Withdrawal::Traffic => self.recall(task),
            Withdrawal::Connection => self.part(task),
        }
    }

    fn rejoin(&mut self, peer: Task, epoch: u64) -> Result<()> {
        self.part(peer);
        self.await_rejoin(peer, epoch);
        Ok(())
    }
}

impl MemTransport {
    /// Cuts the connection with the peer, which may not rejoin.
    pub(super) fn part(&mut self, peer: Task) {
        self.recall(peer);
        self.held.remove(&peer);
        self.unsent.retain(|(_, to, _)| *to != peer);
        self.absent.insert(peer, false);
        self.network.rejoins.lock().retain(|(from, to), _| (*from, *to) != (self.task, peer));
        self.network.empty(peer, self.task);
    }

    /// The next peer that has rejoined, with its epoch.
    pub(super) fn rejoined(&mut self) -> Option<(Task, u64)> {
        let mut rejoins = self.network.rejoins.lock();
        for (&peer, _) in self.absent.iter().filter(|(_, awaited)| **awaited) {
            if let Some(&Rejoin { epoch, life, both: true }) = rejoins.get(&(peer, self.task)) {
                rejoins.remove(&(peer, self.task));
                drop(rejoins);
                self.absent.remove(&peer);
                self.lives.insert(peer, life);
                self.network.note_room(peer);
                return Some((peer, epoch));
            }
        }
        None
    }

    /// Whether the peer is still the process that this task was connected with.
    pub(super) fn knows(&self, peer: Task) -> bool {
        self.network.end(peer).life.load(Ordering::Acquire)
            == self.lives.get(&peer).copied().unwrap_or_default()
    }

    /// Whether the process that this task is connected with has parted from this task, and
    /// lets it rejoin.
    fn was_purged_by(&self, peer: Task) -> bool {
        let rejoins = self.network.rejoins.lock();
        let rejoin = rejoins.get(&(peer, self.task)).filter(|_| !self.absent.contains_key(&peer));
        // A rail parts from a peer for itself, and is joined again.
        rejoin.is_some_and(|rejoin| !rejoin.both && rejoin.epoch & OF_RAIL == 0) && self.knows(peer)
    }

    /// This task lets `peer` rejoin. The second of the two calls connects them: nothing is
    /// under way then.
    pub(super) fn await_rejoin(&mut self, peer: Task, epoch: u64) {
        self.absent.insert(peer, true);
        let mut rejoins = self.network.rejoins.lock();
        let both = rejoins.get_mut(&(peer, self.task)).is_some_and(|other| {
            other.both = true;
            true
        });
        let life = self.network.end(self.task).life.load(Ordering::Acquire);
        rejoins.insert((self.task, peer), Rejoin { epoch, life, both });
        if both {
            self.network.empty(peer, self.task);
            self.network.empty(self.task, peer);
            self.network.open.lock().extend([(self.task, peer), (peer, self.task)]);
        }
    }
}
