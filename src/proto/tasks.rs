//! Sets and counts of tasks, in which nothing costs more than what it concerns.

use crate::wire::frame::Task;

/// Not in the list.
const ABSENT: u32 = u32::MAX;

/// A set of tasks: adding and removing take constant time, and going through them takes as long as
/// there are members.
#[derive(Clone, Debug, Default)]
pub struct TaskSet {
    members: Vec<Task>,
    /// The position of each task among the members. Grows to the highest task that
    /// ever was a member.
    places: Vec<u32>,
}

impl TaskSet {
    /// Adds a task. Returns whether it was not a member before.
    #[inline]
    pub fn insert(&mut self, task: Task) -> bool {
        if self.contains(task) {
            return false;
        }
        if self.places.len() <= task as usize {
            self.places.resize(task as usize + 1, ABSENT);
        }
        self.places[task as usize] = self.members.len() as u32;
        self.members.push(task);
        true
    }

    /// Removes a task. Returns whether it was a member. The last member takes its place.
    #[inline]
    pub fn remove(&mut self, task: Task) -> bool {
        let Some(place) = self.places.get_mut(task as usize).filter(|place| **place != ABSENT) else {
            return false;
        };
        let at = std::mem::replace(place, ABSENT);
        self.members.swap_remove(at as usize);
        if let Some(&moved) = self.members.get(at as usize) {
            self.places[moved as usize] = at;
        }
        true
    }

    /// Whether the task is a member.
    #[inline]
    pub fn contains(&self, task: Task) -> bool {
        self.places.get(task as usize).is_some_and(|&place| place != ABSENT)
    }

    /// The members, in no order.
    #[inline]
    pub fn members(&self) -> &[Task] {
        &self.members
    }

    /// Whether there are no members.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

/// A number for each task, and a list of the tasks whose number is not 0.
#[derive(Clone, Debug, Default)]
pub struct TaskCounts {
    counts: Vec<u32>,
    /// All tasks whose number is not 0, and some for which it was: a task leaves the list only in
    /// [`Self::prune`], since its number will most likely rise again.
    listed: TaskSet,
}

impl TaskCounts {
    /// One more for this task.
    #[inline]
    pub fn add(&mut self, task: Task) {
        match self.counts.get_mut(task as usize) {
            Some(count) if *count != 0 => *count += 1,
            _ => self.first(task),
        }
    }

    #[inline(never)]
    fn first(&mut self, task: Task) {
        if self.counts.len() <= task as usize {
            self.counts.resize(task as usize + 1, 0);
        }
        self.counts[task as usize] = 1;
        self.listed.insert(task);
    }

    /// One less.
    #[inline]
    pub fn subtract(&mut self, task: Task) {
        self.counts[task as usize] -= 1;
    }

    /// The task's number.
    #[inline]
    pub fn of(&self, task: Task) -> u32 {
        self.counts.get(task as usize).copied().unwrap_or_default()
    }

    /// The tasks whose number is not 0, in no order.
    pub fn tasks(&self) -> impl Iterator<Item = Task> + '_ {
        self.listed.members().iter().copied().filter(|&task| self.of(task) != 0)
    }

    /// Takes tasks whose number is 0 from the list: to be called now and then.
    pub fn prune(&mut self) {
        let mut at = 0;
        while let Some(&task) = self.listed.members().get(at) {
            if self.of(task) == 0 {
                self.listed.remove(task);
            } else {
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn a_set_has_what_was_added_and_not_removed() {
        for seed in 1..=20 {
            let mut rng = Rng::stream(seed, 7);
            let (mut set, mut model) = (TaskSet::default(), BTreeSet::new());
            for _ in 0..500 {
                let task = rng.below(40) as Task;
                if rng.chance(0.5) {
                    assert_eq!(set.insert(task), model.insert(task), "seed {seed}");
                } else {
                    assert_eq!(set.remove(task), model.remove(&task), "seed {seed}");
                }
                assert_eq!(set.contains(task), model.contains(&task), "seed {seed}");
                assert_eq!(set.members().iter().copied().collect::<BTreeSet<_>>(), model, "seed {seed}");
                assert_eq!((set.members().len(), set.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }

    #[test]
    fn counts_are_those_of_a_map() {
        for seed in 1..=20 {
            let mut rng = Rng::stream(seed, 8);
            let (mut counts, mut model) = (TaskCounts::default(), BTreeMap::<Task, u32>::new());
            for _ in 0..500 {
                let task = rng.below(40) as Task;
                if rng.chance(0.5) || counts.of(task) == 0 {
                    counts.add(task);
                    *model.entry(task).or_default() += 1;
                } else {
                    counts.subtract(task);
                    *model.entry(task).or_default() -= 1;
                }
                model.retain(|_, count| *count != 0);
                let seen: BTreeMap<_, _> = counts.tasks().map(|task| (task, counts.of(task))).collect();
                assert_eq!(seen, model, "seed {seed}");
            }
        }
    }
}
