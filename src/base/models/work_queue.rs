//! Completion handlers on their way to the threads that run them: none is lost or taken twice, and
//! no thread sleeps on.

use super::check;
use crate::base::sync::{AtomicU32, Ordering};
use crate::base::work_queue::WorkQueue;
use loom::thread;
use std::sync::Arc;

fn taker(queue: &Arc<WorkQueue<u32>>, over: &Arc<AtomicU32>) -> thread::JoinHandle<Vec<u32>> {
    let (queue, over) = (queue.clone(), over.clone());
    thread::spawn(move || {
        let mut taken = Vec::new();
        while let Some(item) = queue.take(|| over.load(Ordering::Acquire) != 0 && queue.is_empty()) {
            taken.push(item);
        }
        taken
    })
}

fn run(preemptions: usize, items: u32, takers: usize) {
    check(preemptions, move || {
        let (queue, over) = (Arc::new(WorkQueue::new(1)), Arc::new(AtomicU32::new(0)));
        let takers: Vec<_> = (0..takers).map(|_| taker(&queue, &over)).collect();
        (0..items).for_each(|item| _ = queue.push(item));
        over.store(1, Ordering::Release);
        queue.wake_all();
        let taken: Vec<_> = takers.into_iter().map(|taker| taker.join().expect("it ends")).collect();
        assert!(taken.iter().all(|taken| taken.is_sorted()));
        let mut all: Vec<u32> = taken.into_iter().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, (0..items).collect::<Vec<_>>());
    });
}

#[test]
fn a_sleeping_taker_is_woken() {
    run(3, 1, 1);
}

#[test]
fn several_come_in_order() {
    run(2, 3, 1);
}

#[test]
fn two_takers_share() {
    run(2, 2, 2);
}
