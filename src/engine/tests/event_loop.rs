//! The program's event loop on each transport: whatever comes wakes it.

use super::calls::{Extras, counter, enter, forever, put};
use super::job::{self, Ends, Habits, Task, in_threads};
use crate::base::clock::{now, test_deadline};
use crate::base::poll::await_events;
use crate::base::rng::Rng;
use crate::engine::progress::event_loop;
use crate::transport::coalescing::Coalescing;
use crate::transport::testing::mem::network;
use crate::transport::{fabric, udp};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

const ROUNDS: i32 = 300;

/// Two tasks of each transport, and whether it has no deadlines of its own.
fn ways() -> Vec<(&'static str, Ends, bool)> {
    let mut ways = vec![
        ("mem", job::mem(2, 2, false), true),
        ("shm", job::boxed(job::shm(2)), true),
        (
            "coalescing",
            job::boxed(network(2, job::SHORT).into_iter().map(Coalescing::always).collect()),
            true,
        ),
        ("udp", job::boxed(udp::tests::two()), false),
    ];
    if fabric::tests::is_there("tcp;ofi_rxm") {
        ways.push(("tcp;ofi_rxm", job::boxed(fabric::tests::two("tcp;ofi_rxm")), false));
    }
    ways
}

/// Runs the loop until this is so. Where the transport has no deadlines, no sleep may end by its
/// time. Returns how many did, and found then what should have woken them.
fn run(task: &Task, quiet: bool, until: impl Fn() -> bool) -> usize {
    let (deadline, mut late) = (now() + test_deadline(), 0);
    let descriptor = enter(task).descriptor().expect("a descriptor");
    while !until() {
        let armed = event_loop::arm(&mut enter(task)).expect("in no handler");
        let mut woken = true;
        if let Some(time) = armed {
            let end = if quiet { deadline } else { time.min(deadline) };
            woken = await_events([descriptor.as_fd()], Some(end.saturating_duration_since(now())))[0];
            assert!(now() < deadline, "the loop sleeps, and nothing wakes it");
        }
        let moved = event_loop::disarm(&mut enter(task));
        late += usize::from(!woken && moved);
        while event_loop::poll(&mut enter(task)) {}
    }
    late
}

fn extras(tgt_cntr: &AtomicI32) -> Extras<'_> {
    Extras { tgt_cntr: Some(tgt_cntr), ..Extras::default() }
}

/// As many as a window of UDP holds, when they are small.
#[test]
fn all_that_a_peer_has_sent_is_taken_before_it_is_given_up() {
    const MESSAGES: i32 = 10_000;
    let tasks =
        job::open(job::mem(2, 2 * MESSAGES as usize, false), &Habits { notifier: false, ..Habits::THREADED });
    let (arrived, there) = (counter(), forever(8).as_mut_ptr());
    for _ in 0..MESSAGES {
        put(&tasks[0], 1, there, &[1; 8], extras(arrived)).expect("a put");
        event_loop::poll(&mut enter(&tasks[0]));
    }
    assert_eq!(arrived.load(Ordering::Acquire), 0, "nobody has looked");
    event_loop::drain(&mut enter(&tasks[1]), 0, || true);
    assert_eq!(arrived.load(Ordering::Acquire), MESSAGES);
    job::close(tasks);
}

#[test]
fn two_event_loops_wake_each_other_on_each_transport() {
    for (name, ends, quiet) in ways() {
        let tasks = job::open(ends, &Habits { notifier: false, ..Habits::THREADED });
        let counters = [counter(), counter()];
        let late: &'static AtomicUsize = Box::leak(Box::default());
        let through: &'static AtomicUsize = Box::leak(Box::default());
        in_threads(&tasks, 1, move |task, _| {
            let [own, other] = [task.me as usize, 1 - task.me as usize].map(|at| counters[at]);
            let (there, data) = (forever(30_000).as_mut_ptr(), &*forever(30_000));
            let mut rng = Rng::new(task.me.into());
            for round in 1..=ROUNDS {
                task.stage(format!("{name}, round {round}"));
                // Long messages take several packets, and the sender's help.
                let len = if round % 10 == 0 { data.len() } else { 8 };
                if task.me == 0 {
                    put(task, 1, there, &data[..len], extras(other)).expect("a put");
                }
                let came = || own.load(Ordering::Acquire) == round;
                late.fetch_add(run(task, quiet, came), Ordering::Relaxed);
                (0..rng.below(2_000)).for_each(|_| std::hint::spin_loop());
                if task.me == 1 {
                    put(task, 0, there, &data[..len], extras(other)).expect("a put");
                }
            }
            // What it has sent last may need this task.
            through.fetch_add(1, Ordering::AcqRel);
            while through.load(Ordering::Acquire) != 2 {
                event_loop::poll(&mut enter(task));
            }
        });
        let late = late.load(Ordering::Relaxed);
        assert!(late < ROUNDS as usize / 2, "{name}: {late} sleeps ended by their time, and found messages");
        job::close(tasks);
    }
}
