//! Remote atomics: LAPI_Rmw and LAPI_Rmw64 on the elements of a window.

use crate::port::Until;
use crate::window::Window;
use bytemuck::Pod;
use openlapi::abi::*;
use openlapi::api::{request, rmw};
use openlapi::error::Result;

/// A number that LAPI changes atomically.
pub trait Atomic: Pod + Send + Sync + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! atomics {
    ($($type:ty),*) => { $(impl sealed::Sealed for $type {} impl Atomic for $type {})* };
}
atomics!(i32, u32, i64, u64);

impl<T: Atomic> Window<T> {
    /// Adds `value` to an element at `task`, with wrap-around; returns what it was before.
    ///
    /// # Errors
    /// As [`Window::put`].
    pub fn fetch_add(&self, task: u32, at: usize, value: T) -> Result<T> {
        self.read_modify_write(FETCH_AND_ADD, task, at, [value, value])
    }

    /// Sets the bits of `value` in an element at `task`; returns what it was before.
    ///
    /// # Errors
    /// As [`Window::put`].
    pub fn fetch_or(&self, task: u32, at: usize, value: T) -> Result<T> {
        self.read_modify_write(FETCH_AND_OR, task, at, [value, value])
    }

    /// Sets an element at `task`; returns what it was before.
    ///
    /// # Errors
    /// As [`Window::put`].
    pub fn swap(&self, task: u32, at: usize, value: T) -> Result<T> {
        self.read_modify_write(SWAP, task, at, [value, value])
    }

    /// Sets an element at `task` to `new` if it is `current`; returns whether it was. LAPI does not tell what it was otherwise.
    ///
    /// # Errors
    /// As [`Window::put`].
    pub fn compare_and_swap(&self, task: u32, at: usize, current: T, new: T) -> Result<bool> {
        let swapped = self.read_modify_write(COMPARE_AND_SWAP, task, at, [current, new])?;
        Ok(bytemuck::bytes_of(&swapped).iter().any(|&byte| byte != 0))
    }

    fn read_modify_write(&self, op: RMW_ops_t, task: u32, at: usize, mut values: [T; 2]) -> Result<T> {
        let remote = self.place(task, at, 1)?;
        let mut previous = T::zeroed();
        let to = &raw mut previous;
        // SAFETY: the values and the previous one live until `perform` returns, and the variable is an element of the target's window.
        unsafe {
            self.port().perform(task, Until::Reusable, |held, counters| {
                let command = lapi_rmw_t {
                    Xfer_type: LAPI_RMW_XFER,
                    op,
                    tgt: task,
                    size: 8 * size_of::<T>() as u32,
                    tgt_var: remote,
                    in_val: values.as_mut_ptr().cast(),
                    prev_tgt_val: to.cast(),
                    org_cntr: counters.origin,
                    shdlr: None,
                    sinfo: std::ptr::null_mut(),
                };
                rmw::rmw(held, &request::read_modify_write(&command))
            })?;
        }
        // SAFETY: written by the operation, which has ended.
        Ok(unsafe { to.read() })
    }
}
