//! An open context, as its objects and handlers share it: the handle, what lives as long as it, and
//! collective calls.

use crate::buffer::Buffer;
use crate::cell::Cell;
use crate::error::{check, error};
use crate::interrupt::{Watch, detached};
use crate::library::Library;
use openlapi::abi::*;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::cell::Cell as Flag;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What runs when a message arrives.
pub struct Entry {
    pub name: String,
    pub function: Py<PyAny>,
    pub into: Option<Py<PyAny>>,
}

/// A context.
pub struct Port {
    pub library: &'static Library,
    pub handle: lapi_handle_t,
    pub task: u32,
    pub tasks: u32,
    /// The longest user header.
    pub max_header: usize,
    pub open: AtomicBool,
    /// The process that has opened it: a forked child has no contexts.
    process: u32,
    /// The handlers of messages, by their numbers.
    pub handlers: Mutex<Vec<Arc<Entry>>>,
    /// How many collective calls all tasks have agreed on. Used by whose turn it is.
    collectives: AtomicU64,
    /// Whether a thread is in a collective call.
    in_turn: Mutex<bool>,
    turn_is_over: Condvar,
    counters: Mutex<Counters>,
    /// The memory of windows, by their numbers: other tasks may write there until the
    /// window is freed.
    windows: Mutex<Vec<Option<Buffer>>>,
    /// Until the context ends.
    watch: Mutex<Option<Watch>>,
}

/// The memory of counters, which may be incremented after Python has dropped them.
#[derive(Default)]
struct Counters {
    /// Other tasks may increment them, up to the end.
    shared: Vec<Arc<Cell>>,
    /// Operations of this task may.
    own: Vec<Arc<Cell>>,
}

thread_local! {
    /// Whether this thread runs a header handler.
    static IN_HEADER: Flag<bool> = const { Flag::new(false) };
}

/// Runs a header handler: calls of LAPI in it are refused.
pub fn in_header_handler<R>(run: impl FnOnce() -> R) -> R {
    IN_HEADER.set(true);
    let result = run();
    IN_HEADER.set(false);
    result
}

impl Port {
    pub fn new(
        library: &'static Library,
        handle: lapi_handle_t,
        (task, tasks): (u32, u32),
        max_header: usize,
        watch: Watch,
    ) -> Self {
        Self {
            library,
            handle,
            task,
            tasks,
            max_header,
            open: AtomicBool::new(true),
            process: std::process::id(),
            handlers: Mutex::default(),
            collectives: AtomicU64::new(0),
            in_turn: Mutex::default(),
            turn_is_over: Condvar::new(),
            counters: Mutex::default(),
            windows: Mutex::default(),
            watch: Mutex::new(Some(watch)),
        }
    }

    /// Whether this process has opened it, rather than its parent.
    pub fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// Refuses a call in a header handler, where the lock of the context is held, and after the end
    /// of the context.
    #[inline]
    pub fn may_call(&self, what: &str) -> PyResult<()> {
        if !self.open.load(Ordering::Relaxed) {
            return Err(error(LAPI_ERR_HNDL_INVALID, &format!("{what}: the context is closed")));
        }
        if IN_HEADER.get() {
            let detail = format!(
                "{what} in `into` of a handler, which must not call LAPI; the handler's function may"
            );
            return Err(error(LAPI_ERR_UNKNOWN, &detail));
        }
        Ok(())
    }

    /// Refuses an object of another context.
    #[inline]
    pub fn same(self: &Arc<Self>, other: &Arc<Self>, what: &str) -> PyResult<()> {
        if Arc::ptr_eq(self, other) {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("{what} belongs to another context")))
    }

    /// Refuses a task that the job does not have.
    #[inline]
    pub fn target(&self, target: i64, what: &str) -> PyResult<u32> {
        match u32::try_from(target) {
            Ok(task) if task < self.tasks => Ok(task),
            _ => {
                let detail =
                    format!("{what}: target {target}; the job has the tasks 0 to {}", self.tasks - 1);
                Err(error(LAPI_ERR_TGT, &detail))
            }
        }
    }

    /// Waits until no other thread of this task is in a collective call: the exchanges of two must
    /// not mix. In a child of fork the thread that would end a turn may be missing, and calls are
    /// refused.
    pub fn turn(&self, py: Python<'_>) -> Option<Turn<'_>> {
        if !self.is_own() {
            return None;
        }
        detached(py, || {
            let in_turn = lock(&self.in_turn);
            let waited = self.turn_is_over.wait_while(in_turn, |in_turn| *in_turn);
            *waited.unwrap_or_else(PoisonError::into_inner) = true;
        });
        Some(Turn(self))
    }

    /// A collective call, which consists of several exchanges. The first one compares what the
    /// tasks do: either all continue or none.
    pub fn collective<R>(
        self: &Arc<Self>,
        py: Python<'_>,
        what: &str,
        run: impl FnOnce(&Step<'_, '_>) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        self.may_call(what).map_err(Refusal::Disagreed)?;
        let _turn = self.turn(py);
        // Another thread may have closed the context meanwhile.
        self.may_call(what).map_err(Refusal::Disagreed)?;
        let step = Step { port: self, py, what };
        let number = self.collectives.load(Ordering::SeqCst);
        let agreed = step.agree(hash(what).wrapping_add(number), || {
            "another task is in another collective call: windows, shared counters and handlers are made by all tasks in one order"
                .to_owned()
        });
        // Without this task's part in what follows no other task can make the call.
        agreed.map_err(|refused| Refusal::Disagreed(refused.into()))?;
        // Not before: of a task that was in another call of LAPI the number stays, too.
        self.collectives.fetch_add(1, Ordering::SeqCst);
        run(&step)
    }

    /// Keeps a counter for as long as it may be incremented: to the end when it is shared.
    pub fn keep(&self, cell: Arc<Cell>, shared: bool) {
        let mut counters = lock(&self.counters);
        if shared {
            counters.shared.push(cell);
            return;
        }
        // Those that are used by this list alone, and that no operation will increment.
        let unused: Vec<_> = if counters.own.len() % 64 == 63 {
            let all = std::mem::take(&mut counters.own);
            let (unused, used) =
                all.into_iter().partition(|one| Arc::strong_count(one) == 1 && one.is_quiet());
            counters.own = used;
            unused
        } else {
            Vec::new()
        };
        counters.own.push(cell);
        drop(counters);
        drop(unused);
    }

    /// Keeps the memory of a window. Returns its number.
    pub fn keep_window(&self, memory: Buffer) -> usize {
        let mut windows = lock(&self.windows);
        windows.push(Some(memory));
        windows.len() - 1
    }

    /// Takes the memory of a window back.
    pub fn free_window(&self, number: usize) -> Option<Buffer> {
        lock(&self.windows)[number].take()
    }

    /// The context has ended: SIGINT is not watched for on its behalf any more.
    pub fn watch_no_more(&self) {
        drop(lock(&self.watch).take());
    }

    /// The context has ended: nothing uses memory of the program any more.
    pub fn release(&self) {
        let windows = std::mem::take(&mut *lock(&self.windows));
        let counters = std::mem::take(&mut *lock(&self.counters));
        let handlers = std::mem::take(&mut *lock(&self.handlers));
        drop((windows, counters, handlers));
    }
}

/// While it lives, this thread alone is in a collective call.
pub struct Turn<'a>(&'a Port);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.in_turn) = false;
        self.0.turn_is_over.notify_one();
    }
}

/// Why a collective call has not been made.
pub enum Refusal {
    /// No task makes it: what they do differs, or this task has no part in it.
    Disagreed(PyErr),
    /// The call has failed here; other tasks may have made it.
    Failed(PyErr),
}

impl From<Refusal> for PyErr {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Disagreed(why) | Refusal::Failed(why) => why,
        }
    }
}

/// One collective call.
pub struct Step<'a, 'py> {
    port: &'a Port,
    py: Python<'py>,
    what: &'a str,
}

impl Step<'_, '_> {
    /// Gives a number to all tasks, and returns theirs.
    pub fn exchange(&self, value: u64) -> Result<Vec<u64>, Refusal> {
        let mut all = vec![0u64; self.port.tasks as usize];
        let (handle, exchange) = (self.port.handle, self.port.library.LAPI_Address_init64);
        let code: c_int = detached(self.py, || {
            // SAFETY: the table has room for one number of each task.
            unsafe { exchange(handle, value, all.as_mut_ptr()) }
        });
        check(code, self.what).map_err(Refusal::Failed)?;
        Ok(all)
    }

    /// Compares a number with that of all tasks.
    pub fn agree(&self, value: u64, otherwise: impl FnOnce() -> String) -> Result<(), Refusal> {
        if self.exchange(value)?.iter().all(|other| *other == value) {
            return Ok(());
        }
        Err(Refusal::Disagreed(error(LAPI_ERR_UNKNOWN, &format!("{}: {}", self.what, otherwise()))))
    }
}

/// A number for a text, the same in every task (FNV-1a).
pub fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
