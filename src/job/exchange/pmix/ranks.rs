//! Which rank of PMIx each task is: tasks may have numbered themselves.

use std::collections::HashMap;

/// What is known of the ranks of a job.
pub(super) struct Ranks {
    /// The ranks of tasks.
    of: HashMap<u32, u32>,
    /// The ranks whose task is not known.
    unknown: Vec<u32>,
}

impl Ranks {
    /// Of a job of this number of tasks.
    pub(super) fn new(tasks: u32) -> Self {
        Self { of: HashMap::new(), unknown: (0..tasks).collect() }
    }

    /// The rank of a task, as far as it is known without a question.
    pub(super) fn known(&self, task: u32) -> Option<u32> {
        self.of.get(&task).copied()
    }

    /// The rank of a task. `ask` asks a rank for the number of its task; each is asked until it has
    /// replied, and not again.
    pub(super) fn find(&mut self, task: u32, mut ask: impl FnMut(u32) -> Option<u32>) -> Option<u32> {
        if !self.of.contains_key(&task) {
            let of = &mut self.of;
            self.unknown.retain(|rank| match ask(*rank) {
                Some(number) => {
                    of.insert(number, *rank);
                    false
                }
                None => true,
            });
        }
        self.known(task)
    }
}

#[cfg(test)]
mod tests {
    use super::Ranks;

    /// All tasks are found, in any order, with one question to each rank.
    #[test]
    fn each_rank_is_asked_once() {
        const TASKS: u32 = 1000;
        let mut ranks = Ranks::new(TASKS);
        let mut asked = 0;
        for task in (0..TASKS).rev() {
            let ask = |rank| {
                asked += 1;
                Some(TASKS - 1 - rank)
            };
            assert_eq!(ranks.find(task, ask), Some(TASKS - 1 - task));
        }
        assert_eq!(asked, TASKS);
    }

    #[test]
    fn who_has_not_replied_is_asked_again() {
        let mut ranks = Ranks::new(3);
        assert_eq!(ranks.find(2, |rank| (rank != 1).then_some(rank + 5)), None);
        let mut asked = Vec::new();
        let found = ranks.find(2, |rank| {
            asked.push(rank);
            Some(2)
        });
        assert_eq!((found, asked), (Some(1), vec![1]));
        assert_eq!((ranks.known(5), ranks.known(7), ranks.known(9)), (Some(0), Some(2), None));
    }
}
