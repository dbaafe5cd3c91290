//! The memory of a counter, and the buffers that operations with it still use.

use crate::buffer::Buffer;
use openlapi::abi::lapi_cntr_t;
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What an operation uses until its origin counter is incremented.
pub struct Held {
    /// Memory of Python's objects.
    pub buffers: Vec<Buffer>,
    /// The header of a message.
    pub header: Box<[u8]>,
}

/// A counter of LAPI, in memory that does not move.
pub struct Cell {
    counter: Box<lapi_cntr_t>,
    /// How often operations of this task will increment it.
    expected: AtomicU64,
    /// How much waits have subtracted from it.
    consumed: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: Vec<Held>,
    /// The program sets the value: no operation may start that counts from the old one, and whose
    /// buffers would be released then.
    is_set: bool,
}

impl Cell {
    /// A counter that is 0, of this task alone.
    pub fn new() -> Self {
        Self {
            counter: Box::new(lapi_cntr_t::new(0)),
            expected: AtomicU64::new(0),
            consumed: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// Where LAPI finds it.
    pub fn address(&self) -> usize {
        ptr::from_ref(&*self.counter) as usize
    }

    /// The value now.
    pub fn value(&self) -> i32 {
        // SAFETY: the value is at the beginning of the counter; LAPI changes it atomically, and
        // programs may read it.
        unsafe { AtomicI32::from_ptr(self.address() as *mut c_int) }.load(Ordering::Acquire)
    }

    /// An operation that increments it once is about to start; `false`: it may not, because the
    /// value is being set.
    #[must_use]
    pub fn expect(&self) -> bool {
        let state = self.state();
        if !state.is_set {
            self.expected.fetch_add(1, Ordering::SeqCst);
        }
        !state.is_set
    }

    /// Takes back an [`Self::expect`]: the operation did not start.
    pub fn expect_less(&self) {
        self.expected.fetch_sub(1, Ordering::SeqCst);
    }

    /// Keeps what an operation uses.
    pub fn hold(&self, held: Held) {
        self.state().held.push(held);
        self.release();
    }

    /// Whether every operation of this task has incremented it. What was consumed is read first: a
    /// wait in between makes the sum too small, never too large.
    pub fn is_quiet(&self) -> bool {
        let consumed = self.consumed.load(Ordering::SeqCst);
        consumed + u64::from(self.value().cast_unsigned()) >= self.expected.load(Ordering::SeqCst)
    }

    /// A wait has subtracted this much.
    pub fn consume(&self, value: i32) {
        self.consumed.fetch_add(u64::from(value.cast_unsigned()), Ordering::SeqCst);
        self.release();
    }

    /// The program is about to set the value: counted from there. `false`: operations are under
    /// way, or another thread sets it.
    #[must_use]
    pub fn begin_to_set(&self, value: i32) -> bool {
        let unused = {
            let mut state = self.state();
            if state.is_set || !self.is_quiet() {
                return false;
            }
            state.is_set = true;
            self.consumed.store(0, Ordering::SeqCst);
            self.expected.store(u64::from(value.cast_unsigned()), Ordering::SeqCst);
            std::mem::take(&mut state.held)
        };
        drop(unused);
        true
    }

    /// The value is set: operations may start again.
    pub fn end_to_set(&self) {
        self.state().is_set = false;
    }

    /// Releases what no operation uses any more.
    pub fn release(&self) {
        // Taken out first: to release a buffer may run Python code, which may use this counter.
        let unused = {
            let mut state = self.state();
            // While the value is being set it says nothing.
            if !state.is_set && self.is_quiet() { std::mem::take(&mut state.held) } else { Vec::new() }
        };
        drop(unused);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
