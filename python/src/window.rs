//! Windows: memory that all tasks give to each other.

use crate::buffer::Buffer;
use crate::error::check;
use crate::interrupt::detached;
use crate::port::{Port, Refusal};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Memory of every task, in which all tasks put and get. Made by Context.window in all tasks.
#[pyclass(frozen, module = "openlapi")]
pub struct Window {
    port: Arc<Port>,
    number: usize,
    addresses: Vec<u64>,
    sizes: Vec<u64>,
    /// `free` has begun: no operation starts any more.
    freed: AtomicBool,
    /// How many calls may still start an operation: they have looked before `free` began.
    users: AtomicUsize,
}

/// A call that may start an operation with a window: `free` waits for it.
pub struct Using<'a>(&'a Window);

impl Drop for Using<'_> {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Window {
    /// All tasks give a buffer.
    pub fn new(py: Python<'_>, port: &Arc<Port>, memory: &Bound<'_, PyAny>) -> PyResult<Self> {
        let memory = Buffer::writable(memory, "window")?;
        let (number, addresses, sizes) = port.collective(py, "window", |step| {
            let (address, len) = (memory.address() as u64, memory.len() as u64);
            // Whatever becomes of the exchange here, other tasks may have the address, and use the
            // memory until the context ends.
            let number = port.keep_window(memory);
            Ok((number, step.exchange(address)?, step.exchange(len)?))
        })?;
        Ok(Self {
            port: port.clone(),
            number,
            addresses,
            sizes,
            freed: AtomicBool::new(false),
            users: AtomicUsize::new(0),
        })
    }

    /// To be called before [`Self::place`], and kept until the operation has started.
    #[inline]
    pub fn using(&self) -> Using<'_> {
        self.users.fetch_add(1, Ordering::SeqCst);
        Using(self)
    }

    /// The address of a range of bytes in a task.
    #[inline]
    pub fn place(
        &self,
        port: &Arc<Port>,
        target: u32,
        offset: i64,
        len: usize,
        what: &str,
    ) -> PyResult<usize> {
        port.same(&self.port, "window")?;
        if self.freed.load(Ordering::SeqCst) {
            return Err(PyValueError::new_err(format!("{what}: the window is freed")));
        }
        let size = self.sizes[target as usize];
        match u64::try_from(offset) {
            Ok(begin) if begin.checked_add(len as u64).is_some_and(|end| end <= size) => {
                Ok((self.addresses[target as usize] + begin) as usize)
            }
            _ => Err(PyIndexError::new_err(format!(
                "{what}: {len} bytes at offset {offset}; the window has {size} bytes in task {target}"
            ))),
        }
    }
}

#[pymethods]
impl Window {
    /// The number of bytes in each task.
    #[getter]
    fn sizes(&self) -> Vec<u64> {
        self.sizes.clone()
    }

    /// Ends the window; all tasks call it. It waits until no operation uses the memory, and
    /// gives it back.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        if self.freed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        if let Err(why) = self.end(py) {
            // All tasks have refused: none gives its memory back. After any other error this task
            // does not know what the others have done: it uses the window no more, and its memory
            // stays until the context ends.
            if matches!(why, Refusal::Disagreed(_)) {
                self.freed.store(false, Ordering::SeqCst);
            }
            return Err(why.into());
        }
        drop(self.port.free_window(self.number));
        Ok(())
    }

    fn __repr__(&self) -> String {
        let state = if self.freed.load(Ordering::Relaxed) { ", freed" } else { "" };
        format!("<openlapi.Window of {} bytes in this task{state}>", self.sizes[self.port.task as usize])
    }
}

impl Window {
    /// All tasks end this window: no thread of this one starts an operation with it any more, and
    /// all that were started are complete.
    fn end(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.port.may_call("Window.free").map_err(Refusal::Disagreed)?;
        detached(py, || {
            // Operations of other threads that have begun before; those that begin now are refused.
            while self.users.load(Ordering::SeqCst) != 0 {
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let number = self.number as u64;
        self.port.collective(py, "Window.free", |step| {
            step.agree(number, || "another task frees another window".to_owned())?;
            let (handle, gfence) = (self.port.handle, self.port.library.LAPI_Gfence);
            // SAFETY: any handle may be passed.
            check(detached(py, || unsafe { gfence(handle) }), "Window.free").map_err(Refusal::Failed)
        })
    }
}
