//! The simulation itself: its order, its time, the end of its threads.

use super::{World, pause};
use crate::base::clock;
use crate::base::sync::{Condvar, Mutex};
use crate::base::work_queue::WorkQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// Three threads of two groups that wait for moments and for each other.
fn play(seed: u64) -> (u64, Vec<u32>) {
    let world = World::new(seed, 100 * SECOND);
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let queue = Arc::new(WorkQueue::new(4));
    for number in 0..2 {
        let (order, queue) = (order.clone(), queue.clone());
        world.spawn(number, "pushes", move || {
            for round in 0..20 {
                clock::sleep(Duration::from_millis(u64::from(clock::ticks() as u32 % 3)));
                queue.push(number * 100 + round);
                order.lock().expect("it").push(1000 + number);
            }
        });
    }
    let taken = order.clone();
    world.spawn(0, "takes", move || {
        let count = AtomicU32::new(0);
        while let Some(item) = queue.take(|| count.load(Ordering::Relaxed) == 40) {
            count.fetch_add(1, Ordering::Relaxed);
            taken.lock().expect("it").push(item);
        }
    });
    let (trace, _) = world.run().expect("all end");
    let order = order.lock().expect("it").clone();
    (trace, order)
}

#[test]
fn a_seed_gives_the_same_run_and_another_seed_another_one() {
    let runs: Vec<_> = (1..=20).map(play).collect();
    assert!((1..=20).zip(&runs).all(|(seed, run)| play(seed) == *run));
    assert!(runs.windows(2).all(|two| two[0].0 != two[1].0) && runs.iter().any(|run| run.1 != runs[0].1));
}

#[test]
fn time_passes_where_nothing_runs() {
    let world = World::new(1, 10_000 * SECOND);
    let begun = std::time::Instant::now();
    world.spawn(0, "sleeps", || {
        let before = clock::now();
        assert!(pause(Duration::from_secs(3600)));
        let passed = clock::elapsed(before).as_secs_f64();
        assert!((3600.0..3600.1).contains(&passed), "{passed}");
    });
    world.run().expect("it ends");
    assert!(begun.elapsed() < Duration::from_secs(3600));
}

#[test]
fn a_thread_that_no_one_wakes_is_reported() {
    let world = World::new(1, 10 * SECOND);
    world.spawn(3, "waits", || {
        let (lock, never) = (Mutex::new(()), Condvar::new());
        never.wait(&mut lock.lock());
    });
    let failure = world.run().expect_err("it never ends");
    assert!(failure.contains("no thread can run any more: waits: Waiting"), "{failure}");
    let world = World::new(1, 10 * SECOND);
    world.spawn(3, "turns", || while pause(Duration::from_secs(1)) {});
    let failure = world.run().expect_err("it never ends");
    assert!(failure.contains("the time is over: turns: Waiting"), "{failure}");
}

/// A group that is ended leaves from where it waits, and what it has is dropped; a wait inside of
/// that takes no time.
#[test]
fn a_group_is_ended_and_another_one_held_up() {
    struct Drops(Arc<AtomicBool>);
    impl Drop for Drops {
        fn drop(&mut self) {
            let before = clock::now();
            clock::sleep(Duration::from_secs(5));
            assert!(clock::elapsed(before) >= Duration::from_secs(5));
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let world = World::new(1, 10 * SECOND);
    let drops = Drops(dropped.clone());
    world.spawn(7, "is ended", move || {
        let _drops = drops;
        clock::sleep(Duration::from_secs(9));
        panic!("not here");
    });
    world.spawn(8, "is held up", || {
        let before = clock::now();
        clock::sleep(Duration::from_millis(1500));
        assert!(clock::elapsed(before) >= Duration::from_secs(4));
    });
    world.after(SECOND, |world| {
        assert!(world.runs(7));
        world.kill(7);
        world.pause(8, 3 * SECOND);
    });
    world.run().expect("all end");
    assert!(dropped.load(Ordering::Relaxed) && !world.runs(7) && !world.has_failed());
}
