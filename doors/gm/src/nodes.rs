//! Which tasks of the job are on which node.

use std::sync::atomic::{AtomicBool, Ordering};

/// The nodes of a job, from 1.
#[derive(Debug)]
pub struct Nodes {
    /// The tasks of each node.
    tasks: Vec<Vec<u32>>,
    /// The node of each task.
    nodes: Vec<u16>,
    lost: Box<[AtomicBool]>,
}

impl Nodes {
    /// From the lowest task on the node of each task.
    pub fn by_lowest(lowest: &[u32]) -> Self {
        let mut leads: Vec<u32> = lowest.to_vec();
        leads.sort_unstable();
        leads.dedup();
        let mut tasks = vec![Vec::new(); leads.len()];
        let nodes = (0..).zip(lowest).map(|(task, lead)| {
            let node = leads.partition_point(|other| other < lead);
            tasks[node].push(task);
            node as u16 + 1
        });
        Self { nodes: nodes.collect(), tasks, lost: lowest.iter().map(|_| AtomicBool::new(false)).collect() }
    }

    /// The tasks of a node; none where there is no such node.
    pub fn tasks(&self, node: u32) -> &[u32] {
        let place = (node as usize).checked_sub(1);
        place.and_then(|place| self.tasks.get(place)).map_or(&[], Vec::as_slice)
    }

    /// The node of a task; 0 where there is no such task.
    pub fn node(&self, task: u32) -> u16 {
        self.nodes.get(task as usize).copied().unwrap_or(0)
    }

    /// How many nodes there are.
    pub fn count(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// Notes that a task is gone; `false`: that was known, or there is no such task.
    pub fn lose(&self, task: u32) -> bool {
        self.lost.get(task as usize).is_some_and(|lost| !lost.swap(true, Ordering::AcqRel))
    }

    /// Another process may have taken the place of a task that is gone.
    pub fn find(&self, task: u32) {
        if let Some(lost) = self.lost.get(task as usize) {
            lost.store(false, Ordering::Release);
        }
    }

    /// Whether a task is gone.
    pub fn is_lost(&self, task: u32) -> bool {
        self.lost.get(task as usize).is_none_or(|lost| lost.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_by_their_lowest_tasks() {
        let nodes = Nodes::by_lowest(&[0, 1, 0, 3, 1]);
        assert_eq!(nodes.count(), 3);
        assert_eq!(
            [1, 2, 3, 4, 0].map(|node| nodes.tasks(node).to_vec()),
            [vec![0, 2], vec![1, 4], vec![3], vec![], vec![]]
        );
        assert_eq!([0, 1, 2, 3, 4, 5].map(|task| nodes.node(task)), [1, 2, 1, 3, 2, 0]);
        assert!(nodes.lose(4) && !nodes.lose(4) && !nodes.lose(5));
        assert!(nodes.is_lost(4));
        nodes.find(4);
        assert!(!nodes.is_lost(4) && nodes.is_lost(5) && !nodes.is_lost(3));
    }
}
