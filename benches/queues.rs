//! The cost of passing a completion handler to the thread that runs it, and the cost of a lock:
//! `cargo bench --bench queues`.
//!
//! Each line is one way; all of them are measured in turn in one run, and the median of the
//! rounds is printed with its ratio to the first way. docs/design/0010-queues-and-locks.md
//! has the results.

use openlapi::base::lock::RawLock;
use openlapi::base::work_queue::WorkQueue;
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Instant;

/// Steps in a round, and rounds of each way.
const STEPS: u64 = 200_000;
const ROUNDS: usize = 15;
/// As large as a completion handler with what follows it.
type Item = [u64; 12];

/// A way to pass items from one thread to another.
trait Queue: Sync {
    fn push(&self, item: Item);
    fn take(&self) -> Item;
    fn try_take(&self) -> Option<Item>;
}

/// std's lock and condition: the former implementation of the library.
#[derive(Default)]
struct Locked(Mutex<VecDeque<Item>>, Condvar);

impl Queue for Locked {
    fn push(&self, item: Item) {
        self.0.lock().expect("no thread panics").push_back(item);
        self.1.notify_one();
    }
    fn take(&self) -> Item {
        let mut queue = self.0.lock().expect("no thread panics");
        loop {
            if let Some(item) = queue.pop_front() {
                return item;
            }
            queue = self.1.wait(queue).expect("no thread panics");
        }
    }
    fn try_take(&self) -> Option<Item> {
        self.0.lock().expect("no thread panics").pop_front()
    }
}

/// parking_lot's lock and condition.
#[derive(Default)]
struct Parked(parking_lot::Mutex<VecDeque<Item>>, parking_lot::Condvar);

impl Queue for Parked {
    fn push(&self, item: Item) {
        self.0.lock().push_back(item);
        self.1.notify_one();
    }
    fn take(&self) -> Item {
        let mut queue = self.0.lock();
        loop {
            if let Some(item) = queue.pop_front() {
                return item;
            }
            self.1.wait(&mut queue);
        }
    }
    fn try_take(&self) -> Option<Item> {
        self.0.lock().pop_front()
    }
}

/// The implementation of the library.
impl Queue for WorkQueue<Item> {
    fn push(&self, item: Item) {
        Self::push(self, item);
    }
    fn take(&self) -> Item {
        Self::take(self, || false).expect("it is never over")
    }
    fn try_take(&self) -> Option<Item> {
        self.pop()
    }
}

/// ns for each item: bursts of 8 pushed and taken by the same thread, with no thread asleep.
fn alone(queue: &dyn Queue) -> f64 {
    let begin = Instant::now();
    for _ in 0..STEPS / 8 {
        (0..8).for_each(|at| queue.push(black_box([at; 12])));
        (0..8).for_each(|_| assert!(black_box(queue.try_take()).is_some()));
    }
    begin.elapsed().as_nanos() as f64 / STEPS as f64
}

/// ns for each item: one thread pushes windows of 64, another takes and sleeps when there is none.
fn across(queue: &dyn Queue) -> f64 {
    let done = AtomicU64::new(0);
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            for taken in 1..=STEPS {
                black_box(queue.take());
                done.store(taken, Ordering::Release);
            }
        });
        for pushed in 0..STEPS {
            while pushed - done.load(Ordering::Acquire) >= 64 {
                thread::yield_now();
            }
            queue.push([pushed; 12]);
        }
    });
    begin.elapsed().as_nanos() as f64 / STEPS as f64
}

/// ns for each step of a lock that `threads` threads take by turns.
fn locks(threads: u64, step: &(dyn Fn() + Sync)) -> f64 {
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (0..STEPS / threads).for_each(|_| step()));
        }
    });
    begin.elapsed().as_nanos() as f64 / STEPS as f64
}

fn table(what: &str, ways: &[(&str, &dyn Fn() -> f64)]) {
    println!("\n{what:<44} {:>9} {:>7}", "ns", "ratio");
    let mut times = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for ((_, way), times) in ways.iter().zip(&mut times) {
            times.push(way());
        }
    }
    let medians: Vec<f64> = times
        .into_iter()
        .map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        })
        .collect();
    for ((name, _), median) in ways.iter().zip(&medians) {
        println!("  {name:<42} {median:>9.1} {:>7.2}", median / medians[0]);
    }
}

fn main() {
    let (locked, parked) = (Locked::default(), Parked::default());
    let work = WorkQueue::new(512);
    table(
        "an item, one thread, none asleep",
        &[
            ("std Mutex<VecDeque> and Condvar", &|| alone(&locked)),
            ("parking_lot Mutex<VecDeque> and Condvar", &|| alone(&parked)),
            ("WorkQueue (std Mutex<VecDeque>, event count)", &|| alone(&work)),
        ],
    );
    table(
        "an item, from thread to thread",
        &[
            ("std Mutex<VecDeque> and Condvar", &|| across(&locked)),
            ("parking_lot Mutex<VecDeque> and Condvar", &|| across(&parked)),
            ("WorkQueue (std Mutex<VecDeque>, event count)", &|| across(&work)),
        ],
    );
    let (std_lock, parking, raw) = (Mutex::new(0_u64), parking_lot::Mutex::new(0_u64), RawLock::new());
    let number = AtomicU64::new(0);
    let std_step = || *std_lock.lock().expect("no thread panics") += 1;
    let parking_step = || *parking.lock() += 1;
    let raw_step = || {
        raw.lock();
        number.store(number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // SAFETY: locked two lines above.
        unsafe { raw.unlock() };
    };
    for threads in [1, 2] {
        table(
            &format!("a lock, {threads} thread(s)"),
            &[
                ("std Mutex", &|| locks(threads, &std_step)),
                ("parking_lot Mutex", &|| locks(threads, &parking_step)),
                ("RawLock (the context's)", &|| locks(threads, &raw_step)),
            ],
        );
    }
}
