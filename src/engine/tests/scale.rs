//! Jobs of many tasks, stepped by one thread: what a task takes and sends as jobs grow.
//!
//! `SCALE=16384 cargo test --release -p openlapi --lib scale -- --nocapture` prints the table of `docs/performance.md`, with jobs up to
//! that number of tasks.

use super::calls::{Extras, enter, put};
use super::job::{self, Habits, Task};
use crate::engine::progress::dispatcher;
use crate::transport::mem::{MemOptions, network};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What one phase took.
#[derive(Clone, Copy, Debug, Default)]
struct Phase {
    /// Packets that a task sent, at most.
    most: u64,
    /// All packets.
    packets: u64,
    took: Duration,
}

/// What a job took.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    opened: Duration,
    /// Bytes of memory per task: with the contexts open, and after everything.
    idle: u64,
    used: u64,
    exchange: Phase,
    barrier: Phase,
    neighbours: Phase,
}

/// The neighbours of a task in a cube with edges of a power of two.
fn neighbours(task: u32, tasks: u32) -> Vec<u32> {
    let edge = 1 << (tasks.ilog2() / 3);
    let mut all: Vec<u32> = [1, edge, edge * edge]
        .into_iter()
        .flat_map(|step| [(task + step) % tasks, (task + tasks - step % tasks) % tasks])
        .filter(|&other| other != task)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok()).map_or(0, |pages| pages * 4096)
}

/// Steps all tasks until `done` holds for each.
fn run(tasks: &[Arc<Task>], mut done: impl FnMut(&Task) -> bool) -> Phase {
    let (begun, before) = (Instant::now(), sent(tasks));
    let mut left: Vec<&Arc<Task>> = tasks.iter().collect();
    while !left.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(600), "{} tasks are not through", left.len());
        // A task that is through still forwards what others need.
        for task in tasks {
            task.step();
        }
        left.retain(|task| !done(task));
    }
    let counts: Vec<u64> = sent(tasks).iter().zip(before).map(|(after, before)| after - before).collect();
    Phase {
        most: counts.iter().copied().max().unwrap_or(0),
        packets: counts.iter().sum(),
        took: begun.elapsed(),
    }
}

fn sent(tasks: &[Arc<Task>]) -> Vec<u64> {
    tasks.iter().map(|task| enter(task).core().stats.packets().0).collect()
}

/// One collective operation of all tasks: of a value each, or of none.
fn collective(
    tasks: &[Arc<Task>],
    value: impl Fn(u32) -> Option<u64>,
    check: impl Fn(&Task, &[u64]),
) -> Phase {
    for task in tasks {
        let mut held = enter(task);
        let core = held.core();
        let (collectives, outbox, mut wire) = core.collective();
        collectives.enter(value(task.me), outbox, &mut wire);
        dispatcher::advance_collective(core);
    }
    run(tasks, |task| {
        let Some(outcome) = enter(task).core().collected.take() else { return false };
        check(task, &outcome.expect("all tasks take part"));
        true
    })
}

fn measure(count: u32) -> Measured {
    let (begun, before) = (Instant::now(), resident());
    let ends = job::boxed(network(count, MemOptions { capacity: 8, ..MemOptions::default() }));
    let tasks = job::open(ends, &Habits::STEPPED);
    let per_task = || resident().saturating_sub(before) / u64::from(count);
    let mut measured = Measured { opened: begun.elapsed(), idle: per_task(), ..Measured::default() };

    measured.exchange = collective(
        &tasks,
        |me| Some(u64::from(me) * 7 + 1),
        |task, values| {
            assert_eq!(values.len(), count as usize);
            let expected = (0..u64::from(count)).map(|other| other * 7 + 1);
            assert!(values.iter().copied().eq(expected), "task {} has other values", task.me);
        },
    );
    measured.barrier = collective(&tasks, |_| None, |_, values| assert!(values.is_empty()));

    // Each task puts its number into a place of each neighbour, which counts what has come.
    let places: Vec<[AtomicU64; 6]> = tasks.iter().map(|_| Default::default()).collect();
    let arrived: Vec<AtomicI32> = tasks.iter().map(|_| AtomicI32::new(0)).collect();
    let numbers: Vec<[u8; 8]> = (0..u64::from(count)).map(|me| (me + 1).to_ne_bytes()).collect();
    for task in &tasks {
        for other in neighbours(task.me, count) {
            let mine =
                neighbours(other, count).iter().position(|&back| back == task.me).expect("of both sides");
            let to = places[other as usize][mine].as_ptr().cast();
            let extras = Extras { tgt_cntr: Some(&arrived[other as usize]), ..Extras::default() };
            put(task, other, to, &numbers[task.me as usize], extras).expect("a put");
        }
    }
    measured.neighbours = run(&tasks, |task| {
        let awaited = neighbours(task.me, count).len() as i32;
        arrived[task.me as usize].load(Ordering::Relaxed) == awaited
    });
    for task in 0..count {
        for (place, from) in places[task as usize].iter().zip(neighbours(task, count)) {
            assert_eq!(place.load(Ordering::Relaxed), u64::from(from) + 1, "from {from} to {task}");
        }
    }
    measured.used = per_task();
    job::close(tasks);
    measured
}

#[test]
fn collective_operations_take_few_packets_of_each_task() {
    let most = std::env::var("SCALE").ok().and_then(|most| most.parse().ok()).unwrap_or(1024);
    println!(
        "{:>6} {:>9} {:>9} {:>9} {:>14} {:>14} {:>14}",
        "tasks", "open s", "idle KiB", "used KiB", "exchange", "barrier", "neighbours"
    );
    let sizes = [16, 64, 256, 1024, 4096, 16_384];
    for count in sizes.into_iter().filter(|&count| count <= most) {
        let measured = measure(count);
        let Measured { opened, idle, used, exchange, barrier, neighbours, .. } = measured;
        let show = |phase: Phase| format!("{} in {:.2} s", phase.most, phase.took.as_secs_f64());
        println!(
            "{count:>6} {:>9.2} {:>9} {:>9} {:>14} {:>14} {:>14}",
            opened.as_secs_f64(),
            idle >> 10,
            used >> 10,
            show(exchange),
            show(barrier),
            show(neighbours)
        );
        let rounds = u64::from(count.ilog2());
        assert!(barrier.most <= 2 * rounds + 2, "{count} tasks: {barrier:?}");
        // The values of an exchange, 8 bytes each, take a packet for each 8 KiB.
        assert!(exchange.most <= 2 * rounds + 2 + u64::from(count) / 512, "{count} tasks: {exchange:?}");
        assert!(neighbours.most <= 6, "{count} tasks: {neighbours:?}");
        assert!(
            measured.packets_in_all() < u64::from(count) * (6 + 4 * (rounds + 1) + u64::from(count) / 512)
        );
    }
}

impl Measured {
    fn packets_in_all(&self) -> u64 {
        self.exchange.packets + self.barrier.packets + self.neighbours.packets
    }
}
