//! Which peer is to be served, and when. To find the next one does not depend on how many
//! peers there are.

use super::contact::Peer;
use super::reliable::Nanos;
use crate::transport::Task;
use std::collections::BTreeSet;

/// Which peers are to be served.
#[derive(Default)]
pub(super) struct Schedule {
    /// Moments, with the peers that are to be served then: at most one for each. The peer notes its
    /// own ([`Peer::alarm`]).
    alarms: BTreeSet<(Nanos, Task)>,
    /// Peers that are to look for packets.
    kicks: Vec<Task>,
    /// Peers from which something has arrived that was not acted upon.
    touched: Vec<Task>,
    /// Peers that may be owed an acknowledgement.
    owed: Vec<Task>,
}

impl Schedule {
    /// Serves a peer before anything else is waited for.
    pub(super) fn touch(&mut self, task: Task, peer: &mut Peer) {
        if !std::mem::replace(&mut peer.touched, true) {
            self.touched.push(task);
        }
    }

    /// Takes out such a peer.
    pub(super) fn next_touched(&mut self) -> Option<Task> {
        self.touched.pop()
    }

    /// The peer may be owed an acknowledgement.
    pub(super) fn owe(&mut self, task: Task, peer: &mut Peer) {
        if !std::mem::replace(&mut peer.owed, true) {
            self.owed.push(task);
        }
    }

    /// Takes out such a peer.
    pub(super) fn next_owed(&mut self) -> Option<Task> {
        self.owed.pop()
    }

    /// The peer is to look for packets.
    pub(super) fn kick(&mut self, task: Task) {
        if !self.kicks.contains(&task) {
            self.kicks.push(task);
        }
    }

    /// Takes out those peers.
    pub(super) fn take_kicks(&mut self) -> Vec<Task> {
        std::mem::take(&mut self.kicks)
    }

    /// Whether a peer is to be served at once.
    pub(super) fn is_pressing(&self) -> bool {
        !self.kicks.is_empty() || !self.touched.is_empty()
    }

    /// Lets a peer be served at a moment, or not any more. A moment that is later than the one in
    /// `alarm` changes nothing: it is entered when that one has come, so that a timer that is put
    /// off by each message costs nothing.
    #[inline]
    pub(super) fn set(&mut self, alarm: &mut Option<Nanos>, peer: Task, at: Option<Nanos>) {
        if *alarm == at || alarm.zip(at).is_some_and(|(before, at)| before < at) {
            return;
        }
        if let Some(before) = alarm.take() {
            self.alarms.remove(&(before, peer));
        }
        if let Some(at) = at {
            *alarm = Some(at);
            self.alarms.insert((at, peer));
        }
    }

    /// The next moment.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.alarms.first().map(|(at, _)| *at)
    }

    /// Takes out the next peer whose moment has come. Its alarm is none then.
    #[inline]
    pub(super) fn due(&mut self, now: Nanos) -> Option<Task> {
        if self.next()? > now {
            return None;
        }
        self.alarms.pop_first().map(|(_, peer)| peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_due_once_at_its_earliest_moment() {
        let (mut alarms, mut one, mut other) = (Schedule::default(), None, None);
        alarms.set(&mut one, 1, Some(50));
        alarms.set(&mut one, 1, Some(70));
        alarms.set(&mut other, 2, Some(40));
        alarms.set(&mut one, 1, Some(20));
        assert_eq!((alarms.next(), one, other), (Some(20), Some(20), Some(40)));
        assert_eq!(alarms.due(19), None);
        assert_eq!((alarms.due(45), alarms.due(45), alarms.due(100)), (Some(1), Some(2), None));
        (one, other) = (None, None);
        alarms.set(&mut one, 1, Some(30));
        alarms.set(&mut other, 2, Some(35));
        alarms.set(&mut one, 1, None);
        assert_eq!((alarms.due(100), alarms.next(), one), (Some(2), None, None));
    }
}
