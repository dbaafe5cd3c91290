//! The memory of a counter, and the buffers that operations with it still use.

use crate::buffer::Buffer;
use openlapi::abi::lapi_cntr_t;
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

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
    held: Mutex<Vec<Held>>,
    /// The address of it in each task; none when it was not shared.
    pub addresses: Vec<u64>,
}

impl Cell {
    /// A counter that is 0, of this task alone.
    pub fn new() -> Self {
        Self {
            counter: Box::new(lapi_cntr_t::new(0)),
            expected: AtomicU64::new(0),
            consumed: AtomicU64::new(0),
            held: Mutex::default(),
            addresses: Vec::new(),
        }
    }

    /// Where LAPI finds it.
    pub fn address(&self) -> usize {
        ptr::from_ref(&*self.counter) as usize
    }

    /// The value now.
    pub fn value(&self) -> i32 {
        // SAFETY: the value is at the beginning of the counter; LAPI changes it atomically, and programs may read it.
        unsafe { AtomicI32::from_ptr(self.address() as *mut c_int) }.load(Ordering::Acquire)
    }

    /// An operation that increments it once is about to start.
    pub fn expect(&self) {
        self.expected.fetch_add(1, Ordering::SeqCst);
    }

    /// That operation did not start.
    pub fn expect_less(&self) {
        self.expected.fetch_sub(1, Ordering::SeqCst);
    }

    /// Keeps what an operation uses.
    pub fn hold(&self, held: Held) {
        self.list(|list| list.push(held));
        self.release();
    }

    /// Whether every operation of this task has incremented it. What was consumed is read first: a wait in between makes the sum too
    /// small, never too large.
    pub fn is_quiet(&self) -> bool {
        let consumed = self.consumed.load(Ordering::SeqCst);
        consumed + u64::from(self.value().cast_unsigned()) >= self.expected.load(Ordering::SeqCst)
    }

    /// A wait has subtracted this much.
    pub fn consume(&self, value: i32) {
        self.consumed.fetch_add(u64::from(value.cast_unsigned()), Ordering::SeqCst);
        self.release();
    }

    /// The program has set the value, while no operation was under way: counted from there.
    pub fn restart(&self, value: i32) {
        self.consumed.store(0, Ordering::SeqCst);
        self.expected.store(u64::from(value.cast_unsigned()), Ordering::SeqCst);
    }

    /// Releases what no operation uses any more.
    pub fn release(&self) {
        // Taken out first: to release a buffer may run Python code, which may use this counter.
        let unused = self.list(|list| if self.is_quiet() { std::mem::take(list) } else { Vec::new() });
        drop(unused);
    }

    fn list<R>(&self, change: impl FnOnce(&mut Vec<Held>) -> R) -> R {
        change(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
