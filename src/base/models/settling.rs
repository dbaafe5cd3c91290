//! Threads that run completion handlers, and one that waits until all have returned. The steps are
//! those of `finished`, `settle` and `end` in `engine::context::completion_queue`.

use super::check;
use crate::base::event_count::{ALL, EventCount};
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use loom::thread;
use std::sync::Arc;

struct Completions {
    unfinished: AtomicU64,
    settled: EventCount,
    /// What the handlers do, each a word of its own.
    done: [AtomicU32; 2],
}

impl Completions {
    /// As many handlers are queued or run, of generation 0.
    fn new(handlers: u64) -> Arc<Self> {
        let done = [AtomicU32::new(0), AtomicU32::new(0)];
        Arc::new(Self { unfinished: AtomicU64::new(handlers), settled: EventCount::new(), done })
    }

    /// A handler of generation 0, and its end.
    fn run(&self, handler: usize) {
        self.done[handler].store(1, Ordering::Relaxed);
        let one_less = |state: u64| (state >> 32 == 0).then(|| state - 1);
        if self.unfinished.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_less).is_ok() {
            self.settled.notify(ALL);
        }
    }

    /// The next generation begins.
    fn end(&self) {
        let next = |_| Some(1 << 32);
        let _ = self.unfinished.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next);
        self.settled.notify(ALL);
    }

    fn are_left(&self) -> bool {
        self.unfinished.load(Ordering::Acquire) as u32 > 0
    }

    fn settle(&self) {
        while self.are_left() {
            let ticket = self.settled.prepare();
            if self.are_left() {
                self.settled.sleep(ticket, None);
            }
            self.settled.finish();
        }
    }
}

fn spawn(completions: &Arc<Completions>, run: impl FnOnce(&Completions) + 'static) -> thread::JoinHandle<()> {
    let completions = completions.clone();
    thread::spawn(move || run(&completions))
}

/// Who sees that no handler is left also sees what each of them has done.
fn settles(preemptions: usize, handlers: usize) {
    check(preemptions, move || {
        let completions = Completions::new(handlers as u64);
        let threads: Vec<_> =
            (0..handlers).map(|handler| spawn(&completions, move |those| those.run(handler))).collect();
        completions.settle();
        for done in &completions.done[..handlers] {
            assert_eq!(done.load(Ordering::Relaxed), 1, "it has returned");
        }
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
    });
}

#[test]
fn the_end_of_a_handler_wakes_who_waits() {
    settles(3, 1);
}

#[test]
fn who_waits_sees_what_all_have_done() {
    settles(2, 2);
}

/// A handler may return before, after or while the next generation begins: it never counts there.
#[test]
fn the_end_of_a_generation_wakes_who_waits() {
    check(3, || {
        let completions = Completions::new(1);
        let threads = [spawn(&completions, |those| those.run(0)), spawn(&completions, Completions::end)];
        completions.settle();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        assert_eq!(completions.unfinished.load(Ordering::Relaxed), 1 << 32);
    });
}
