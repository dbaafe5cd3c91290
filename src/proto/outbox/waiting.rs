//! What waits in the outbox: for the engine's decisions, and for reports.

use super::Outbox;
use crate::proto::lane::Lane;
use crate::proto::send::Traffic;
use crate::wire::frame::Task;

impl Outbox {
    /// Whether something waits for room, or for the link to report it.
    #[inline]
    pub fn waiting(&self) -> bool {
        debug_assert_eq!(self.waiting, self.busy.members().len() + self.lent.len());
        self.waiting != 0
    }

    /// Whether the link still reads memory of a message to `peer`.
    pub fn lends(&self, peer: Task) -> bool {
        self.lent.peers().any(|lent| lent == peer)
    }

    /// How many packets are parked for `peer`.
    pub fn parked(&self, peer: Task) -> usize {
        self.lanes[peer as usize].as_deref().map_or(0, |lane| lane.parked.len())
    }

    /// How many bytes of this task's memory are taken by what waits for `peer`. The program's own
    /// memory does not count.
    pub fn bytes(&self, peer: Task) -> usize {
        self.lanes[peer as usize].as_deref().map_or(0, |lane| lane.taken.bytes)
    }

    /// How many bytes of this task's memory are taken by what waits for all peers together.
    pub fn bytes_in_all(&self) -> usize {
        self.taken.bytes
    }

    /// How many bytes are taken by what header handlers have sent to other tasks than `peer`.
    pub fn forwarded_beside(&self, peer: Task) -> usize {
        self.taken.forwarded - self.lanes[peer as usize].as_deref().map_or(0, |lane| lane.taken.forwarded)
    }

    /// A number that changes whenever something goes out that had to wait.
    pub fn pumped(&self) -> u64 {
        self.pumped
    }

    /// How many long messages to `peer` are not out yet.
    pub fn streams(&self, peer: Task) -> usize {
        self.lanes[peer as usize].as_deref().map_or(0, |lane| lane.streams.len())
    }

    /// Whether `peer` has left, as far as was noticed.
    pub fn is_gone(&self, peer: Task) -> bool {
        self.lanes[peer as usize].as_deref().is_some_and(|lane| lane.gone)
    }

    /// Whether something waits for room at `peer`, or for the link to report it.
    pub fn waits(&self, peer: Task) -> bool {
        self.lanes[peer as usize].as_deref().is_some_and(|lane| lane.busy) || self.lends(peer)
    }

    /// The peers for which something waits; a peer may be named several times.
    pub fn waiting_for(&self) -> impl Iterator<Item = Task> + '_ {
        self.busy.members().iter().copied().chain(self.lent.peers())
    }

    /// Whether something waits for room at `peer`, or for its confirmation.
    pub fn owes(&self, peer: Task) -> bool {
        let waits = |lane: &Lane| lane.busy || lane.acknowledged < lane.asked;
        self.lanes[peer as usize].as_deref().is_some_and(waits) || self.lends(peer)
    }

    /// What is on its way to each peer that was ever sent something.
    pub fn traffic(&self) -> impl Iterator<Item = Traffic> + '_ {
        (0..).zip(&*self.lanes).filter_map(|(peer, lane)| Some(lane.as_deref()?.traffic(peer)))
    }

    /// The peers to which something waits for room that raises this counter when it is out.
    pub fn raising(&self, counter: usize) -> impl Iterator<Item = Task> + '_ {
        let raises =
            move |peer: &Task| self.lanes[*peer as usize].as_deref().is_some_and(|lane| lane.raises(counter));
        self.busy.members().iter().copied().filter(raises).chain(self.lent.raising(counter))
    }

    /// Notes that what waits for room did so at this moment.
    pub fn mark(&mut self, moment: u32) {
        for &peer in self.busy.members() {
            if let Some(lane) = self.lanes[peer as usize].as_deref_mut().filter(|lane| lane.seen == 0) {
                lane.seen = moment;
            }
        }
    }
}
