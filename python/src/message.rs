//! Active messages. One header handler of LAPI receives all of them; the number of the Python
//! handler is at the beginning of the user header.
//!
//! The header handler runs with the lock of the context held, and takes Python's lock if the
//! program has given a function `into`. This cannot deadlock, because a thread with Python's lock
//! never waits for the lock of a context. The function itself runs later, when the data is there,
//! on a thread of the library for completion handlers, where everything may be called.

use crate::buffer::Buffer;
use crate::open;
use crate::port::{Entry, Port, Refusal, hash, in_header_handler, lock};
use crate::threads;
use crate::transfer::{self, Given};
use openlapi::abi::*;
use openlapi::wire::user_header;
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::{c_uint, c_ulong, c_void};
use std::mem;
use std::ptr;
use std::slice;
use std::sync::Arc;

/// The index of the header handler in LAPI's table (LAPI_Addr_set).
pub const INDEX: usize = 1;
/// In front of the program's header: the number of the handler, and the length of the
/// program's header.
const PREFIX: usize = 4 + user_header::PREFIX;
/// What a task that ends because of a handler returns: as one that LAPI ends. poe ends the job.
const STATUS: i32 = 134;

/// A handler of messages. Made by Context.handler in all tasks.
#[pyclass(frozen, module = "openlapi")]
pub struct Handler {
    port: Arc<Port>,
    number: u32,
    entry: Arc<Entry>,
}

impl Handler {
    /// All tasks register the handler of the same name, in the same order.
    pub fn new(
        py: Python<'_>,
        port: &Arc<Port>,
        function: &Bound<'_, PyAny>,
        into: Option<&Bound<'_, PyAny>>,
        name: Option<String>,
    ) -> PyResult<Self> {
        for (what, object) in [("handler", Some(function)), ("handler: into", into)] {
            if let Some(object) = object.filter(|object| !object.is_callable()) {
                return Err(PyTypeError::new_err(format!("{what}: {} cannot be called", object.get_type())));
            }
        }
        let name = match name {
            Some(name) => name,
            None => match function.getattr("__qualname__") {
                Ok(name) => name.extract()?,
                Err(_) => function.get_type().qualname()?.to_string(),
            },
        };
        let entry = Arc::new(Entry {
            name: name.clone(),
            function: function.clone().unbind(),
            into: into.map(|into| into.clone().unbind()),
        });
        let number = port.collective(py, "handler", |step| {
            // In this thread's turn, so that handlers have the same numbers in all tasks.
            // Here before any other task can know that it is.
            let number = {
                let mut handlers = lock(&port.handlers);
                handlers.push(entry.clone());
                handlers.len() as u32 - 1
            };
            // The number, too: messages name the handler by it.
            let agreed = step.agree(hash(&name).wrapping_add(number.into()), || {
                format!("another task registers a function of another name than {name:?} here; if it stands for the same, give both the same `name`")
            });
            // In no task it is registered, so that the next one has its number everywhere. After a
            // failure of the call other tasks may have registered it, and send.
            if matches!(agreed, Err(Refusal::Disagreed(_))) {
                lock(&port.handlers).pop();
            }
            agreed.map(|()| number)
        })?;
        Ok(Self { port: port.clone(), number, entry })
    }
}

#[pymethods]
impl Handler {
    /// The name that all tasks have registered it by.
    #[getter]
    fn name(&self) -> &str {
        &self.entry.name
    }

    /// Calls the function itself, so that a decorated function can be called as any other.
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, pyo3::types::PyTuple>,
        kwargs: Option<&Bound<'py, pyo3::types::PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.entry.function.bind(py).call(args, kwargs)
    }

    fn __repr__(&self) -> String {
        format!("<openlapi.Handler {:?}>", self.entry.name)
    }
}

/// Sends a message.
pub fn send(
    py: Python<'_>,
    port: &Arc<Port>,
    target: i64,
    handler: &Handler,
    header: Option<&Bound<'_, PyAny>>,
    data: Option<&Bound<'_, PyAny>>,
    given: Given<'_, '_>,
) -> PyResult<()> {
    port.may_call("send")?;
    port.same(&handler.port, "handler")?;
    let target = port.target(target, "send")?;
    let header = header.map(|header| Buffer::readable(header, "send: header")).transpose()?;
    let data = data.map(|data| Buffer::readable(data, "send: data")).transpose()?;
    let counters = given.check(port, target)?;
    let len = header.as_ref().map_or(0, Buffer::len);
    let most = port.max_header - PREFIX;
    if len > most {
        return Err(PyValueError::new_err(format!(
            "send: a header of {len} bytes; at most {most}: longer ones are data"
        )));
    }
    // LAPI's headers are whole words.
    let mut whole = vec![0u8; (PREFIX + len).next_multiple_of(8)].into_boxed_slice();
    whole[..4].copy_from_slice(&handler.number.to_le_bytes());
    let bytes = header.as_ref().filter(|_| len > 0).map_or(&[][..], |header| {
        // SAFETY: the buffer has this many bytes, and Python's lock is held.
        unsafe { slice::from_raw_parts(header.address() as *const u8, len) }
    });
    user_header::pack(bytes, &mut whole[4..]).expect("there is room for this length");
    transfer::send(py, port, target, INDEX, whole, data, &counters)
}

/// A message whose data is being received.
struct Receiving {
    entry: Arc<Entry>,
    task: u32,
    source: i32,
    header: Box<[u8]>,
    data: Data,
}

/// Where the data goes.
enum Data {
    /// Into memory of the library; Python gets a copy.
    Own(Vec<u8>),
    /// Into what `into` has returned.
    Given(Py<PyAny>, Buffer),
}

impl Data {
    fn address(&mut self) -> *mut c_void {
        match self {
            Self::Own(bytes) => bytes.as_mut_ptr().cast(),
            Self::Given(_, buffer) => buffer.address() as *mut c_void,
        }
    }
}

/// The header handler for LAPI.
///
/// # Safety
/// LAPI calls it, with its pointers.
pub unsafe extern "C" fn arrived(
    handle: *mut lapi_handle_t,
    header: *mut c_void,
    header_len: *mut c_uint,
    info: *mut c_ulong,
    completion: *mut compl_hndlr_p,
    parameter: *mut *mut c_void,
) -> *mut c_void {
    let info = info.cast::<lapi_return_info_t>();
    // SAFETY: LAPI's pointers, which live during the call; `info` points to a whole
    // lapi_return_info_t.
    let (port, header, source, len) = unsafe {
        let header = slice::from_raw_parts(header.cast::<u8>(), header_len.read() as usize);
        (open::of(handle.read()), header, (*info).src, (*info).msg_len as usize)
    };
    let receiving = port.and_then(|port| receive(&port, header, source, len));
    let Some(mut receiving) = receiving else {
        // SAFETY: LAPI's description, a whole one, which lives during the call.
        unsafe { (*info).ctl_flags = LAPI_BURY_MSG };
        return ptr::null_mut();
    };
    let place = receiving.data.address();
    // SAFETY: LAPI's places for handler and parameter, which live during the call.
    unsafe {
        completion.write(Some(completed));
        parameter.write(Box::into_raw(receiving).cast());
    }
    // Null would mean that there is no place: a message without data has one too.
    if place.is_null() { ptr::dangling_mut::<u64>().cast() } else { place }
}

/// Decides where the data of a message goes; None: it is discarded.
fn receive(port: &Port, header: &[u8], source: i32, len: usize) -> Option<Box<Receiving>> {
    let (number, packed) = header.split_first_chunk()?;
    let header = user_header::unpack(packed)?;
    let entry = lock(&port.handlers).get(u32::from_le_bytes(*number) as usize)?.clone();
    let data = match &entry.into {
        None => {
            let mut bytes = Vec::new();
            if bytes.try_reserve_exact(len).is_err() {
                let what = format!("{len} bytes of a message of task {source}");
                let handler = format!("handler {:?}", entry.name);
                threads::attach(|py| end(py, PyMemoryError::new_err(what), &handler, port.task));
                return None;
            }
            bytes.resize(len, 0);
            Data::Own(bytes)
        }
        Some(into) => threads::attach(|py| {
            let place = in_header_handler(|| ask(py, into, source, header, len));
            place.unwrap_or_else(|raised| {
                end(py, raised, &format!("`into` of handler {:?}", entry.name), port.task)
            })
        })??,
    };
    Some(Box::new(Receiving { entry, task: port.task, source, header: header.into(), data }))
}

/// Calls `into`.
fn ask(py: Python<'_>, into: &Py<PyAny>, source: i32, header: &[u8], len: usize) -> PyResult<Option<Data>> {
    let place = into.bind(py).call1((source, PyBytes::new(py, header), len))?;
    if place.is_none() {
        return Ok(None);
    }
    let buffer = Buffer::writable(&place, "the buffer that `into` returns")?;
    if buffer.len() < len {
        return Err(PyBufferError::new_err(format!(
            "the buffer that `into` returns has {} bytes; the message has {len}",
            buffer.len()
        )));
    }
    Ok(Some(Data::Given(place.unbind(), buffer)))
}

/// The completion handler for LAPI.
unsafe extern "C" fn completed(_handle: *mut lapi_handle_t, parameter: *mut c_void) {
    // SAFETY: from `arrived`, and LAPI calls this once for each message.
    let receiving = unsafe { Box::from_raw(parameter.cast::<Receiving>()) };
    let mut receiving = Some(receiving);
    let ran = threads::attach(|py| {
        let Some(receiving) = receiving.take() else { return };
        let Receiving { entry, task, source, header, data } = *receiving;
        let function = entry.function.bind(py);
        let header = PyBytes::new(py, &header);
        let result = match data {
            Data::Own(bytes) => function.call1((source, header, PyBytes::new(py, &bytes))),
            Data::Given(object, buffer) => {
                drop(buffer);
                function.call1((source, header, object))
            }
        };
        if let Err(raised) = result {
            end(py, raised, &format!("handler {:?}", entry.name), task);
        }
    });
    if ran.is_none() {
        // The interpreter has ended: its objects are gone.
        mem::forget(receiving);
    }
}

/// Ends the task because of an exception that no caller can catch. A task that went on would let
/// others wait for ever for what the handler did not do.
fn end(py: Python<'_>, raised: PyErr, place: &str, task: u32) -> ! {
    raised.display(py);
    eprintln!("openlapi: task {task}: this exception left {place}: the task ends");
    flush_and_exit(py)
}

/// Ends the process without the destructors, which could wait for other tasks.
pub fn flush_and_exit(py: Python<'_>) -> ! {
    for stream in ["stdout", "stderr"] {
        let _ = py.import("sys").and_then(|sys| sys.getattr(stream)?.call_method0("flush"));
    }
    // SAFETY: it takes any status.
    unsafe { libc::_exit(STATUS) }
}
