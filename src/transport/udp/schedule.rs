//! When which peer is to be served. To find the next one does not depend on how many
//! peers there are.

use super::reliable::Nanos;
use crate::transport::Task;
use std::collections::BTreeSet;

/// Moments, with the peers that are to be served then: at most one for each. The peer notes its own
/// ([`super::contact::Peer::alarm`]).
#[derive(Default)]
pub(super) struct Alarms(BTreeSet<(Nanos, Task)>);

impl Alarms {
    /// Lets a peer be served at a moment, or not any more. A moment that is later than the one in
    /// `alarm` changes nothing: it is entered when that one has come, so that a timer that is put
    /// off by each message costs nothing.
    #[inline]
    pub(super) fn set(&mut self, alarm: &mut Option<Nanos>, peer: Task, at: Option<Nanos>) {
        if *alarm == at || alarm.zip(at).is_some_and(|(before, at)| before < at) {
            return;
        }
        if let Some(before) = alarm.take() {
            self.0.remove(&(before, peer));
        }
        if let Some(at) = at {
            *alarm = Some(at);
            self.0.insert((at, peer));
        }
    }

    /// The next moment.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Takes out the next peer whose moment has come. Its alarm is none then.
    #[inline]
    pub(super) fn due(&mut self, now: Nanos) -> Option<Task> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, peer)| peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_due_once_at_its_earliest_moment() {
        let (mut alarms, mut one, mut other) = (Alarms::default(), None, None);
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
