//! Counters of Python.

use crate::cell::Cell;
use crate::error::check;
use crate::interrupt::detached;
use crate::port::Port;
use openlapi::abi::{LAPI_SUCCESS, lapi_cntr_t};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// A counter: LAPI increments it when a part of an operation has ended.
///
/// Made by Context.counter. As `origin_counter` of an operation it is incremented when the buffer
/// may be used again (of a get: when the data is there), as `completion_counter` when the data is
/// in place at the target, and as `target_counter` the counter of the target is incremented when
/// the data is in place there.
#[pyclass(frozen, module = "openlapi")]
pub struct Counter {
    port: Arc<Port>,
    cell: Arc<Cell>,
    /// The address of it in each task; none when it was not shared.
    addresses: Vec<u64>,
}

impl Counter {
    /// A new counter; `shared`: all tasks make it together.
    pub fn new(py: Python<'_>, port: &Arc<Port>, shared: bool) -> PyResult<Self> {
        let cell = Arc::new(Cell::new());
        // The library and other tasks may increment it after Python has dropped it.
        let keep = || port.keep(cell.clone(), shared);
        let addresses = if shared {
            port.collective(py, "a shared counter", |step| {
                // Whatever becomes of the exchange here, other tasks may have the address.
                keep();
                step.exchange(cell.address() as u64)
            })?
        } else {
            keep();
            Vec::new()
        };
        Ok(Self { port: port.clone(), cell, addresses })
    }

    /// The counter's memory, for an operation of this context that increments it.
    pub fn cell(&self, port: &Arc<Port>, what: &str) -> PyResult<&Arc<Cell>> {
        port.same(&self.port, what)?;
        Ok(&self.cell)
    }

    /// As the origin counter of an operation.
    pub fn as_origin(&self, port: &Arc<Port>) -> PyResult<&Arc<Cell>> {
        if !self.addresses.is_empty() {
            return Err(PyValueError::new_err(
                "origin_counter: a shared counter also counts what arrives, so that it does not show when a buffer is free; use a \
                 counter of this task: Context.counter()",
            ));
        }
        self.cell(port, "origin_counter")
    }

    /// The address of the target's counter.
    pub fn of_target(&self, port: &Arc<Port>, target: u32) -> PyResult<usize> {
        if self.addresses.is_empty() {
            return Err(PyValueError::new_err(
                "target_counter: this counter is known to this task alone; make it by Context.counter(shared=True) in all tasks",
            ));
        }
        self.cell(port, "target_counter")?;
        Ok(self.addresses[target as usize] as usize)
    }
}

#[pymethods]
impl Counter {
    /// The value now.
    #[getter]
    fn value(&self) -> i32 {
        self.cell.release();
        self.cell.value()
    }

    /// Whether all tasks made it together, so that it can be a target_counter.
    #[getter]
    fn shared(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// Waits until the value is at least `value`, and subtracts that. Returns the
    /// value that is left.
    #[pyo3(signature = (value = 1))]
    fn wait(&self, py: Python<'_>, value: i32) -> PyResult<i32> {
        self.port.may_call("Counter.wait")?;
        if value < 0 {
            return Err(PyValueError::new_err(format!("Counter.wait: {value} is negative")));
        }
        let (handle, wait) = (self.port.handle, self.port.library.LAPI_Waitcntr);
        let at = self.cell.address();
        let mut left = 0;
        let code = detached(py, || {
            // SAFETY: the counter lives as long as `self`.
            unsafe { wait(handle, at as *mut lapi_cntr_t, value, &raw mut left) }
        });
        if code == LAPI_SUCCESS {
            self.cell.consume(value);
        }
        check(code, "Counter.wait")?;
        Ok(left)
    }

    /// Sets the value. No operation that increments the counter may be under way.
    fn set(&self, py: Python<'_>, value: i32) -> PyResult<()> {
        if value < 0 {
            return Err(PyValueError::new_err(format!("Counter.set: {value} is negative")));
        }
        if !self.cell.begin_to_set(value) {
            return Err(PyValueError::new_err(
                "Counter.set: operations that increment the counter are under way, or another thread sets it; wait for them first",
            ));
        }
        let (handle, set) = (self.port.handle, self.port.library.LAPI_Setcntr);
        let at = self.cell.address();
        // SAFETY: the counter lives as long as `self`.
        let code = detached(py, || unsafe { set(handle, at as *mut lapi_cntr_t, value) });
        self.cell.end_to_set();
        check(code, "Counter.set")
    }

    fn __repr__(&self) -> String {
        let shared = if self.shared() { ", shared" } else { "" };
        format!("<openlapi.Counter {}{shared}>", self.cell.value())
    }
}
