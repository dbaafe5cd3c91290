//! Remote atomics: LAPI_Rmw and LAPI_Rmw64 on the elements of a window.

use crate::port::{Port, Until};
use crate::window::Window;
use bytemuck::Pod;
use openlapi::abi::*;
use openlapi::api::{Held, rmw};
use openlapi::error::Result;
use openlapi_runtime::request;

/// A number that LAPI changes atomically.
pub trait Atomic: Pod + Send + Sync + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! atomics {
    ($($type:ty),*) => { $(impl sealed::Sealed for $type {} impl Atomic for $type {})* };
}
atomics!(i32, u32, i64, u64);

/// What an atomic operation does with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// Adds, with wrap-around.
    Add = FETCH_AND_ADD,
    /// Sets bits.
    Or = FETCH_AND_OR,
    /// Replaces it.
    Swap = SWAP,
    /// Replaces it if it has a certain value.
    CompareAndSwap = COMPARE_AND_SWAP,
}

impl<T: Atomic> Window<T> {
    /// Adds `value` to an element at `task`, with wrap-around; returns what it was before.
    ///
    /// # Errors
    /// The errors of [`Window::put`].
    pub fn fetch_add(&self, task: u32, at: usize, value: T) -> Result<T> {
        self.change(Operation::Add, task, at, [value, value])
    }

    /// Sets the bits of `value` in an element at `task`; returns what it was before.
    ///
    /// # Errors
    /// The errors of [`Window::put`].
    pub fn fetch_or(&self, task: u32, at: usize, value: T) -> Result<T> {
        self.change(Operation::Or, task, at, [value, value])
    }

    /// Sets an element at `task`; returns what it was before.
    ///
    /// # Errors
    /// The errors of [`Window::put`].
    pub fn swap(&self, task: u32, at: usize, value: T) -> Result<T> {
        self.change(Operation::Swap, task, at, [value, value])
    }

    /// Sets an element at `task` to `new` if it is `current`; returns whether it was. LAPI does not
    /// tell what it was otherwise.
    ///
    /// # Errors
    /// The errors of [`Window::put`].
    pub fn compare_and_swap(&self, task: u32, at: usize, current: T, new: T) -> Result<bool> {
        let swapped = self.change(Operation::CompareAndSwap, task, at, [current, new])?;
        Ok(bytemuck::bytes_of(&swapped).iter().any(|&byte| byte != 0))
    }

    fn change(&self, operation: Operation, task: u32, at: usize, values: [T; 2]) -> Result<T> {
        let remote = self.place(task, at, 1)?;
        // SAFETY: the variable is an element of the target's window.
        unsafe { self.port().change_if(operation, task, remote, values, |held| self.check_life(held, task)) }
    }
}

impl Port {
    /// Changes a number at an address of `task` atomically, and returns what it was before; of a
    /// compare-and-swap 1 or 0, which says whether it was `values[0]` and is now `values[1]`. The
    /// others use `values[0]` alone.
    ///
    /// # Errors
    /// The errors of [`Window::put`].
    ///
    /// # Safety
    /// At this address that task has a number of this type, aligned to its size, which stays there
    /// until this returns.
    pub unsafe fn change_at<T: Atomic>(
        &self,
        operation: Operation,
        task: u32,
        address: u64,
        values: [T; 2],
    ) -> Result<T> {
        // SAFETY: the caller's promise.
        unsafe { self.change_if(operation, task, address, values, |_| Ok(())) }
    }

    /// [`Self::change_at`], unless a check with the lock held refuses it.
    ///
    /// # Safety
    /// The conditions of [`Self::change_at`] hold when the check allows it.
    unsafe fn change_if<T: Atomic>(
        &self,
        operation: Operation,
        task: u32,
        address: u64,
        mut values: [T; 2],
        check: impl FnOnce(&Held<'_>) -> Result<()>,
    ) -> Result<T> {
        let mut previous = T::zeroed();
        let to = &raw mut previous;
        // SAFETY: the values and the previous one live until `perform` returns; the
        // caller's promise.
        unsafe {
            self.perform(task, Until::Reusable, |held, counters| {
                check(held)?;
                let command = lapi_rmw_t {
                    Xfer_type: LAPI_RMW_XFER,
                    op: operation as RMW_ops_t,
                    tgt: task,
                    size: 8 * size_of::<T>() as u32,
                    tgt_var: address,
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
