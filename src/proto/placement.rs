//! Which tasks share a host, in the form that collective operations need: all tasks in one order,
//! in which the tasks of each host are contiguous.

use crate::wire::frame::Task;

/// The tasks of a job of several hosts, sorted by host and then by task. The *position* of a task
/// is its place in this order.
///
/// It takes one word for each task and each host; all users share it.
#[derive(Debug, PartialEq, Eq)]
pub struct Placement {
    /// The task at each position.
    tasks: Box<[Task]>,
    /// The position of the first task of each host, and the number of tasks.
    starts: Box<[u32]>,
}

impl Placement {
    /// From the host of each task. All tasks of the job must have the same numbers.
    pub fn new(hosts: &[u32]) -> Self {
        let mut tasks: Box<[Task]> = (0..hosts.len() as Task).collect();
        let host = |task: Task| hosts[task as usize];
        // The sort is stable: the tasks of a host stay in ascending order.
        tasks.sort_by_key(|&task| host(task));
        let begins = |at: &u32| *at == 0 || host(tasks[*at as usize]) != host(tasks[*at as usize - 1]);
        let starts = (0..hosts.len() as u32).filter(begins).chain([hosts.len() as u32]).collect();
        Self { tasks, starts }
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// The position of the first task of a host; of the host after the last one: the
    /// number of tasks.
    pub fn start(&self, host: u32) -> u32 {
        self.starts[host as usize]
    }

    /// How many tasks the largest host has.
    pub fn largest(&self) -> u32 {
        self.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// The task at a position.
    pub fn task(&self, position: u32) -> Task {
        self.tasks[position as usize]
    }

    /// The host and the position of a task. It searches all hosts.
    pub fn find(&self, task: Task) -> Option<(u32, u32)> {
        (0..self.hosts()).find_map(|host| Some((host, self.find_on(host, task)?)))
    }

    /// The position of a task of this host.
    pub fn find_on(&self, host: u32, task: Task) -> Option<u32> {
        let (start, end) = (self.start(host), self.start(host + 1));
        let at = self.tasks[start as usize..end as usize].binary_search(&task).ok()?;
        Some(start + at as u32)
    }

    /// The values of all positions, by task.
    pub fn by_task(&self, values: &[u64]) -> Vec<u64> {
        let mut by_task = vec![0; values.len()];
        for (&task, &value) in self.tasks.iter().zip(values) {
            by_task[task as usize] = value;
        }
        by_task
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_sorted_by_host() {
        let placement = Placement::new(&[0, 1, 0, 2, 1, 0]);
        assert_eq!((0..6).map(|at| placement.task(at)).collect::<Vec<_>>(), [0, 2, 5, 1, 4, 3]);
        assert_eq!((0..=3).map(|host| placement.start(host)).collect::<Vec<_>>(), [0, 3, 5, 6]);
        assert_eq!((placement.hosts(), placement.largest()), (3, 3));
        assert_eq!((placement.find(4), placement.find(6)), (Some((1, 4)), None));
        assert_eq!((placement.find_on(0, 5), placement.find_on(0, 4)), (Some(2), None));
        assert_eq!(placement.by_task(&[10, 12, 15, 11, 14, 13]), [10, 11, 12, 13, 14, 15]);
    }
}
