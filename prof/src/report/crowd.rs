//! Hosts with more tasks than processors, where each task also waits for a processor.

use super::summary::Task;
use std::collections::{BTreeMap, BTreeSet};

/// More processors than any machine has.
const MOST: u32 = 1 << 16;

/// Such a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// The host's name.
    pub host: String,
    tasks: usize,
    processors: usize,
    /// All tasks of the job are there.
    alone: bool,
}

impl Crowd {
    /// As a finding.
    pub fn sentence(&self) -> String {
        let place = if self.alone { String::new() } else { format!(" on host {}", self.host) };
        let (tasks, processors) = (self.tasks, self.processors);
        let plural = if processors == 1 { "" } else { "s" };
        format!(
            "{tasks} tasks on {processors} processor{plural}{place}: their times include waiting for a processor."
        )
    }
}

/// All of them.
pub fn hosts(tasks: &[Task]) -> Vec<Crowd> {
    let mut hosts: BTreeMap<&str, (usize, BTreeSet<u32>)> = BTreeMap::new();
    for task in tasks {
        let host = hosts.entry(&task.host).or_default();
        host.0 += 1;
        host.1.extend(numbers(&task.processors));
    }
    let alone = hosts.len() == 1;
    let crowds = hosts.into_iter().filter(|(_, (tasks, all))| !all.is_empty() && *tasks > all.len());
    crowds
        .map(|(host, (tasks, all))| Crowd { host: host.to_owned(), tasks, processors: all.len(), alone })
        .collect()
}

/// The one with the most tasks for each processor.
pub fn largest(tasks: &[Task]) -> Option<Crowd> {
    hosts(tasks).into_iter().max_by_key(|crowd| crowd.tasks * 1000 / crowd.processors)
}

/// The numbers of `0-3,8`.
fn numbers(list: &str) -> impl Iterator<Item = u32> + '_ {
    list.split(',')
        .filter_map(|range| {
            let (first, last) = range.trim().split_once('-').unwrap_or((range.trim(), range.trim()));
            Some(first.parse().ok()?..=last.parse::<u32>().ok()?.min(MOST))
        })
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(numbers("0-3,8").collect::<Vec<_>>(), [0, 1, 2, 3, 8]);
        assert_eq!(numbers("5").collect::<Vec<_>>(), [5]);
        assert_eq!(numbers("").chain(numbers("0-,x")).count(), 0);
        assert_eq!(numbers("0-4294967295").count(), (1 << 16) + 1);
    }
}
