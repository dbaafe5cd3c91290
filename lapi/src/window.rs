//! Windows: memory that other tasks read and write.

use crate::cells;
use crate::counter::TargetCounter;
use crate::owned::{drop_owned, into_raw, kept_if_started};
use crate::port::{CollectiveKind, Counters, Port, Until, purged};
use bytemuck::Pod;
use openlapi::abi::*;
use openlapi::api::{Held, put_get};
use openlapi::error::{Error, Result};
use openlapi_runtime::request;
use std::alloc::{self, Layout};
use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Memory of each task that every task can put into and get from.
///
/// Other tasks may write into it at any time, so that there is no reference to its elements: they
/// are copied in and out by atomic accesses, and any bytes are a value of their type.
/// [`Window::exclusive`] gives a slice while no task accesses the window.
///
/// Dropping a window keeps its memory for the rest of the process, because another task may still
/// write there; [`Window::free`] returns it, which all tasks do together.
pub struct Window<T: Pod + Send + Sync> {
    port: Arc<Port>,
    base: NonNull<T>,
    len: usize,
    number: u64,
    remote: Box<[Remote]>,
    /// An exclusive access has begun, and not ended.
    exclusive: bool,
}

/// The window of one task.
struct Remote {
    address: u64,
    len: u64,
    /// Which life of the task it was: a process that takes its place has other memory there.
    life: u32,
}

// SAFETY: the memory is accessed by atomic copies of plain data and by the core, which may be done
// by any thread.
unsafe impl<T: Pod + Send + Sync> Send for Window<T> {}
// SAFETY: shared references give nothing that [`Send`] does not: the accesses are atomic copies.
unsafe impl<T: Pod + Send + Sync> Sync for Window<T> {}

impl<T: Pod + Send + Sync> Window<T> {
    /// Makes a window of `len` zeroed elements at this task. All tasks call this, each with
    /// its own length.
    ///
    /// # Errors
    /// `LAPI_ERR_UNKNOWN`: called in a header handler, or another task makes another collective
    /// call, or a window of another type. `LAPI_ERR_MEMORY_EXHAUSTED`, in all tasks: one of them
    /// has no memory for its elements.
    pub fn new(port: &Arc<Port>, len: usize) -> Result<Self> {
        let memory = allocate::<T>(len);
        let known = Cell::new(false);
        let made = port.collectively(CollectiveKind::Window, size_of::<T>() as u64, |step| {
            // Before the others' addresses: what is purged after this is refused.
            let lives = port.lives();
            let number = step.number()?;
            known.set(true);
            let addresses = step.exchange(memory.as_ref().map_or(0, |base| base.as_ptr() as u64))?;
            let lengths = step.exchange(len as u64)?;
            Ok((number, addresses, lengths, lives))
        });
        let without = made.as_ref().ok().and_then(|(_, addresses, lengths, _)| {
            let task = addresses.iter().position(|address| *address == 0)?;
            Some(no_memory(&format!(" of task {task}"), lengths[task]))
        });
        match (memory, made, without) {
            (Ok(base), Ok((number, addresses, lengths, lives)), None) => {
                let remote = addresses.into_iter().zip(lengths).zip(lives);
                let remote = remote.map(|((address, len), life)| Remote { address, len, life }).collect();
                Ok(Self { port: port.clone(), base, len, number, remote, exclusive: false })
            }
            (memory, made, without) => {
                // Where the others may have learnt of the memory, they know that one of them has
                // none, or it is kept.
                if let Ok(base) = memory
                    && (without.is_some() || !known.get())
                {
                    // SAFETY: from `allocate`, and no task accesses it.
                    unsafe { release(base, len) };
                }
                Err(without.or(made.err()).unwrap_or_else(|| no_memory("", len as u64)))
            }
        }
    }

    /// The number of elements at this task.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether this task has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of elements at a task.
    ///
    /// # Errors
    /// `LAPI_ERR_TGT`: the job has no such task.
    pub fn len_at(&self, task: u32) -> Result<usize> {
        self.port.life(task)?;
        Ok(self.remote[task as usize].len as usize)
    }

    /// The element at `index` of this task.
    ///
    /// # Panics
    /// If there is no such element.
    #[track_caller]
    pub fn read(&self, index: usize) -> T {
        assert!(index < self.len, "element {index} of a window of {}", self.len);
        // SAFETY: within the memory, which is aligned; any bytes are a `T`.
        unsafe { cells::load(self.base.as_ptr().add(index)) }
    }

    /// Sets the element at `index` of this task.
    ///
    /// # Panics
    /// If there is no such element.
    #[track_caller]
    pub fn write(&self, index: usize, value: T) {
        assert!(index < self.len, "element {index} of a window of {}", self.len);
        // SAFETY: within the memory, which is aligned.
        unsafe { cells::store(self.base.as_ptr().add(index), value) }
    }

    /// Copies elements of this task out.
    ///
    /// # Panics
    /// If the range is not within the window.
    #[track_caller]
    pub fn to_vec(&self, range: Range<usize>) -> Vec<T> {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "elements {range:?} of a window of {}",
            self.len
        );
        range.map(|index| self.read(index)).collect()
    }

    /// Copies elements into the window of this task, from `at` on.
    ///
    /// # Panics
    /// If they are not within the window.
    #[track_caller]
    pub fn fill(&self, at: usize, values: &[T]) {
        assert!(
            at.checked_add(values.len()).is_some_and(|end| end <= self.len),
            "{} elements from {at} on, of a window of {}",
            values.len(),
            self.len
        );
        (at..).zip(values).for_each(|(index, value)| self.write(index, *value));
    }

    /// Copies `data` to the window of `task`, from element `at` on (LAPI_Put). Returns when
    /// `data` may be changed; it is in place after a fence, or when [`Self::put_complete`]
    /// is used instead.
    ///
    /// # Errors
    /// `LAPI_ERR_TGT`, `LAPI_ERR_OFFSET_LEN`: no such task, or fewer elements there.
    /// `LAPI_ERR_TGT_PURGED`: the task was purged since the window was made.
    /// `LAPI_ERR_NO_CONNECTIVITY`: it is lost. `LAPI_ERR_UNKNOWN`: called in a header handler,
    /// which may use [`Self::put_owned`].
    #[inline]
    pub fn put(&self, task: u32, at: usize, data: &[T]) -> Result<()> {
        self.put_until(task, at, data, Until::Reusable, None)
    }

    /// Puts as [`Self::put`] does, and returns when the data is in place.
    ///
    /// # Errors
    /// The errors of [`Self::put`].
    pub fn put_complete(&self, task: u32, at: usize, data: &[T]) -> Result<()> {
        self.put_until(task, at, data, Until::Complete, None)
    }

    /// Puts as [`Self::put`] does; when the data is in place, the counter of the target
    /// is incremented.
    ///
    /// # Errors
    /// The errors of [`Self::put`]. `LAPI_ERR_HNDL_INVALID`: the counter belongs to
    /// another context.
    pub fn put_notify(&self, task: u32, at: usize, data: &[T], counter: &TargetCounter) -> Result<()> {
        self.put_until(task, at, data, Until::Reusable, Some(counter))
    }

    fn put_until(
        &self,
        task: u32,
        at: usize,
        data: &[T],
        until: Until,
        counter: Option<&TargetCounter>,
    ) -> Result<()> {
        let remote = self.place(task, at, data.len())?;
        let counter = self.counter(task, counter)?;
        // SAFETY: `data` is borrowed until `perform` returns, and the place is within the
        // target's window.
        unsafe {
            self.port.perform(task, until, |held, counters| {
                self.check_life(held, task)?;
                put_get::put(held, &request::put(&put_command(task, remote, data, counters, counter)))
            })
        }
    }

    /// Puts as [`Self::put`] does data that is given away, so that the call does not wait: header
    /// handlers may use it.
    ///
    /// # Errors
    /// The errors of [`Self::put`].
    pub fn put_owned(&self, task: u32, at: usize, data: Vec<T>) -> Result<()> {
        let remote = self.place(task, at, data.len())?;
        let mut held = self.port.enter()?;
        self.check_life(&held, task)?;
        let none = Counters { origin: ptr::null_mut(), completion: ptr::null_mut() };
        let mut command = put_command(task, remote, &data, none, 0);
        command.shdlr = Some(drop_owned);
        command.sinfo = into_raw(data);
        // SAFETY: the data lives until the send completion handler has run, or for ever if it never
        // does. A put that was refused is not under way.
        unsafe { kept_if_started(put_get::put(&mut held, &request::put(&command)), command.sinfo) }
    }

    /// Copies elements of the window of `task`, from `at` on, to `into` (LAPI_Get). Returns when
    /// they are there.
    ///
    /// # Errors
    /// The errors of [`Self::put`].
    #[inline]
    pub fn get(&self, task: u32, at: usize, into: &mut [T]) -> Result<()> {
        let remote = self.place(task, at, into.len())?;
        // SAFETY: `into` is borrowed until `perform` returns, any bytes are a `T`, and the place is
        // within the target's window.
        unsafe {
            self.port.perform(task, Until::Reusable, |held, counters| {
                self.check_life(held, task)?;
                put_get::get(held, &request::get(&get_command(task, remote, into, counters)))
            })
        }
    }

    /// One element of the window of `task`.
    ///
    /// # Errors
    /// The errors of [`Self::put`].
    pub fn get_one(&self, task: u32, at: usize) -> Result<T> {
        let mut value = T::zeroed();
        self.get(task, at, std::slice::from_mut(&mut value))?;
        Ok(value)
    }

    /// Calls `access` with this task's memory while no task accesses the window. All tasks call
    /// this; it begins and ends with a fence of all tasks.
    ///
    /// # Errors
    /// `LAPI_ERR_UNKNOWN`: called in a header handler, or another task makes another collective
    /// call. When it has failed, or `access` has panicked, this task can no longer use the window:
    /// others may be in their access.
    pub fn exclusive<R>(&mut self, access: impl FnOnce(&mut [T]) -> R) -> Result<R> {
        self.check_usable()?;
        let (port, number) = (self.port.clone(), self.number);
        self.exclusive = true;
        // Every task has begun and borrows its window mutably, and after the fence nothing that was
        // sent before is under way.
        port.collectively(CollectiveKind::Begin, number, |step| step.gfence())?;
        // SAFETY: zeroed or written by tasks, within the memory; no other access exists until all
        // tasks have reached the end.
        let result = access(unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) });
        port.collectively(CollectiveKind::End, number, |_| Ok(()))?;
        self.exclusive = false;
        Ok(result)
    }

    /// Returns the memory. All tasks call this.
    ///
    /// # Errors
    /// `LAPI_ERR_UNKNOWN`: called in a header handler, or another task makes another collective
    /// call; the memory is kept then.
    pub fn free(self) -> Result<()> {
        self.check_usable()?;
        self.port.collectively(CollectiveKind::Free, self.number, |step| step.gfence())?;
        // SAFETY: from `allocate`. Every task has given its window away, and nothing is under way.
        unsafe { release(self.base, self.len) };
        Ok(())
    }

    /// This task's memory.
    ///
    /// # Safety
    /// No task, this one included, may write to the window while the slice is used.
    pub unsafe fn as_slice(&self) -> &[T] {
        // SAFETY: within the memory, any bytes are a `T`; the caller's promise.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }

    fn check_usable(&self) -> Result<()> {
        if self.exclusive {
            let detail =
                "an exclusive access to this window has not ended; the window cannot be used any more";
            return Err(Error::new(LAPI_ERR_UNKNOWN, detail));
        }
        Ok(())
    }

    pub(crate) fn port(&self) -> &Arc<Port> {
        &self.port
    }

    /// Refuses an operation if `task` was purged after [`Self::place`] has looked.
    #[inline]
    pub(crate) fn check_life(&self, held: &Held<'_>, task: u32) -> Result<()> {
        self.port.check_life(held, task, self.remote[task as usize].life)
    }

    /// The address of a counter at `task`, 0 for none. To be called after [`Self::place`], so that
    /// both are of one life of the task.
    pub(crate) fn counter(&self, task: u32, counter: Option<&TargetCounter>) -> Result<u64> {
        counter.map_or(Ok(0), |counter| counter.address(&self.port, task))
    }

    /// The address of `len` elements at `task`.
    #[inline]
    pub(crate) fn place(&self, task: u32, at: usize, len: usize) -> Result<u64> {
        self.check_usable()?;
        let life = self.port.life(task)?;
        let remote = &self.remote[task as usize];
        if life != remote.life {
            return Err(purged(task));
        }
        let (from, count) = (at as u64, len as u64);
        if from.checked_add(count).is_none_or(|end| end > remote.len) {
            let detail = format!("{len} elements from {at} on; the window of task {task} has {}", remote.len);
            return Err(Error::new(LAPI_ERR_OFFSET_LEN, detail));
        }
        Ok(remote.address + from * size_of::<T>() as u64)
    }
}

impl<T: Pod + Send + Sync> fmt::Debug for Window<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("number", &self.number).field("len", &self.len).finish_non_exhaustive()
    }
}

pub(crate) fn put_command<T>(
    task: u32,
    remote: u64,
    data: &[T],
    counters: Counters,
    counter: u64,
) -> lapi_put_t {
    lapi_put_t {
        Xfer_type: LAPI_PUT_XFER,
        flags: 0,
        tgt: task,
        pad: 0,
        tgt_addr: remote,
        org_addr: data.as_ptr().cast_mut().cast(),
        len: size_of_val(data) as _,
        shdlr: None,
        sinfo: ptr::null_mut(),
        tgt_cntr: counter,
        org_cntr: counters.origin,
        cmpl_cntr: counters.completion,
    }
}

pub(crate) fn get_command<T>(task: u32, remote: u64, into: &mut [T], counters: Counters) -> lapi_get_t {
    lapi_get_t {
        Xfer_type: LAPI_GET_XFER,
        flags: 0,
        tgt: task,
        pad: 0,
        tgt_addr: remote,
        org_addr: into.as_mut_ptr().cast(),
        len: size_of_val(into) as _,
        tgt_cntr: 0,
        org_cntr: counters.origin,
        chndlr: None,
        cinfo: ptr::null_mut(),
    }
}

fn layout<T>(len: usize) -> Option<Layout> {
    Layout::array::<T>(len).ok()?.align_to(64).ok()
}

fn no_memory(of: &str, len: u64) -> Error {
    Error::new(LAPI_ERR_MEMORY_EXHAUSTED, format!("a window{of} of {len} elements"))
}

fn allocate<T: Pod>(len: usize) -> Result<NonNull<T>> {
    let exhausted = || no_memory("", len as u64);
    let layout = layout::<T>(len).ok_or_else(exhausted)?;
    if layout.size() == 0 {
        return Ok(NonNull::dangling());
    }
    // SAFETY: the size is not 0.
    NonNull::new(unsafe { alloc::alloc_zeroed(layout) }.cast()).ok_or_else(exhausted)
}

/// Returns the memory of a window.
///
/// # Safety
/// It must be from [`allocate`] with this length, and no task may access it.
unsafe fn release<T>(base: NonNull<T>, len: usize) {
    if let Some(layout) = layout::<T>(len).filter(|layout| layout.size() != 0) {
        // SAFETY: the caller's promise.
        unsafe { alloc::dealloc(base.as_ptr().cast(), layout) };
    }
}
