//! The notices of deaths to other groups that this task looks after. A whole host may die, in a job
//! of many: nothing that is done for one of them looks at all others, but for the death of a task
//! that may have had some.

use crate::transport::Task;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The task that has died, its process (another one may have taken its place, and the group must
/// know nevertheless), and the group.
pub(super) type Key = (Task, u32, u32);

/// A notice to another group.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupNotice {
    /// The task that got it, and whether that has confirmed it.
    pub(super) to: Task,
    pub(super) confirmed: bool,
    pub(super) attempts: u32,
    /// Another task gets it then; when it is confirmed, it is forgotten then.
    pub(super) due: Duration,
}

/// All of them.
#[derive(Default)]
pub(super) struct GroupNotices {
    all: BTreeMap<Key, GroupNotice>,
    /// In the order of time: those that are not confirmed, and those that are.
    order: [BTreeSet<(Duration, Key)>; 2],
}

impl GroupNotices {
    pub(super) fn get(&self, key: Key) -> Option<GroupNotice> {
        self.all.get(&key).copied()
    }

    /// Adds one, or changes it.
    pub(super) fn set(&mut self, key: Key, group_notice: GroupNotice) {
        self.remove(key);
        self.all.insert(key, group_notice);
        self.order[usize::from(group_notice.confirmed)].insert((group_notice.due, key));
    }

    pub(super) fn remove(&mut self, key: Key) {
        if let Some(group_notice) = self.all.remove(&key) {
            self.order[usize::from(group_notice.confirmed)].remove(&(group_notice.due, key));
        }
    }

    /// Those about the death of a task, of whatever process.
    pub(super) fn about(&self, dead: Task) -> impl Iterator<Item = (Key, GroupNotice)> + '_ {
        self.all
            .range((dead, 0, 0)..=(dead, u32::MAX, u32::MAX))
            .map(|(key, group_notice)| (*key, *group_notice))
    }

    /// Those that this task has got.
    pub(super) fn with(&self, task: Task) -> Vec<(Key, GroupNotice)> {
        let all = self.all.iter().map(|(key, group_notice)| (*key, *group_notice));
        all.filter(|(_, group_notice)| group_notice.to == task).collect()
    }

    /// One that is not confirmed, although it is time.
    pub(super) fn late(&self, now: Duration) -> Option<Key> {
        self.order[0].first().filter(|(due, _)| *due <= now).map(|(_, key)| *key)
    }

    /// When the next one is late.
    pub(super) fn due(&self) -> Option<Duration> {
        self.order[0].first().map(|(due, _)| *due)
    }

    /// Forgets those that were confirmed long ago.
    pub(super) fn forget_old(&mut self, now: Duration) {
        while let Some((_, key)) = self.order[1].first().copied().filter(|(due, _)| *due <= now) {
            self.remove(key);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
