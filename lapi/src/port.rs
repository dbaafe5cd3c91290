//! What may be done with a context, by any thread and in handlers: queries, fences, progress, and
//! the waits of all operations.

mod checkpoint;
mod collective;

use crate::instances::Instance;
use openlapi::abi::*;
use openlapi::api::env::{self, Value};
use openlapi::api::{self, Held, fence, progress, recovery};
use openlapi::error::{Error, Result};
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

pub(crate) use collective::CollectiveKind;

/// The number of header handlers that a context may have; their indices are 1 up to
/// this, exclusive.
pub const HANDLERS: usize = 64;

/// What the counter of an operation is set to when its target is lost.
const LOST: i32 = 1 << 30;

/// The operations of an open [`Context`](crate::Context).
///
/// Windows and counters keep it; handlers get a reference to it. After the context has ended every
/// call returns `LAPI_ERR_HNDL_INVALID`.
pub struct Port {
    context: Arc<api::Context>,
    place: Instance,
    handle: lapi_handle_t,
    ended: AtomicBool,
    task: u32,
    /// For each task, how often it was purged, or given up by a resume: windows, counters and
    /// operations of before have to do with memory of a process that may be another one now.
    /// Changed with the context's lock held.
    lives: Box<[AtomicU32]>,
    /// The number of the next collective object.
    next: AtomicU64,
    /// Collective calls consist of several steps, which must not mix with those of another thread.
    turn: Mutex<()>,
    /// Operations whose end a thread waits for: only when the program continues after a loss.
    awaited: Option<Mutex<AwaitedList>>,
    handlers: [OnceLock<Box<dyn Any + Send + Sync>>; HANDLERS],
}

/// An operation, and in which life of its target it was started.
#[derive(Clone, Copy)]
struct Awaited {
    task: u32,
    life: u32,
}

/// Operations by the addresses of their counters: a scope may have very many.
type AwaitedList = HashMap<usize, Awaited>;

/// Which counter of an operation is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The origin counter: the buffer may be used again; of a get, the data is there.
    Reusable,
    /// The completion counter: the data is in place at the target, and its completion
    /// handler has returned.
    Complete,
}

/// The counters of one operation; the one that is not waited for is null.
#[derive(Clone, Copy)]
pub(crate) struct Counters {
    pub origin: *mut lapi_cntr_t,
    pub completion: *mut lapi_cntr_t,
}

impl Port {
    /// Of task `task` of `tasks`. `continues`: the program has an error handler, so that it
    /// continues when a task is lost.
    pub(crate) fn new(
        context: Arc<api::Context>,
        place: Instance,
        (task, tasks): (u32, u32),
        continues: bool,
    ) -> Self {
        Self {
            context,
            handle: place.handle(),
            place,
            ended: AtomicBool::new(false),
            task,
            lives: (0..tasks).map(|_| AtomicU32::new(0)).collect(),
            next: AtomicU64::new(1),
            turn: Mutex::new(()),
            awaited: continues.then(Mutex::default),
            handlers: [const { OnceLock::new() }; HANDLERS],
        }
    }

    /// The number of this task.
    pub fn task(&self) -> u32 {
        self.task
    }

    /// The number of tasks of the job.
    pub fn tasks(&self) -> u32 {
        self.lives.len() as u32
    }

    /// Waits until the data of all operations that this task has started is in place (LAPI_Fence).
    ///
    /// # Errors
    /// `LAPI_ERR_UNKNOWN`: called in a header handler.
    pub fn fence(&self) -> Result<()> {
        fence::fence(&mut self.enter_to_wait("a fence")?)
    }

    /// A fence of all tasks, each of which must call it (LAPI_Gfence).
    ///
    /// # Errors
    /// `LAPI_ERR_UNKNOWN`: called in a header handler, or another task is in another
    /// collective call.
    pub fn gfence(&self) -> Result<()> {
        let _turn = self.turn("a fence of all tasks")?;
        fence::gfence(&mut self.enter()?)
    }

    /// Every task gives a number and gets those of all, by task.
    ///
    /// A task in C calls LAPI_Address_init64 twice for it: with 0x0100000000000000, which says that
    /// it is in this call as well, and with its number.
    ///
    /// # Errors
    /// `LAPI_ERR_UNKNOWN`: called in a header handler, or another task is in another
    /// collective call.
    pub fn exchange(&self, value: u64) -> Result<Vec<u64>> {
        self.collectively(CollectiveKind::Exchange, 0, |step| step.exchange(value))
    }

    /// One round of the dispatcher: takes in what has arrived (LAPI_Probe).
    ///
    /// # Errors
    /// `LAPI_ERR_HNDL_INVALID`: the context has ended.
    pub fn probe(&self) -> Result<()> {
        progress::probe(&mut self.enter()?);
        Ok(())
    }

    /// The value of an attribute (LAPI_Qenv).
    ///
    /// # Errors
    /// `LAPI_ERR_HNDL_INVALID`: the context has ended. `LAPI_ERR_QUERY_TYPE`: the attribute is not
    /// one number.
    pub fn attribute(&self, attribute: Attribute) -> Result<i32> {
        match env::query(&mut self.enter()?, attribute as lapi_query_t)? {
            Value::Number(number) => Ok(number),
            _ => Err(Error::from(LAPI_ERR_QUERY_TYPE)),
        }
    }

    /// Sets one of the attributes that can be set (LAPI_Senv).
    ///
    /// # Errors
    /// `LAPI_ERR_QUERY_TYPE`: it cannot be set. `LAPI_ERR_SET_VAL`: the value is out of its range.
    pub fn set_attribute(&self, attribute: Attribute, value: i32) -> Result<()> {
        let held = self.enter()?;
        env::set(held.context(), attribute as lapi_query_t, value)
    }

    /// What went over the network, or over shared memory (`QUERY_STATISTICS`,
    /// `QUERY_SHM_STATISTICS`).
    ///
    /// # Errors
    /// `LAPI_ERR_HNDL_INVALID`: the context has ended.
    pub fn statistics(&self, shared_memory: bool) -> Result<lapi_statistics_t> {
        let query = if shared_memory { QUERY_SHM_STATISTICS } else { QUERY_STATISTICS };
        match env::query(&mut self.enter()?, query)? {
            Value::Statistics(path) => Ok(path.as_statistics()),
            _ => Err(Error::from(LAPI_ERR_QUERY_TYPE)),
        }
    }

    /// Gives a task up: what is under way with it ends here (LAPI_Purge_totask). Windows and
    /// counters that exist now refuse it for ever: their memory there may be another process's
    /// when it rejoins.
    ///
    /// Operations that other threads wait for end with an error only if the context has an error
    /// handler ([`Builder::on_error`](crate::Builder::on_error)).
    ///
    /// # Errors
    /// `LAPI_ERR_HNDL_INVALID`: the context has ended. Otherwise as the man page of
    /// LAPI_Purge_totask says.
    pub fn purge(&self, task: u32) -> Result<()> {
        let mut held = self.enter()?;
        let life = self.life(task)?;
        if task != self.task {
            // Before the purge, in which handlers may run that release the lock.
            self.end_life(task);
        }
        recovery::purge(&mut held, task)?;
        self.end_awaited(task, life);
        drop(held);
        self.wake();
        Ok(())
    }

    /// Lets a task that was purged or lost rejoin (LAPI_Resume_totask). One that was lost is
    /// purged by this.
    ///
    /// # Errors
    /// `LAPI_ERR_HNDL_INVALID`: the context has ended. Otherwise as the man page of
    /// LAPI_Resume_totask says.
    pub fn resume(&self, task: u32) -> Result<()> {
        let mut held = self.enter()?;
        let life = self.life(task)?;
        let lost = recovery::is_lost(&mut held, task)?;
        if lost {
            self.end_life(task);
        }
        let resumed = recovery::resume(&mut held, task);
        if lost {
            self.end_awaited(task, life);
        }
        drop(held);
        self.wake();
        resumed
    }

    // What the other modules of this crate use.

    pub(crate) fn context(&self) -> &Arc<api::Context> {
        &self.context
    }

    pub(crate) fn handle(&self) -> lapi_handle_t {
        self.handle
    }

    pub(crate) fn index(&self) -> usize {
        self.place.index()
    }

    pub(crate) fn is_own(&self) -> bool {
        self.place.is_own()
    }

    /// The context has ended: another one may take its instance.
    pub(crate) fn release(&self) {
        self.place.release();
    }

    /// The context is closed: nothing of it uses memory of the program any more.
    pub(crate) fn set_ended(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Which life of the task this is. With the context's lock held it does not change.
    #[inline]
    pub(crate) fn life(&self, task: u32) -> Result<u32> {
        match self.lives.get(task as usize) {
            Some(life) => Ok(life.load(Ordering::Relaxed)),
            None => Err(no_task(task, self.tasks())),
        }
    }

    /// The lives of all tasks.
    pub(crate) fn lives(&self) -> Box<[u32]> {
        self.lives.iter().map(|life| life.load(Ordering::Relaxed)).collect()
    }

    /// Refuses an operation with what was made in another life of its target. `held` shows that it
    /// is this life until the operation has started: what is sent to a task that rejoins would
    /// reach another process.
    #[inline]
    pub(crate) fn check_life(&self, _held: &Held<'_>, task: u32, life: u32) -> Result<()> {
        if self.life(task)? == life { Ok(()) } else { Err(purged(task)) }
    }

    /// Refuses an object of another context: its fences do not wait for operations of this one, and
    /// it has other lives of the tasks.
    #[inline]
    pub(crate) fn check_same(&self, other: &Port, what: &str) -> Result<()> {
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        Err(Error::new(LAPI_ERR_HNDL_INVALID, format!("{what} belongs to another context")))
    }

    fn end_life(&self, task: u32) {
        self.lives[task as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the lock for a call.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Held<'_>> {
        if !self.place.is_own() {
            return Err(Error::new(
                LAPI_ERR_HNDL_INVALID,
                "the context belongs to the parent of this process",
            ));
        }
        let held = self.context.enter()?;
        if self.context.handle() != self.handle {
            return Err(Error::new(LAPI_ERR_HNDL_INVALID, "the context has ended"));
        }
        Ok(held)
    }

    /// Takes the lock for a call that waits, which a header handler may not make.
    #[inline]
    pub(crate) fn enter_to_wait(&self, what: &str) -> Result<Held<'_>> {
        let held = self.enter()?;
        if held.in_handler() {
            let detail =
                format!("{what} in a header handler, which must not wait; wait in its completion handler");
            return Err(Error::new(LAPI_ERR_UNKNOWN, detail));
        }
        Ok(held)
    }

    /// Starts an operation and waits until it no longer uses the memory of the caller.
    ///
    /// # Safety
    /// `start` must start an operation with `task` that raises the counter it is given once, or
    /// return an error and start none.
    #[inline]
    pub(crate) unsafe fn perform(
        &self,
        task: u32,
        until: Until,
        start: impl FnOnce(&mut Held<'_>, Counters) -> Result<()>,
    ) -> Result<()> {
        let mut cntr = lapi_cntr_t::new(0);
        let cntr = &raw mut cntr;
        // SAFETY: the counter lives until `finish` has returned; the caller's promise.
        unsafe {
            self.start(task, cntr, until, start)?;
            self.finish(task, cntr)
        }
    }

    /// Starts an operation whose end [`Self::finish`] waits for.
    ///
    /// # Safety
    /// The conditions of [`Self::perform`] hold; the counter must stay where it is until
    /// [`Self::finish`] has returned.
    pub(crate) unsafe fn start(
        &self,
        task: u32,
        cntr: *mut lapi_cntr_t,
        until: Until,
        start: impl FnOnce(&mut Held<'_>, Counters) -> Result<()>,
    ) -> Result<()> {
        let mut held = self.enter_to_wait("an operation that waits")?;
        let awaited = Awaited { task, life: self.life(task)? };
        self.list(|list| list.insert(cntr as usize, awaited));
        let none = std::ptr::null_mut();
        let counters = match until {
            Until::Reusable => Counters { origin: cntr, completion: none },
            Until::Complete => Counters { origin: none, completion: cntr },
        };
        // A defect of the core that unwinds would free the memory of an operation that
        // it has started.
        let bomb = AbortOnUnwind;
        let started = start(&mut held, counters);
        std::mem::forget(bomb);
        if started.is_err() {
            self.list(|list| list.remove(&(cntr as usize)));
        }
        started
    }

    /// Waits for the end of an operation. When this returns, even with an error, the operation uses
    /// no memory of the program.
    ///
    /// # Safety
    /// The counter must be that of an operation that [`Self::start`] has started.
    pub(crate) unsafe fn finish(&self, task: u32, cntr: *mut lapi_cntr_t) -> Result<()> {
        // A defect of the core that unwinds would free memory that an operation still uses.
        let bomb = AbortOnUnwind;
        // SAFETY: the counter lives; the caller's promise.
        let waited =
            self.enter().and_then(|mut held| unsafe { progress::waitcntr(&mut held, cntr as usize, 1) });
        if waited.is_err() {
            // The context is being ended by another thread. Until that is done, data
            // may still arrive.
            // SAFETY: the counter lives until this returns, by the promise of the caller.
            let cntr = unsafe { value(cntr) };
            while !self.ended.load(Ordering::Acquire) && cntr.load(Ordering::Acquire) < 1 && self.is_own() {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        self.list(|list| list.remove(&(cntr as usize)));
        std::mem::forget(bomb);
        if waited? >= LOST - 1 { Err(lost(task)) } else { Ok(()) }
    }

    /// The core has reported a loss of the task: it has ended all operations of then, and those
    /// that threads wait for end with an error. Another thread may have resumed the task since,
    /// which has done the same.
    pub(crate) fn lose(&self, task: u32) {
        // A context that has ended has no operations.
        let Ok(mut held) = self.enter() else { return };
        let Ok(life) = self.life(task) else { return };
        if recovery::is_lost(&mut held, task) == Ok(true) {
            self.end_awaited(task, life);
        }
        drop(held);
        self.wake();
    }

    /// Ends the waits for the operations with a task of this life of it and of earlier ones. The
    /// core must have ended those, and the context's lock be held since.
    fn end_awaited(&self, task: u32, life: u32) {
        self.list(|list| {
            let ended = |awaited: &Awaited| awaited.task == task && awaited.life <= life;
            for (cntr, _) in list.iter().filter(|(_, awaited)| ended(awaited)) {
                // SAFETY: it lives as long as it is in the list.
                unsafe { value(*cntr as *mut lapi_cntr_t) }.store(LOST, Ordering::Release);
            }
        });
    }

    /// Wakes the threads that wait, without the list: this makes progress, in which another task
    /// may be found lost.
    fn wake(&self) {
        let mut any = lapi_cntr_t::new(0);
        // SAFETY: it lives during the call.
        unsafe { progress::setcntr(&self.context, (&raw mut any) as usize, 0) };
    }

    fn list<R>(&self, change: impl FnOnce(&mut AwaitedList) -> R) -> Option<R> {
        let mut list = self.awaited.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        Some(change(&mut list))
    }

    pub(crate) fn handler(&self, index: usize) -> Option<&(dyn Any + Send + Sync)> {
        self.handlers.get(index)?.get().map(|handler| &**handler)
    }

    /// Sets the header handler of an index, once.
    pub(crate) fn set_handler(
        &self,
        index: u16,
        handler: Box<dyn Any + Send + Sync>,
        trampoline: hdr_hndlr_t,
    ) -> Result<()> {
        let index = usize::from(index);
        if !(1..HANDLERS).contains(&index) {
            let detail = format!("index {index}; indices are 1 to {}", HANDLERS - 1);
            return Err(Error::new(LAPI_ERR_ADDR_HNDL_RANGE, detail));
        }
        self.handlers[index].set(handler).map_err(|_| {
            Error::new(LAPI_ERR_ADDR_HNDL_RANGE, format!("index {index} has a handler already"))
        })?;
        self.enter()?.register_function(index as i32, trampoline as usize)
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("task", &self.task())
            .field("tasks", &self.tasks())
            .finish_non_exhaustive()
    }
}

/// An attribute of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)] // the manual's names, which lapi(7) explains
pub enum Attribute {
    TaskId = TASK_ID,
    NumTasks = NUM_TASKS,
    MaxUserHeader = MAX_UHDR_SZ,
    MaxData = MAX_DATA_SZ,
    ErrorCheck = ERROR_CHK,
    Timeout = TIMEOUT,
    InterruptSet = INTERRUPT_SET,
    MaxPorts = MAX_PORTS,
    MaxPacket = MAX_PKT_SZ,
    CopyLimit = BUF_CP_SIZE,
    AckThreshold = ACK_THRESHOLD,
    SharedMemoryTasks = QUERY_SHM_NUM_TASKS,
    BulkTransfer = BULK_XFER,
    BulkMinimum = BULK_MIN_MSG_SIZE,
}

/// The value of a counter, which the core changes atomically.
///
/// # Safety
/// It must live as long as the result is used.
unsafe fn value<'a>(cntr: *mut lapi_cntr_t) -> &'a AtomicI32 {
    // SAFETY: the value is the counter's first field; the caller's promise.
    unsafe { AtomicI32::from_ptr(cntr.cast()) }
}

struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

#[cold]
fn no_task(task: u32, tasks: u32) -> Error {
    Error::new(LAPI_ERR_TGT, format!("task {task}; the job has the tasks 0 to {}", tasks - 1))
}

fn lost(task: u32) -> Error {
    Error::new(LAPI_ERR_NO_CONNECTIVITY, format!("task {task} is lost, or was purged"))
}

/// The error of a window or counter that was made before a purge of the task.
#[cold]
pub(crate) fn purged(task: u32) -> Error {
    Error::new(LAPI_ERR_TGT_PURGED, format!("task {task} was purged since this window or counter was made"))
}

#[cfg(test)]
mod tests;
