//! In which collective operations other tasks take no part, as far as this one has been told.
//!
//! A task that has failed in an operation is absent from there until further notice; the notice says from which operation
//! on it takes part again, so that whoever is still at an earlier one does not wait for it there.

use super::before;
use crate::wire::frame::Task;
use std::collections::HashMap;

/// Why an operation cannot end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The task that is missing.
    pub task: Task,
    /// What the call answers for it.
    pub code: i32,
}

struct Absence {
    from: u32,
    /// The first operation in which it takes part again; `None` until that is known.
    until: Option<u32>,
    failure: Failure,
    /// The task that was missing may come back: it is not known how far the absence goes, but the notice will come.
    pardoned: bool,
}

#[derive(Default)]
struct Record {
    absences: Vec<Absence>,
    /// Where the last absence began of which the end is known: what is told of earlier ones is out of date.
    ended: Option<u32>,
}

/// The absences of all peers.
#[derive(Default)]
pub struct Absences {
    peers: HashMap<Task, Record>,
}

impl Absences {
    /// The peer takes no part from this operation on, until further notice, which is sure to come when `pardoned`.
    pub fn begin(&mut self, peer: Task, from: u32, failure: Failure, pardoned: bool) {
        let Record { absences, ended } = self.peers.entry(peer).or_default();
        if ended.is_some_and(|ended| !before(ended, from)) {
            return;
        }
        absences.push(Absence { from, until: None, failure, pardoned });
    }

    /// Nothing comes from the peer any more, beyond what has arrived.
    pub fn lose(&mut self, peer: Task, from: u32, failure: Failure) {
        let absences = &mut self.peers.entry(peer).or_default().absences;
        match absences.iter_mut().find(|absence| absence.until.is_none() && !absence.pardoned) {
            // It had failed in a later operation, but what it owed to this one never got out.
            Some(open) if before(from, open.from) => open.from = from,
            Some(_) => {}
            None => absences.push(Absence { from, until: None, failure, pardoned: false }),
        }
    }

    /// The peer takes no part from this operation on until that one.
    pub fn end(&mut self, peer: Task, from: u32, until: u32, failure: Failure) {
        let Record { absences, ended } = self.peers.entry(peer).or_default();
        absences.retain(|absence| absence.until.is_some() || absence.from != from);
        absences.push(Absence { from, until: Some(until), failure, pardoned: false });
        if ended.is_none_or(|ended| before(ended, from)) {
            *ended = Some(from);
        }
    }

    /// Why the peer takes no part in an operation, if so, and whether that is so until further notice.
    pub fn of(&self, peer: Task, operation: u32) -> Option<(Failure, bool)> {
        let covers = |absence: &&Absence| {
            !before(operation, absence.from)
                && absence.until.map_or(!absence.pardoned, |until| before(operation, until))
        };
        let absence = self.peers.get(&peer)?.absences.iter().find(covers)?;
        Some((absence.failure, absence.until.is_none()))
    }

    /// `task` may come back, and begins anew; those that were absent for want of it will say when they are not any more.
    pub fn pardon(&mut self, task: Task) {
        self.peers.remove(&task);
        for absence in self.peers.values_mut().flat_map(|record| &mut record.absences) {
            absence.pardoned |= absence.failure.task == task;
        }
    }

    /// Nobody asks about operations before this one any more.
    pub fn forget(&mut self, operation: u32) {
        for record in self.peers.values_mut() {
            record.absences.retain(|absence| absence.until.is_none_or(|until| before(operation, until)));
        }
    }
}
