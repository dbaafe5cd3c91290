//! The tasks of one host, which share memory. Each has a rank among them: a job on many hosts has
//! more tasks than can share memory, and what is kept for each task that can is kept by rank.

use crate::transport::Task;

/// The tasks of this host, the same list in each of them.
#[derive(Clone, Debug)]
pub struct Group {
    /// Of the whole job.
    pub(super) job: u32,
    /// In ascending order.
    here: Box<[Task]>,
    /// How many tasks the host has that has most: by this number all tasks of the job have rings of
    /// one size, and keep as many addresses free.
    pub(super) largest: u32,
}

impl Group {
    /// The tasks `here`, in ascending order, of a job of `job` tasks whose hosts have up to
    /// `largest` of them.
    pub fn new(job: u32, here: Vec<Task>, largest: u32) -> Self {
        debug_assert!(here.is_sorted_by(|one, next| one < next) && here.len() as u32 <= largest);
        Self { job, here: here.into(), largest }
    }

    /// Those of a job that has all its tasks on this host.
    pub fn all(job: u32) -> Self {
        Self::new(job, (0..job).collect(), job)
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.here.len() as u32
    }

    /// The rank of a task, below [`Self::count`]. `None`: it is on another host.
    pub(super) fn rank(&self, task: Task) -> Option<u32> {
        self.here.binary_search(&task).ok().map(|rank| rank as u32)
    }

    /// The task that has this rank.
    pub(super) fn task(&self, rank: u32) -> Option<Task> {
        self.here.get(rank as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_that_of_the_task_among_those_of_the_host() {
        let group = Group::new(2048, vec![3, 1500, 1501], 4);
        assert_eq!([3, 1500, 1501, 4].map(|task| group.rank(task)), [Some(0), Some(1), Some(2), None]);
        assert_eq!([0, 2, 3].map(|rank| group.task(rank)), [Some(3), Some(1501), None]);
        assert_eq!(Group::all(5).rank(4), Some(4));
    }
}
