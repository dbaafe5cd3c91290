//! Operations: from the start until their buffers may be used again, or with counters
//! of the program.

use crate::buffer::Buffer;
use crate::cell::{Cell, Held};
use crate::counter::Counter;
use crate::error::check;
use crate::interrupt::detached;
use crate::port::Port;
use crate::window::Window;
use openlapi::abi::*;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use std::cell::Cell as Place;
use std::ffi::{c_int, c_uint, c_ulong, c_void};
use std::mem;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// What a call that waits gives to LAPI: its own counter, and the result of an atomic operation.
struct Slot {
    counter: lapi_cntr_t,
    previous: i64,
}

thread_local! {
    /// The slot of this thread's calls, so that a call allocates nothing.
    static SLOT: Place<Option<Box<Slot>>> = const { Place::new(None) };
}

impl Slot {
    fn take() -> Box<Self> {
        SLOT.take().unwrap_or_else(|| Box::new(Self { counter: lapi_cntr_t::new(0), previous: 0 }))
    }

    /// Keeps the slot for the next operation: this one has ended.
    fn put_back(mut self: Box<Self>) {
        self.counter = lapi_cntr_t::new(0);
        SLOT.set(Some(self));
    }

    fn is_done(&self) -> bool {
        let at = ptr::from_ref(&self.counter).cast::<c_int>().cast_mut();
        // SAFETY: the value is at the beginning of the counter; LAPI changes it atomically.
        unsafe { AtomicI32::from_ptr(at) }.load(Ordering::Acquire) > 0
    }
}

/// The counters that the program has given to an operation.
pub struct Counters<'a> {
    pub origin: Option<&'a Arc<Cell>>,
    pub completion: Option<&'a Arc<Cell>>,
    /// The address of the target's counter, or 0.
    pub target: usize,
}

/// The counters as Python has given them.
#[derive(Clone, Copy)]
pub struct Given<'a, 'py> {
    pub target: Option<&'a Bound<'py, Counter>>,
    pub origin: Option<&'a Bound<'py, Counter>>,
    pub completion: Option<&'a Bound<'py, Counter>>,
}

impl<'a> Given<'a, '_> {
    #[inline]
    pub fn check(self, port: &Arc<Port>, target: u32) -> PyResult<Counters<'a>> {
        Ok(Counters {
            origin: self.origin.map(|counter| counter.get().as_origin(port)).transpose()?,
            completion: self
                .completion
                .map(|counter| counter.get().cell(port, "completion_counter"))
                .transpose()?,
            target: self.target.map_or(Ok(0), |counter| counter.get().of_target(port, target))?,
        })
    }
}

/// Starts an operation; without an origin counter it also waits until the operation uses no memory
/// of this task any more. `uses` is what the operation uses.
///
/// # Safety
/// `start` gets the addresses of the origin and of the completion counter. It must start an
/// operation that increments each once and uses no other memory of this task than `uses`, or return
/// an error and start none.
#[inline]
unsafe fn perform<U: Into<Held> + Send>(
    py: Python<'_>,
    port: &Arc<Port>,
    counters: &Counters<'_>,
    uses: U,
    what: &str,
    start: impl FnOnce(*mut lapi_cntr_t, *mut lapi_cntr_t) -> c_int + Send,
) -> PyResult<()> {
    let completion = counters.completion.map_or(Ok(0), |cell| expect(cell, what))?;
    let code = if let Some(origin) = counters.origin {
        let at = expect(origin, what).inspect_err(|_| {
            if let Some(cell) = counters.completion {
                cell.expect_less();
            }
        })?;
        let code = detached(py, || start(at as *mut lapi_cntr_t, completion as *mut lapi_cntr_t));
        if code == LAPI_SUCCESS {
            origin.hold(uses.into());
        } else {
            origin.expect_less();
        }
        code
    } else {
        // SAFETY: the caller's promise.
        unsafe { alone(py, port, uses, |slot| start(&raw mut slot.counter, completion as *mut lapi_cntr_t)) }
            .map_or_else(|code| code, |_previous| LAPI_SUCCESS)
    };
    if code != LAPI_SUCCESS
        && let Some(cell) = counters.completion
    {
        cell.expect_less();
    }
    check(code, what)
}

/// The address of a counter that an operation is about to increment.
fn expect(cell: &Cell, what: &str) -> PyResult<usize> {
    if cell.expect() {
        return Ok(cell.address());
    }
    Err(PyValueError::new_err(format!("{what}: another thread is in Counter.set of the counter")))
}

/// Starts an operation with the counter of a slot, and waits for it. Returns the slot's result.
///
/// # Safety
/// The conditions of [`perform`] hold; it may use the slot too.
#[inline]
unsafe fn alone<U: Send>(
    py: Python<'_>,
    port: &Port,
    uses: U,
    start: impl FnOnce(&mut Slot) -> c_int + Send,
) -> Result<i64, c_int> {
    let mut slot = Slot::take();
    let (handle, wait) = (port.handle, port.library.LAPI_Waitcntr);
    let (started, waited) = detached(py, || {
        let started = start(&mut slot);
        if started != LAPI_SUCCESS || slot.is_done() {
            return (started, LAPI_SUCCESS);
        }
        // SAFETY: the counter is in the slot, which stays where it is.
        (started, unsafe { wait(handle, &raw mut slot.counter, 1, ptr::null_mut()) })
    });
    if waited != LAPI_SUCCESS {
        // The context was closed by another thread. The operation may still use this memory: it
        // is never freed.
        mem::forget((uses, slot));
        return Err(waited);
    }
    let previous = slot.previous;
    slot.put_back();
    drop(uses);
    if started == LAPI_SUCCESS { Ok(previous) } else { Err(started) }
}

impl From<Buffer> for Held {
    fn from(buffer: Buffer) -> Self {
        Self { buffers: vec![buffer], header: Box::default() }
    }
}

impl From<Vec<Buffer>> for Held {
    fn from(buffers: Vec<Buffer>) -> Self {
        Self { buffers, header: Box::default() }
    }
}

/// A place in a window.
pub struct Remote<'a, 'py> {
    pub target: i64,
    pub window: &'a Bound<'py, Window>,
    pub offset: i64,
}

impl Remote<'_, '_> {
    /// The task, and the address of a range of bytes there.
    #[inline]
    fn place(&self, port: &Arc<Port>, offset: i64, len: usize, what: &str) -> PyResult<(u32, usize)> {
        let target = port.target(self.target, what)?;
        Ok((target, self.window.get().place(port, target, offset, len, what)?))
    }
}

/// LAPI_Put.
#[inline]
pub fn put(
    port: &Arc<Port>,
    buffer: &Bound<'_, PyAny>,
    remote: &Remote<'_, '_>,
    given: Given<'_, '_>,
) -> PyResult<()> {
    port.may_call("put")?;
    let memory = Buffer::readable(buffer, "put")?;
    let (len, from) = (memory.len(), memory.address());
    let _using = remote.window.get().using();
    let (target, to) = remote.place(port, remote.offset, len, "put")?;
    let counters = given.check(port, target)?;
    let (handle, call, counted) = (port.handle, port.library.LAPI_Put, counters.target);
    // SAFETY: the buffer is held until the origin counter is incremented; the place is inside of
    // the target's window.
    unsafe {
        perform(buffer.py(), port, &counters, memory, "put", move |origin, completion| {
            let (to, from) = (to as *mut c_void, from as *mut c_void);
            call(handle, target, len as c_ulong, to, from, counted as *mut lapi_cntr_t, origin, completion)
        })
    }
}

/// LAPI_Get.
pub fn get(
    port: &Arc<Port>,
    buffer: &Bound<'_, PyAny>,
    remote: &Remote<'_, '_>,
    given: Given<'_, '_>,
) -> PyResult<()> {
    port.may_call("get")?;
    let memory = Buffer::writable(buffer, "get")?;
    let (len, to) = (memory.len(), memory.address());
    let _using = remote.window.get().using();
    let (target, from) = remote.place(port, remote.offset, len, "get")?;
    let counters = given.check(port, target)?;
    let (handle, call, counted) = (port.handle, port.library.LAPI_Get, counters.target);
    // SAFETY: as for a put.
    unsafe {
        perform(buffer.py(), port, &counters, memory, "get", move |origin, _| {
            let (from, to) = (from as *mut c_void, to as *mut c_void);
            call(handle, target, len as c_ulong, from, to, counted as *mut lapi_cntr_t, origin)
        })
    }
}

/// The direction of a vector.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Put,
    Get,
}

impl Direction {
    fn buffer(self, object: &Bound<'_, PyAny>, what: &str) -> PyResult<Buffer> {
        match self {
            Self::Put => Buffer::readable(object, what),
            Self::Get => Buffer::writable(object, what),
        }
    }
}

/// Memory here and there in pieces, as LAPI's vectors describe it. Both have the same
/// type and number.
struct Vectors {
    kind: lapi_vectype_t,
    number: c_uint,
    here: Vec<usize>,
    there: Vec<usize>,
    lengths: Vec<c_ulong>,
}

/// LAPI_Putv or LAPI_Getv of several buffers.
pub fn vector(
    port: &Arc<Port>,
    direction: Direction,
    buffers: &Bound<'_, PyAny>,
    remote: &Remote<'_, '_>,
    offsets: &[i64],
    given: Given<'_, '_>,
) -> PyResult<()> {
    let what = if direction == Direction::Put { "putv" } else { "getv" };
    port.may_call(what)?;
    let held: Vec<Buffer> =
        buffers.try_iter()?.map(|object| direction.buffer(&object?, what)).collect::<PyResult<_>>()?;
    if held.len() != offsets.len() {
        let (buffers, offsets) = (held.len(), offsets.len());
        return Err(PyValueError::new_err(format!("{what}: {buffers} buffers and {offsets} offsets")));
    }
    let _using = remote.window.get().using();
    let target = port.target(remote.target, what)?;
    let there = held
        .iter()
        .zip(offsets)
        .map(|(buffer, offset)| remote.place(port, *offset, buffer.len(), what).map(|(_, address)| address));
    let vectors = Vectors {
        kind: LAPI_GEN_IOVECTOR,
        number: count(held.len(), what)?,
        there: there.collect::<PyResult<_>>()?,
        here: held.iter().map(Buffer::address).collect(),
        lengths: held.iter().map(|buffer| buffer.len() as c_ulong).collect(),
    };
    let counters = given.check(port, target)?;
    move_vectors(buffers.py(), port, direction, target, vectors, held, &counters, what)
}

/// Blocks of equal size at equal distances, in the buffer and in the window.
pub struct Strides {
    pub block: usize,
    pub count: usize,
    pub stride: usize,
    pub target_stride: Option<usize>,
    pub start: usize,
}

/// LAPI_Putv or LAPI_Getv of a strided vector.
pub fn strided(
    port: &Arc<Port>,
    direction: Direction,
    buffer: &Bound<'_, PyAny>,
    remote: &Remote<'_, '_>,
    strides: &Strides,
    given: Given<'_, '_>,
) -> PyResult<()> {
    let what = if direction == Direction::Put { "put_strided" } else { "get_strided" };
    port.may_call(what)?;
    let held = direction.buffer(buffer, what)?;
    let &Strides { block, count: blocks, stride, start, .. } = strides;
    let target_stride = strides.target_stride.unwrap_or(stride);
    for (name, value) in [("stride", stride), ("target_stride", target_stride)] {
        if blocks > 1 && value < block {
            return Err(PyValueError::new_err(format!("{what}: {name} {value} is less than block {block}")));
        }
    }
    // From the beginning of the first block to the end of the last.
    let extent = |stride: usize| match blocks {
        0 => Some(0),
        _ => (blocks - 1).checked_mul(stride)?.checked_add(block),
    };
    let (Some(here), Some(there)) = (extent(stride), extent(target_stride)) else {
        return Err(PyValueError::new_err(format!("{what}: the blocks do not fit into any memory")));
    };
    if start.checked_add(here).is_none_or(|end| end > held.len()) {
        return Err(PyIndexError::new_err(format!(
            "{what}: {blocks} blocks of {block} bytes, {stride} bytes apart from byte {start} on; the buffer has {} bytes",
            held.len()
        )));
    }
    let _using = remote.window.get().using();
    let (target, to) = remote.place(port, remote.offset, there, what)?;
    let vectors = Vectors {
        kind: LAPI_GEN_STRIDED_XFER,
        number: count(blocks, what)?,
        here: vec![held.address() + start, block, stride],
        there: vec![to, block, target_stride],
        lengths: Vec::new(),
    };
    let counters = given.check(port, target)?;
    move_vectors(buffer.py(), port, direction, target, vectors, vec![held], &counters, what)
}

fn count(number: usize, what: &str) -> PyResult<c_uint> {
    c_uint::try_from(number)
        .map_err(|_| PyValueError::new_err(format!("{what}: {number} pieces are too many")))
}

#[allow(clippy::too_many_arguments)]
fn move_vectors(
    py: Python<'_>,
    port: &Arc<Port>,
    direction: Direction,
    target: u32,
    mut vectors: Vectors,
    held: Vec<Buffer>,
    counters: &Counters<'_>,
    what: &str,
) -> PyResult<()> {
    let handle = port.handle;
    let (put, get, counted) = (port.library.LAPI_Putv, port.library.LAPI_Getv, counters.target);
    let start = move |origin: *mut lapi_cntr_t, completion: *mut lapi_cntr_t| {
        let lengths = vectors.lengths.as_mut_ptr();
        let vector = |addresses: &mut Vec<usize>| lapi_vec_t {
            vec_type: vectors.kind,
            num_vecs: vectors.number,
            info: addresses.as_mut_ptr().cast(),
            len: lengths,
        };
        let (mut here, mut there) = (vector(&mut vectors.here), vector(&mut vectors.there));
        let (here, there, counted) = (&raw mut here, &raw mut there, counted as *mut lapi_cntr_t);
        // SAFETY: the descriptions are read during the call only; the memory is checked above.
        unsafe {
            match direction {
                Direction::Put => put(handle, target, there, here, counted, origin, completion),
                Direction::Get => get(handle, target, there, here, counted, origin),
            }
        }
    };
    // SAFETY: the buffers are held until the origin counter is incremented; every piece is inside
    // of the target's window.
    unsafe { perform(py, port, counters, held, what, start) }
}

/// LAPI_Rmw64 or LAPI_Rmw: an operation on an integer of 64 or 32 bits of a window. Returns what
/// was there before.
pub fn atomic(
    py: Python<'_>,
    port: &Arc<Port>,
    operation: RMW_ops_t,
    remote: &Remote<'_, '_>,
    values: [i128; 2],
    bits: u32,
    what: &str,
) -> PyResult<i64> {
    port.may_call(what)?;
    if bits != 32 && bits != 64 {
        return Err(PyValueError::new_err(format!("{what}: bits is {bits}; an integer has 32 or 64")));
    }
    for value in values {
        // Signed or not: the bits are the same.
        if value < -(1i128 << (bits - 1)) || value >= 1i128 << bits {
            return Err(PyValueError::new_err(format!("{what}: {value} does not fit into {bits} bits")));
        }
    }
    let bytes = (bits / 8) as usize;
    let _using = remote.window.get().using();
    let (target, at) = remote.place(port, remote.offset, bytes, what)?;
    if at % bytes != 0 {
        return Err(PyValueError::new_err(format!(
            "{what}: offset {} of the window of task {target} is not at an address that is a multiple of {bytes}",
            remote.offset
        )));
    }
    let handle = port.handle;
    let (wide, narrow) = (port.library.LAPI_Rmw64, port.library.LAPI_Rmw);
    let mut wides = values.map(|value| value as i64);
    let mut narrows = values.map(|value| value as i32);
    let start = move |slot: &mut Slot| {
        let (counter, previous) = (&raw mut slot.counter, &raw mut slot.previous);
        // SAFETY: the values are read during the call only; the slot lives until the counter
        // is incremented.
        unsafe {
            if bits == 64 {
                wide(handle, operation, target, at as *mut _, wides.as_mut_ptr(), previous, counter)
            } else {
                narrow(
                    handle,
                    operation,
                    target,
                    at as *mut _,
                    narrows.as_mut_ptr(),
                    previous.cast(),
                    counter,
                )
            }
        }
    };
    // SAFETY: it uses the slot alone.
    match unsafe { alone(py, port, (), start) } {
        Ok(previous) if bits == 32 => Ok(i64::from(previous as i32)),
        Ok(previous) => Ok(previous),
        Err(code) => Err(check(code, what).expect_err("an error")),
    }
}

/// LAPI_Amsend, of a header that is `header` for LAPI.
pub fn send(
    py: Python<'_>,
    port: &Arc<Port>,
    target: u32,
    index: usize,
    mut header: Box<[u8]>,
    data: Option<Buffer>,
    counters: &Counters<'_>,
) -> PyResult<()> {
    let (at, header_len) = (header.as_mut_ptr() as usize, header.len() as c_uint);
    let (from, len) = data.as_ref().map_or((0, 0), |data| (data.address(), data.len()));
    let (handle, call, counted) = (port.handle, port.library.LAPI_Amsend, counters.target);
    let uses = Held { buffers: data.into_iter().collect(), header };
    let start = move |origin: *mut lapi_cntr_t, completion: *mut lapi_cntr_t| {
        let (handler, header, data) = (index as *mut c_void, at as *mut c_void, from as *mut c_void);
        let counted = counted as *mut lapi_cntr_t;
        // SAFETY: header and data are held until the origin counter is incremented.
        unsafe {
            call(
                handle,
                target,
                handler,
                header,
                header_len,
                data,
                len as c_ulong,
                counted,
                origin,
                completion,
            )
        }
    };
    // SAFETY: `start` calls LAPI, with what `uses` keeps until the operation is done.
    unsafe { perform(py, port, counters, uses, "send", start) }
}
