//! Jobs of many tasks, stepped by one thread: what a task takes and sends as jobs grow.
//!
//! `SCALE=16384 cargo test --release -p openlapi --lib scale -- --nocapture` prints the table of
//! `docs/performance.md`, with jobs up to that number of tasks.

use super::calls::{Extras, enter, put};
use super::job::{self, Habits, Task};
use crate::base::machine::page;
use crate::transport::testing::mem::{MemOptions, network};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Tasks of one host in jobs of several hosts.
const PER_HOST: u32 = 64;

/// What one phase took.
#[derive(Clone, Copy, Debug, Default)]
struct Phase {
    /// Packets that a task sent, at most.
    most: u64,
    /// All packets.
    packets: u64,
    /// Packets to other hosts that a task sent, at most; of all tasks; and how many
    /// tasks sent some.
    crossing: (u64, u64, usize),
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
    pages
        .and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok())
        .map_or(0, |pages| pages * page() as u64)
}

/// Begins something and steps all tasks until `done` holds for each.
fn run(tasks: &[Arc<Task>], begin: impl FnOnce(), mut done: impl FnMut(&Task) -> bool) -> Phase {
    let (begun, before) = (Instant::now(), sent(tasks));
    begin();
    let mut left: Vec<&Arc<Task>> = tasks.iter().collect();
    while !left.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(600), "{} tasks are not through", left.len());
        // A task that is through still forwards what others need.
        for task in tasks {
            task.step();
        }
        left.retain(|task| !done(task));
    }
    let mut phase = Phase { took: begun.elapsed(), ..Phase::default() };
    for (after, before) in sent(tasks).iter().zip(before) {
        let (packets, crossing) = (after.0 - before.0, after.1 - before.1);
        phase.most = phase.most.max(packets);
        phase.packets += packets;
        let (most, all, senders) = phase.crossing;
        phase.crossing = (most.max(crossing), all + crossing, senders + usize::from(crossing != 0));
    }
    phase
}

/// How many packets each task has sent: all, and those to other hosts.
fn sent(tasks: &[Arc<Task>]) -> Vec<(u64, u64)> {
    let count = |task: &Arc<Task>| {
        let mut held = enter(task);
        let stats = &held.core().stats;
        (stats.packets().0, stats.network.packets_sent)
    };
    tasks.iter().map(count).collect()
}

/// One collective operation of all tasks: of a value each, or of none.
fn collective(
    tasks: &[Arc<Task>],
    value: impl Fn(u32) -> Option<u64>,
    check: impl Fn(&Task, &[u64]),
) -> Phase {
    let begin = || {
        for task in tasks {
            let mut held = enter(task);
            let core = held.core();
            let (collectives, outbox, mut wire) = core.collective();
            collectives.enter(value(task.me), outbox, &mut wire);
            core.advance_collective();
        }
    };
    run(tasks, begin, |task| {
        let Some(outcome) = enter(task).core().take_collected() else { return false };
        check(task, &outcome.expect("all tasks take part"));
        true
    })
}

/// One job at a time, because the memory is that of the process.
static ALONE: Mutex<()> = Mutex::new(());

fn measure(count: u32, hosts: u32) -> Measured {
    let _alone = ALONE.lock();
    if std::env::var_os("SCALE").is_some() {
        // Memory that earlier jobs have freed is given back, and tables are new memory from
        // the system, as those of a task that has just started are: their pages count from
        // the first write.
        // SAFETY: both concern free memory and later allocations only.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, 16 << 10);
            libc::malloc_trim(0);
        }
    }
    let (begun, before) = (Instant::now(), resident());
    let ends = job::boxed(network(count, MemOptions { capacity: 8, ..MemOptions::default() }));
    let tasks = job::open(ends, &Habits { hosts, ..Habits::STEPPED });
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
    let begin = || {
        for task in &tasks {
            for other in neighbours(task.me, count) {
                let mine =
                    neighbours(other, count).iter().position(|&back| back == task.me).expect("of both sides");
                let to = places[other as usize][mine].as_ptr().cast();
                let extras = Extras { tgt_cntr: Some(&arrived[other as usize]), ..Extras::default() };
                put(task, other, to, &numbers[task.me as usize], extras).expect("a put");
            }
        }
    };
    measured.neighbours = run(&tasks, begin, |task| {
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

/// How many rounds of this radix reach all of `count`.
fn rounds(radix: u64, count: u32) -> u64 {
    (0..).find(|&round| radix.pow(round) >= count.into()).unwrap_or(0).into()
}

fn sizes() -> impl Iterator<Item = u32> {
    let most = std::env::var("SCALE").ok().and_then(|most| most.parse().ok()).unwrap_or(1024);
    [16, 64, 256, 1024, 4096, 16_384].into_iter().filter(move |&count| count <= most)
}

#[test]
fn collective_operations_take_few_packets_of_each_task() {
    println!(
        "{:>6} {:>9} {:>9} {:>9} {:>15} {:>15} {:>15}",
        "tasks", "open s", "idle KiB", "used KiB", "exchange", "barrier", "neighbours"
    );
    for count in sizes() {
        let measured = measure(count, 1);
        let Measured { opened, idle, used, exchange, barrier, neighbours, .. } = measured;
        let show = |phase: Phase| format!("{} in {:.3} s", phase.most, phase.took.as_secs_f64());
        println!(
            "{count:>6} {:>9.3} {:>9} {:>9} {:>15} {:>15} {:>15}",
            opened.as_secs_f64(),
            idle >> 10,
            used >> 10,
            show(exchange),
            show(barrier),
            show(neighbours)
        );
        // A leader releases its group and exchanges with other leaders; each other task
        // sends one packet.
        let leader = 15 + 3 * rounds(4, count.div_ceil(16));
        assert!(barrier.most <= leader, "{count} tasks: {barrier:?}");
        assert!(barrier.packets <= u64::from(count) * 4, "{count} tasks: {barrier:?}");
        // The values of an exchange, 8 bytes each, take a packet for each 8 KiB.
        assert!(exchange.most <= leader * parts(count), "{count} tasks: {exchange:?}");
        assert!(exchange.packets <= u64::from(count) * 4 * parts(count), "{count} tasks: {exchange:?}");
        assert_eq!(neighbours.most, self::neighbours(0, count).len() as u64, "{count} tasks: {neighbours:?}");
        for phase in [exchange, barrier, neighbours] {
            assert_eq!(phase.crossing, (0, 0, 0), "there is one host");
        }
    }
}

/// Packets for the values of all tasks.
fn parts(count: u32) -> u64 {
    u64::from(count).div_ceil(1024)
}

#[test]
fn one_task_of_each_host_sends_packets_to_other_hosts() {
    println!(
        "{:>6} {:>6} {:>22} {:>22} {:>22}",
        "tasks", "hosts", "of a task", "to other hosts", "of a host"
    );
    for count in sizes().filter(|&count| count > PER_HOST) {
        let hosts = count / PER_HOST;
        let Measured { exchange, barrier, .. } = measure(count, hosts);
        println!(
            "{count:>6} {hosts:>6} {:>22} {:>22} {:>22}",
            format!("{} / {}", exchange.most, barrier.most),
            format!("{} / {}", exchange.crossing.1, barrier.crossing.1),
            format!("{} / {}", exchange.crossing.0, barrier.crossing.0)
        );
        for phase in [exchange, barrier] {
            assert_eq!(phase.crossing.2, hosts as usize, "one task of each host: {phase:?}");
        }
        let leaders = 3 * rounds(4, hosts);
        let most = leaders + 15 * rounds(16, PER_HOST);
        assert!(barrier.crossing.0 <= leaders && barrier.most <= most, "{count} tasks: {barrier:?}");
        assert!(barrier.packets <= u64::from(count) * 3, "{count} tasks: {barrier:?}");
        assert!(exchange.crossing.0 <= leaders * parts(count), "{count} tasks: {exchange:?}");
        assert!(exchange.most <= most * parts(count), "{count} tasks: {exchange:?}");
    }
}
