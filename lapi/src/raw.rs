//! Puts and gets by address: for memory that tasks in C or Fortran have, or that is no window.

use crate::port::{Port, Until};
use crate::window::{get_command, put_command};
use bytemuck::Pod;
use openlapi::api::put_get;
use openlapi::error::Result;
use openlapi_runtime::request;

impl Port {
    /// Copies `data` to an address of `task` (LAPI_Put). Returns when `data` may be changed; it is
    /// in place after a fence. Tasks tell each other their addresses by [`Self::exchange`], also
    /// those in C.
    ///
    /// # Errors
    /// The errors of [`Window::put`](crate::Window::put).
    ///
    /// # Safety
    /// From this address on that task has memory for the data, which nothing else accesses until
    /// the data is in place.
    pub unsafe fn put_at<T: Pod>(&self, task: u32, address: u64, data: &[T]) -> Result<()> {
        // SAFETY: `data` is borrowed until `perform` returns; the caller's promise.
        unsafe {
            self.perform(task, Until::Reusable, |held, counters| {
                put_get::put(held, &request::put(&put_command(task, address, data, counters, 0)))
            })
        }
    }

    /// Copies what is at an address of `task` to `into` (LAPI_Get). Returns when it is there.
    ///
    /// # Errors
    /// The errors of [`Window::put`](crate::Window::put).
    ///
    /// # Safety
    /// From this address on that task has so much initialized memory, which nothing writes to
    /// until this returns.
    pub unsafe fn get_at<T: Pod>(&self, task: u32, address: u64, into: &mut [T]) -> Result<()> {
        // SAFETY: `into` is borrowed until `perform` returns, and any bytes are a `T`; the
        // caller's promise.
        unsafe {
            self.perform(task, Until::Reusable, |held, counters| {
                put_get::get(held, &request::get(&get_command(task, address, into, counters)))
            })
        }
    }
}
