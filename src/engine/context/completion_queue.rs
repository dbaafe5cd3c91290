//! Completion handlers to be run, and the threads that run them, so that the handlers may block and
//! call LAPI. The loop of these threads is in [`crate::engine::progress::completion_threads`].
//!
//! A context may be closed and opened again while a handler of its former opening still runs.
//! Each opening has a *generation*, which is in every queued handler and beside the count of
//! unfinished ones.

use crate::abi::{compl_hndlr_t, lapi_handle_t};
use crate::base::clock::moment;
use crate::base::event_count::{ALL, EventCount};
use crate::base::handler_runs::{self, Handler, HandlerKind};
use crate::base::known_threads::this_thread;
use crate::base::sync::{AtomicU32, AtomicU64, Deadline, Mutex, Ordering};
use crate::base::thread::{self, Thread, ThreadConfig};
use crate::base::work_queue::WorkQueue;
use crate::engine::context::incoming::Delivery;
use crate::error::Result;
use std::time::Duration;

/// How many handlers can wait before the queue allocates memory.
const ROOM: usize = 512;

/// A completion handler to be run.
pub struct Completion {
    /// The handler.
    pub handler: compl_hndlr_t,
    /// The handler's parameter.
    pub parameter: usize,
    /// What follows when it has returned, and how often the sender had been given up when its
    /// message was complete.
    pub then: Option<(Delivery, u32)>,
}

/// A completion handler that runs.
#[derive(Clone, Copy, Debug)]
pub struct RunningHandler {
    /// The thread (see [`this_thread`]).
    pub thread: usize,
    /// The handler's address.
    pub address: usize,
    /// When it began.
    pub since: u32,
}

/// The queue and its threads.
pub struct Completions {
    /// Handlers that have not begun, each with its generation.
    queue: WorkQueue<(u32, Completion)>,
    /// The generation (upper half), and how many of its handlers are queued or running. One word,
    /// so that the end of a handler of a former generation does not count. Acquire and Release: a
    /// thread that sees that no handler is left also sees what they did.
    unfinished: AtomicU64,
    /// A handler has returned.
    settled: EventCount,
    /// How many handlers have returned.
    returned: AtomicU64,
    running: Mutex<Vec<RunningHandler>>,
    threads: Mutex<Vec<Thread>>,
    /// Of a session without them, the dispatcher runs the handlers.
    has_threads: AtomicU32,
    /// See [`Self::take_left`].
    left: AtomicU32,
}

impl Completions {
    pub(crate) fn new() -> Self {
        Self {
            queue: WorkQueue::new(ROOM),
            unfinished: AtomicU64::new(0),
            settled: EventCount::new(),
            returned: AtomicU64::new(0),
            running: Mutex::new(Vec::new()),
            threads: Mutex::new(Vec::new()),
            has_threads: AtomicU32::new(0),
            left: AtomicU32::new(0),
        }
    }

    /// Whether there are threads that run handlers; otherwise the dispatcher runs them.
    #[inline]
    pub fn has_threads(&self) -> bool {
        self.has_threads.load(Ordering::Relaxed) != 0
    }

    /// Starts `count` threads, each of which calls `run` with the number of its generation.
    pub(crate) fn start(
        &self,
        count: usize,
        thread_config: ThreadConfig,
        run: impl Fn(u32) + Clone + Send + 'static,
    ) -> Result<()> {
        let generation = self.generation();
        self.has_threads.store(u32::from(count != 0), Ordering::Relaxed);
        for number in 0..count {
            let run = run.clone();
            let thread =
                thread::spawn(&format!("lapi-compl-{number}"), thread_config, move || run(generation))?;
            self.threads.lock().push(thread);
        }
        Ok(())
    }

    /// The next handler and its generation, for a thread of this generation, which waits for it.
    /// `None` when the thread is to end. A thread of a former generation, just before it ends, may
    /// take a handler of the present one, and runs it.
    pub(crate) fn next(&self, generation: u32) -> Option<(u32, Completion)> {
        loop {
            let (generation, completion) = self.queue.take(|| !self.present(generation))?;
            if self.present(generation) {
                let address = completion.handler as usize;
                let running = RunningHandler { thread: this_thread(), address, since: moment() };
                self.running.lock().push(running);
                return Some((generation, completion));
            }
        }
    }

    /// Whether threads of this generation continue.
    pub(crate) fn present(&self, generation: u32) -> bool {
        self.generation() == generation
    }

    /// A handler of this generation has returned, and what follows it is done.
    pub(crate) fn finished(&self, generation: u32) {
        let me = this_thread();
        self.running.lock().retain(|running| running.thread != me);
        self.returned.fetch_add(1, Ordering::Relaxed);
        let one_less = |state: u64| (upper(state) == generation).then(|| state - 1);
        if self.unfinished.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_less).is_ok() {
            self.settled.notify(ALL);
        }
    }

    /// Queues a handler, and returns how many are queued now. Handlers start in the order in which
    /// they are queued. The context's lock is held, so that only one thread queues at a time.
    pub fn push(&self, completion: Completion) -> usize {
        let before = self.unfinished.fetch_add(1, Ordering::Relaxed);
        self.queue.push((upper(before), completion))
    }

    /// How many handlers are queued, and how many run.
    pub fn load(&self) -> (usize, usize) {
        (self.queue.len(), self.running.lock().len())
    }

    /// Whether no handler is queued or running.
    pub fn is_idle(&self) -> bool {
        self.unfinished.load(Ordering::Acquire) as u32 == 0
    }

    /// How many handlers have returned.
    pub fn returned(&self) -> u64 {
        self.returned.load(Ordering::Relaxed)
    }

    /// How many handlers are queued, and those that run. Waits for a lock that is held for
    /// short times only.
    pub fn busy(&self) -> (usize, Vec<RunningHandler>) {
        (self.queue.len(), self.running.lock().clone())
    }

    /// Waits until no handler is queued or running, but no longer than `at_most`; a handler that
    /// waits so does not wait for itself. The lock must not be held.
    pub fn settle(&self, at_most: Duration) {
        let me = this_thread();
        // A handler of another context is none of these.
        let own = u32::from(self.running.lock().iter().any(|running| running.thread == me));
        let until = Deadline::after(at_most);
        while self.unfinished.load(Ordering::Acquire) as u32 > own {
            let Some(left) = until.left() else { return };
            let ticket = self.settled.prepare();
            if self.unfinished.load(Ordering::Acquire) as u32 > own {
                self.settled.sleep(ticket, Some(left));
            }
            self.settled.finish();
        }
    }

    /// Ends the threads, each after the handler that it runs, and waits for that, but no longer
    /// than `at_most`; handlers that have not begun never run. Returns whether all have ended:
    /// a thread whose handler has not returned ends after it, or with the process. The lock
    /// must not be held.
    pub fn stop(&self, at_most: Duration) -> bool {
        let until = Deadline::after(at_most);
        let mut all = true;
        for thread in self.end() {
            all &= thread.join_within(until.left().unwrap_or_default());
        }
        if !all {
            self.left.store(1, Ordering::Relaxed);
        }
        all
    }

    /// Ends the threads without waiting for them.
    pub fn dismiss(&self) {
        self.end().into_iter().for_each(Thread::detach);
        self.left.store(1, Ordering::Relaxed);
    }

    /// Whether threads were left behind since this was last asked: their handlers may still run.
    pub fn take_left(&self) -> bool {
        self.left.swap(0, Ordering::Relaxed) != 0
    }

    fn end(&self) -> Vec<Thread> {
        let next = |state: u64| Some(u64::from(upper(state).wrapping_add(1)) << 32);
        // It cannot fail: the closure always has a next value.
        let _ = self.unfinished.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next);
        while self.queue.pop().is_some() {}
        self.running.lock().clear();
        self.queue.wake_all();
        self.settled.notify(ALL);
        std::mem::take(&mut *self.threads.lock())
    }

    fn generation(&self) -> u32 {
        upper(self.unfinished.load(Ordering::Acquire))
    }
}

fn upper(state: u64) -> u32 {
    (state >> 32) as u32
}

impl Completion {
    /// Calls the handler. `handle` is what it gets for the context's.
    pub(crate) fn run(&self, handle: *mut lapi_handle_t) {
        RUNNING.set(true);
        // SAFETY: the program's own function, with the parameter that the program gave for it.
        let run = || unsafe { (self.handler)(handle, self.parameter as *mut libc::c_void) };
        if handler_runs::watched() {
            let address = self.handler as usize;
            handler_runs::run_watched(
                Handler { kind: HandlerKind::Completion, address, peer: 0, bytes: 0 },
                run,
            );
        } else {
            run();
        }
        RUNNING.set(false);
    }
}

/// Whether this thread is in a completion handler.
pub fn runs_handler() -> bool {
    RUNNING.get()
}

thread_local! {
    /// This thread is in a completion handler.
    static RUNNING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}
