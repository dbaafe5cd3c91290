//! Several seeds at a time, each of them on one processor.
//!
//! Of a simulation's threads one runs at a time. On one processor the next one goes on as soon as
//! this one waits; on another one it would have to be woken from the sleep of that processor, which
//! takes longer than most steps.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::{Mutex, PoisonError};

/// Every simulation has dozens of descriptors, and a process may have 1024.
const MOST: usize = 8;

/// Calls `run` with each seed. Returns how many run at a time, and what the calls return, in the
/// order of the seeds.
pub fn spread<T: Send>(
    seeds: impl Iterator<Item = u64> + Send,
    run: impl Fn(u64) -> T + Sync,
) -> (usize, Vec<(u64, T)>) {
    let seeds = Mutex::new(seeds.enumerate());
    let next = || seeds.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = |processor: Option<usize>| {
        // Threads inherit this from the one that makes them. Without it a simulation
        // is only slower.
        let mut only = CpuSet::new();
        if let Some(processor) = processor {
            only.set(processor);
            let _ = sched_setaffinity(None, &only);
        }
        std::iter::from_fn(next).map(|(at, seed)| (at, seed, run(seed))).collect::<Vec<_>>()
    };
    let processors = processors();
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> =
            processors.iter().map(|&processor| scope.spawn(move || work(processor))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });
    all.sort_unstable_by_key(|(at, ..)| *at);
    (processors.len(), all.into_iter().map(|(_, seed, result)| (seed, result)).collect())
}

/// The processors on which this process may run, at most [`MOST`]; one that is not named where the
/// system does not say.
fn processors() -> Vec<Option<usize>> {
    let Ok(allowed) = sched_getaffinity(None) else { return vec![None] };
    (0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor)).take(MOST).map(Some).collect()
}
