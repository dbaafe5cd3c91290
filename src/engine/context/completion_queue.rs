//! Completion handlers to be run, and the threads that do, so that the handlers may block and call LAPI. What the threads
//! do stands in [`crate::engine::progress::completion_threads`].

use crate::abi::{compl_hndlr_t, lapi_handle_t};
use crate::base::clock::moment;
use crate::base::sync::{Condvar, Mutex};
use crate::base::thread::this_thread;
use crate::base::thread::{self, Thread, ThreadConfig};
use crate::engine::context::incoming::Delivery;
use crate::error::Result;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A completion handler to be run.
pub struct Completion {
    /// The handler.
    pub handler: compl_hndlr_t,
    /// Its parameter.
    pub parameter: usize,
    /// What follows when it has returned, and how often the sender had been given up when its message was complete.
    pub then: Option<(Delivery, u32)>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Completion>,
    /// How many handlers are queued or running.
    unfinished: usize,
    /// How many have returned.
    returned: u64,
    /// Those that run.
    running: Vec<RunningHandler>,
    /// Threads of an earlier generation end.
    generation: u64,
}

/// A completion handler that runs.
#[derive(Clone, Copy, Debug)]
pub struct RunningHandler {
    /// The thread (see [`this_thread`]).
    pub thread: usize,
    /// Where the handler stands.
    pub address: usize,
    /// Since when.
    pub since: u32,
}

/// The queue and its threads.
pub struct Completions {
    state: Mutex<State>,
    /// There is something in the queue, or the threads shall stop.
    work: Condvar,
    /// A handler has returned.
    settled: Condvar,
    threads: Mutex<Vec<Thread>>,
}

impl Completions {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State::default()),
            work: Condvar::new(),
            settled: Condvar::new(),
            threads: Mutex::new(Vec::new()),
        }
    }

    /// Starts `count` threads, each of which does this with the number of its generation.
    pub(crate) fn start(
        &self,
        count: usize,
        recipe: ThreadConfig,
        run: impl Fn(u64) + Clone + Send + 'static,
    ) -> Result<()> {
        let generation = self.state.lock().generation;
        for number in 0..count {
            let run = run.clone();
            let thread = thread::spawn(&format!("lapi-compl-{number}"), recipe, move || run(generation))?;
            self.threads.lock().push(thread);
        }
        Ok(())
    }

    /// The next handler, for a thread of this generation, which waits for it. `None` when the thread shall end.
    pub(crate) fn next(&self, generation: u64) -> Option<Completion> {
        let mut state = self.state.lock();
        loop {
            if state.generation != generation {
                return None;
            }
            if let Some(completion) = state.queue.pop_front() {
                let address = completion.handler as usize;
                state.running.push(RunningHandler { thread: this_thread(), address, since: moment() });
                return Some(completion);
            }
            self.work.wait(&mut state);
        }
    }

    /// Whether threads of this generation shall go on.
    pub(crate) fn present(&self, generation: u64) -> bool {
        self.state.lock().generation == generation
    }

    /// A handler has returned, and what follows it is done.
    pub(crate) fn finished(&self, generation: u64) {
        let mut state = self.state.lock();
        let me = this_thread();
        state.running.retain(|running| running.thread != me);
        state.returned += 1;
        if state.generation == generation {
            state.unfinished -= 1;
            self.settled.notify_all();
        }
    }

    /// Queues a handler, and returns how many are queued now. Handlers start in the order in which they are queued.
    pub fn push(&self, completion: Completion) -> usize {
        let mut state = self.state.lock();
        state.queue.push_back(completion);
        state.unfinished += 1;
        let queued = state.queue.len();
        drop(state);
        self.work.notify_one();
        queued
    }

    /// How many handlers are queued, and how many run.
    pub fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.queue.len(), state.running.len())
    }

    /// How many handlers have returned.
    pub fn returned(&self) -> u64 {
        self.state.lock().returned
    }

    /// How many handlers are queued, and those that run. Waits for the queue's own lock, which is held for moments only.
    pub fn busy(&self) -> (usize, Vec<RunningHandler>) {
        let state = self.state.lock();
        (state.queue.len(), state.running.clone())
    }

    /// Waits until no handler is queued or running, but no longer than `at_most`; a handler that waits so does not wait
    /// for itself. The lock must not be held.
    pub fn settle(&self, at_most: Duration) {
        let own = usize::from(RUNNING.get());
        let until = Instant::now() + at_most;
        let mut state = self.state.lock();
        while state.unfinished > own {
            if !self.settled.wait_until(&mut state, until) {
                return;
            }
        }
    }

    /// Ends the threads, each after the handler it is in; handlers that have not begun never run. The lock must not be
    /// held.
    pub fn stop(&self) {
        self.end().into_iter().for_each(Thread::join);
    }

    /// The same without waiting for them.
    pub fn dismiss(&self) {
        self.end().into_iter().for_each(Thread::detach);
    }

    fn end(&self) -> Vec<Thread> {
        let mut state = self.state.lock();
        state.generation += 1;
        state.queue.clear();
        state.running.clear();
        state.unfinished = 0;
        drop(state);
        self.work.notify_all();
        std::mem::take(&mut *self.threads.lock())
    }
}

impl Completion {
    /// Calls the handler. `handle` is what it gets for the context's.
    pub(crate) fn run(&self, handle: *mut lapi_handle_t) {
        RUNNING.set(true);
        // SAFETY: the program's own function, with the parameter that the program gave for it.
        unsafe { (self.handler)(handle, self.parameter as *mut libc::c_void) };
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
