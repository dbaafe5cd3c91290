//! Windows: memory that all tasks give to each other.

use crate::buffer::Buffer;
use crate::error::{check, error};
use crate::port::Port;
use openlapi::abi::LAPI_ERR_UNKNOWN;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Memory of every task, in which all tasks put and get. Made by Context.window in all tasks.
#[pyclass(frozen, module = "openlapi")]
pub struct Window {
    port: Arc<Port>,
    number: usize,
    addresses: Vec<u64>,
    sizes: Vec<u64>,
    freed: AtomicBool,
}

impl Window {
    /// All tasks give a buffer.
    pub fn new(py: Python<'_>, port: &Arc<Port>, memory: &Bound<'_, PyAny>) -> PyResult<Self> {
        let memory = Buffer::writable(memory, "window")?;
        let (addresses, sizes) = port.collective(py, "window", |step| {
            Ok((step.exchange(memory.address() as u64)?, step.exchange(memory.len() as u64)?))
        })?;
        let number = port.keep_window(memory);
        Ok(Self { port: port.clone(), number, addresses, sizes, freed: AtomicBool::new(false) })
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
        if self.freed.load(Ordering::Relaxed) {
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

    /// Ends the window; all tasks call it. It waits until no operation uses the memory, and gives it back.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        if self.freed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let number = self.number as u64;
        self.port.collective(py, "Window.free", |step| {
            step.agree(number, || "another task frees another window".to_owned())
        })?;
        let (handle, gfence) = (self.port.handle, self.port.library.LAPI_Gfence);
        // SAFETY: any handle may be passed.
        check(py.detach(|| unsafe { gfence(handle) }), "Window.free")?;
        if self.freed.swap(true, Ordering::SeqCst) {
            return Err(error(LAPI_ERR_UNKNOWN, "Window.free: two threads free the window"));
        }
        drop(self.port.free_window(self.number));
        Ok(())
    }

    fn __repr__(&self) -> String {
        let state = if self.freed.load(Ordering::Relaxed) { ", freed" } else { "" };
        format!("<openlapi.Window of {} bytes in this task{state}>", self.sizes[self.port.task as usize])
    }
}
