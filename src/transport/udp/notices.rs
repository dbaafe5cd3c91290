//! Notices on their way: each is sent again until its receipt has arrived. A host with many tasks
//! may die at once, and each of the others must know of each death: nothing here takes longer with
//! the number of notices, but for those that end LAPI.

use super::Nanos;
use crate::transport::Task;
use crate::wire::network::Notice;
use std::collections::{BTreeMap, BTreeSet};

/// Notices without a receipt.
#[derive(Default)]
pub(super) struct Notices {
    /// When each is sent next, and how often it was sent.
    all: BTreeMap<(Task, Notice), (Nanos, u32)>,
    /// When each is sent next, in the order of time.
    due: BTreeSet<(Nanos, Task, Notice)>,
}

impl Notices {
    /// Sends a notice as soon as the task is served, and again until there is a receipt.
    pub(super) fn send(&mut self, to: Task, notice: Notice) {
        if !self.all.contains_key(&(to, notice)) {
            self.set(to, notice, 0, 0);
        }
    }

    /// When one is to be sent.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.due.first().map(|(next, ..)| *next)
    }

    /// One that is to be sent by now, and how often it was sent. [`Self::again`] keeps it.
    pub(super) fn take_due(&mut self, now: Nanos) -> Option<(Task, Notice, u32)> {
        let (_, to, notice) = self.due.first().copied().filter(|(next, ..)| *next <= now)?;
        let attempts = self.all.get(&(to, notice)).map_or(0, |(_, attempts)| *attempts);
        self.forget(to, notice);
        Some((to, notice, attempts))
    }

    /// The notice was sent this number of times, and is to be sent again then.
    pub(super) fn again(&mut self, to: Task, notice: Notice, attempts: u32, next: Nanos) {
        self.set(to, notice, attempts, next);
    }

    /// The notice is not to be sent any more.
    pub(super) fn forget(&mut self, to: Task, notice: Notice) {
        if let Some((next, _)) = self.all.remove(&(to, notice)) {
            self.due.remove(&(next, to, notice));
        }
    }

    /// Keeps those of which this holds.
    pub(super) fn retain(&mut self, keeps: impl Fn(Task, &Notice) -> bool) {
        self.all.retain(|(to, notice), _| keeps(*to, notice));
        self.due.retain(|(_, to, notice)| keeps(*to, notice));
    }

    /// All, each with the task to which it goes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Task, Notice)> {
        self.all.keys().copied()
    }

    fn set(&mut self, to: Task, notice: Notice, attempts: u32, next: Nanos) {
        self.all.insert((to, notice), (next, attempts));
        self.due.insert((next, to, notice));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::network::Content;

    fn died(task: Task) -> Notice {
        Notice { content: Content::Died, task, life: task + 1 }
    }

    #[test]
    fn a_notice_is_due_until_it_has_a_receipt() {
        let mut notices = Notices::default();
        notices.send(1, died(7));
        notices.send(2, died(7));
        notices.send(1, died(7));
        assert_eq!((notices.due(), notices.iter().count()), (Some(0), 2));
        while let Some((to, notice, attempts)) = notices.take_due(5) {
            notices.again(to, notice, attempts + 1, 10 + u64::from(to));
        }
        assert_eq!(notices.due(), Some(11));
        notices.forget(1, died(7));
        assert_eq!((notices.due(), notices.take_due(11)), (Some(12), None));
        assert_eq!(notices.take_due(12), Some((2, died(7), 1)));
        assert_eq!((notices.due(), notices.iter().count()), (None, 0));
        (0..10).for_each(|to| notices.send(to, died(3)));
        notices.retain(|to, _| to == 4);
        assert_eq!(notices.take_due(0), Some((4, died(3), 0)));
        assert_eq!(notices.take_due(0), None);
    }

    /// 64 tasks of a host die at once, in a job of 1,000 hosts: with a search through all for each,
    /// this would take minutes.
    #[test]
    fn many_notices_are_sent_and_confirmed() {
        let mut notices = Notices::default();
        let all = || (0..64).flat_map(|dead| (64..1064).map(move |to| (to, died(dead))));
        all().for_each(|(to, notice)| notices.send(to, notice));
        while let Some((to, notice, attempts)) = notices.take_due(0) {
            notices.again(to, notice, attempts + 1, 20);
        }
        assert_eq!(notices.iter().count(), 64_000);
        all().for_each(|(to, notice)| notices.forget(to, notice));
        assert_eq!(notices.due(), None);
    }
}
