//! `openlapi.init` and the context, whose methods are LAPI's calls.

use crate::counter::Counter;
use crate::error::check;
use crate::interrupt::{self, detached};
use crate::library::library;
use crate::message::{self, Handler, flush_and_exit};
use crate::open;
use crate::port::Port;
use crate::report;
use crate::transfer::{self, Direction, Given, Remote, Strides};
use crate::window::Window;
use openlapi::abi::*;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An open context: this process as a task of the job. Made by openlapi.init.
///
/// At the end of a `with` block the context waits for all tasks and is closed. Every method
/// releases Python's lock while it is in the library. A put, get, vector or message without
/// `origin_counter` returns when its buffer may be used again (of a get: when the data is there);
/// with one it returns at once, and the buffer is held until then. Offsets are in bytes.
#[pyclass(frozen, module = "openlapi")]
pub struct Context {
    port: Arc<Port>,
}

/// Opens a context: this process becomes a task of the job that the launcher has started, or the
/// only one of a job without a launcher.
///
/// `instance`: 1 to 16, when a task opens several; 0 for the lowest free one. `completion_threads`:
/// how many threads run the functions of handlers. `interrupts`: whether a thread of the library
/// serves messages while the program computes.
#[pyfunction]
#[pyo3(signature = (*, instance = 0, completion_threads = 1, interrupts = true))]
pub fn init(py: Python<'_>, instance: u32, completion_threads: u16, interrupts: bool) -> PyResult<Context> {
    let library = library().map_err(PyOSError::new_err)?;
    let watch = interrupt::watch(py)?;
    let opened = detached(py, || {
        let mut info = lapi_info_t {
            protocol: if interrupts { 0 } else { LAPI_INTERRUPT_OFF },
            lib_vers: LAST_LIB,
            epoch_num: 0,
            num_compl_hndlr_thr: completion_threads.into(),
            instance_no: instance,
            info6: 0,
            err_hndlr: None,
            lapi_thread_attr: ptr::null_mut(),
            adapter_name: ptr::null_mut(),
            add_info: ptr::null_mut(),
        };
        let mut handle = LAPI_VOID_HANDLE;
        // SAFETY: handle and structure live during the call.
        let code = unsafe { (library.LAPI_Init)(&raw mut handle, &raw mut info) };
        (code, handle)
    });
    check(opened.0, "init")?;
    let handle = opened.1;
    let query = |attribute: lapi_query_t| {
        let mut value: c_int = 0;
        // SAFETY: these attributes are one number.
        let code = detached(py, || unsafe { (library.LAPI_Qenv)(handle, attribute, &raw mut value) });
        check(code, "init").map(|()| value.cast_unsigned())
    };
    let job = (query(TASK_ID)?, query(NUM_TASKS)?);
    let port = Arc::new(Port::new(library, handle, job, query(MAX_UHDR_SZ)? as usize, watch));
    open::add(port.clone());
    // From now on it receives messages; those that have arrived before wait for it.
    let code = detached(py, || {
        // SAFETY: a header handler of LAPI.
        unsafe { (library.LAPI_Addr_set)(handle, message::arrived as *mut c_void, message::INDEX as c_int) }
    });
    check(code, "init")?;
    Ok(Context { port })
}

/// The file of LAPI's library.
#[pyfunction]
pub fn library_path() -> PyResult<std::path::PathBuf> {
    crate::library::path().map_err(PyOSError::new_err)
}

/// Ends all contexts, without waiting for other tasks: at the end of the interpreter.
#[pyfunction]
pub fn close_all(py: Python<'_>) {
    report::end();
    for port in open::all() {
        // What is wrong with one of them does not matter any more.
        let _ = close(py, &port);
    }
}

/// Ends the process when a context with other tasks is open: after an exception that was not
/// caught, so that they do not wait for this task.
#[pyfunction]
pub fn in_job(py: Python<'_>) {
    if open::all().iter().any(|port| port.tasks > 1) {
        flush_and_exit(py);
    }
}

fn close(py: Python<'_>, port: &Arc<Port>) -> PyResult<()> {
    port.may_call("close")?;
    let (handle, term) = (port.handle, port.library.LAPI_Term);
    // SAFETY: any handle may be passed.
    let code = detached(py, || unsafe { term(handle) });
    port.open.store(false, Ordering::SeqCst);
    open::remove(port);
    port.watch_no_more();
    if code == LAPI_SUCCESS {
        port.release();
    }
    check(code, "close")
}

impl Context {
    /// A call that has no other argument than the handle.
    fn simple(
        &self,
        py: Python<'_>,
        call: unsafe extern "C" fn(lapi_handle_t) -> c_int,
        what: &str,
    ) -> PyResult<()> {
        self.port.may_call(what)?;
        let handle = self.port.handle;
        // SAFETY: any handle may be passed.
        check(detached(py, || unsafe { call(handle) }), what)
    }

    /// A request of LAPI_Util without parameters.
    fn util(&self, py: Python<'_>, request: lapi_util_type_t, what: &str) -> PyResult<()> {
        self.port.may_call(what)?;
        let (handle, util) = (self.port.handle, self.port.library.LAPI_Util);
        let code = detached(py, || {
            // SAFETY: all of it may be zero.
            let mut command: lapi_util_t = unsafe { std::mem::zeroed() };
            command.Util_type = request;
            // SAFETY: the structure lives during the call.
            unsafe { util(handle, &raw mut command) }
        });
        check(code, what)
    }
}

#[pymethods]
impl Context {
    /// The number of this task.
    #[getter]
    fn task(&self) -> u32 {
        self.port.task
    }

    /// The number of tasks of the job.
    #[getter]
    fn tasks(&self) -> u32 {
        self.port.tasks
    }

    /// Whether the context is closed.
    #[getter]
    fn closed(&self) -> bool {
        !self.port.open.load(Ordering::Relaxed)
    }

    /// Waits until the data of all operations that this task has started is in place (LAPI_Fence).
    fn fence(&self, py: Python<'_>) -> PyResult<()> {
        self.simple(py, self.port.library.LAPI_Fence, "fence")
    }

    /// Waits until the data of all operations of all tasks is in place, and is a barrier: each task
    /// calls it (LAPI_Gfence).
    fn gfence(&self, py: Python<'_>) -> PyResult<()> {
        self.port.may_call("gfence")?;
        let _turn = self.port.turn(py);
        self.simple(py, self.port.library.LAPI_Gfence, "gfence")
    }

    /// Takes in what has arrived (LAPI_Probe).
    fn probe(&self, py: Python<'_>) -> PyResult<()> {
        self.simple(py, self.port.library.LAPI_Probe, "probe")
    }

    /// Leaves the job for a checkpoint: waits until all that this task has sent and all that others
    /// have sent to it is complete, handlers included, and parts from all other tasks
    /// (lapi_checkpoint.h). What they send from then on waits for checkpoint_after; they get no
    /// error. Until then this task's operations with other tasks fail with LAPI_ERR_TGT_PURGED.
    ///
    /// Other threads must not send meanwhile. It is this process that must come back, or a copy of
    /// it that a checkpointer has restored: other tasks go on with the addresses of its windows.
    fn checkpoint_before(&self, py: Python<'_>) -> PyResult<()> {
        self.util(py, LAPI_CHECKPOINT_BEFORE, "checkpoint_before")
    }

    /// Comes back after checkpoint_before: what others have sent meanwhile arrives.
    fn checkpoint_after(&self, py: Python<'_>) -> PyResult<()> {
        self.util(py, LAPI_CHECKPOINT_AFTER, "checkpoint_after")
    }

    /// Ends this task's part in the job (LAPI_Term). Other tasks' operations with this one fail
    /// then, so that a program calls gfence first.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.closed() { Ok(()) } else { close(py, &self.port) }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Waits for all tasks, and closes the context. After an exception it does nothing: other tasks
    /// may be elsewhere.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !kind.is_none() || self.closed() {
            return Ok(());
        }
        self.gfence(py)?;
        self.close(py)
    }

    /// All tasks give a writable buffer, of any size, in which all of them put and
    /// get from then on.
    fn window(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<Window> {
        self.port.may_call("window")?;
        Window::new(py, &self.port, buffer)
    }

    /// A counter of this task; with `shared`, which all tasks call, one of each task that the
    /// others can name as target_counter.
    #[pyo3(signature = (*, shared = false))]
    fn counter(&self, py: Python<'_>, shared: bool) -> PyResult<Counter> {
        self.port.may_call("counter")?;
        Counter::new(py, &self.port, shared)
    }

    /// Registers a handler of messages; all tasks register theirs in the same order, and wait
    /// for each other.
    ///
    /// `function(source, header, data)` runs when the data of a message has arrived, on a thread of
    /// the library. `data` is bytes; with `into`, it is the buffer that
    /// `into(source, header, size)` has returned, into which the data was written. `into` runs as
    /// soon as the header is there; it must be short and must not call LAPI. When it returns None
    /// the message is discarded. `name`: the name by which tasks compare what they register, if
    /// that of the function differs.
    #[pyo3(signature = (function, *, into = None, name = None))]
    fn handler(
        &self,
        py: Python<'_>,
        function: &Bound<'_, PyAny>,
        into: Option<&Bound<'_, PyAny>>,
        name: Option<String>,
    ) -> PyResult<Handler> {
        self.port.may_call("handler")?;
        Handler::new(py, &self.port, function, into, name)
    }

    /// Sends a message: the handler runs in the target (LAPI_Amsend).
    #[pyo3(signature = (target, handler, header = None, data = None, *, target_counter = None, origin_counter = None, completion_counter = None))]
    #[allow(clippy::too_many_arguments)]
    fn send(
        &self,
        py: Python<'_>,
        target: i64,
        handler: &Bound<'_, Handler>,
        header: Option<&Bound<'_, PyAny>>,
        data: Option<&Bound<'_, PyAny>>,
        target_counter: Option<&Bound<'_, Counter>>,
        origin_counter: Option<&Bound<'_, Counter>>,
        completion_counter: Option<&Bound<'_, Counter>>,
    ) -> PyResult<()> {
        let given = Given { target: target_counter, origin: origin_counter, completion: completion_counter };
        message::send(py, &self.port, target, handler.get(), header, data, given)
    }

    /// Copies a buffer into the window of a task (LAPI_Put).
    #[pyo3(signature = (buffer, target, window, offset = 0, *, target_counter = None, origin_counter = None, completion_counter = None))]
    #[allow(clippy::too_many_arguments)]
    fn put(
        &self,
        buffer: &Bound<'_, PyAny>,
        target: i64,
        window: &Bound<'_, Window>,
        offset: i64,
        target_counter: Option<&Bound<'_, Counter>>,
        origin_counter: Option<&Bound<'_, Counter>>,
        completion_counter: Option<&Bound<'_, Counter>>,
    ) -> PyResult<()> {
        let given = Given { target: target_counter, origin: origin_counter, completion: completion_counter };
        transfer::put(&self.port, buffer, &Remote { target, window, offset }, given)
    }

    /// Copies from the window of a task into a writable buffer (LAPI_Get).
    #[pyo3(signature = (buffer, target, window, offset = 0, *, target_counter = None, origin_counter = None))]
    fn get(
        &self,
        buffer: &Bound<'_, PyAny>,
        target: i64,
        window: &Bound<'_, Window>,
        offset: i64,
        target_counter: Option<&Bound<'_, Counter>>,
        origin_counter: Option<&Bound<'_, Counter>>,
    ) -> PyResult<()> {
        let given = Given { target: target_counter, origin: origin_counter, completion: None };
        transfer::get(&self.port, buffer, &Remote { target, window, offset }, given)
    }

    /// Copies several buffers, the i-th to the i-th offset, as one operation (LAPI_Putv).
    #[pyo3(signature = (buffers, target, window, offsets, *, target_counter = None, origin_counter = None, completion_counter = None))]
    #[allow(clippy::too_many_arguments)]
    fn putv(
        &self,
        buffers: &Bound<'_, PyAny>,
        target: i64,
        window: &Bound<'_, Window>,
        offsets: Vec<i64>,
        target_counter: Option<&Bound<'_, Counter>>,
        origin_counter: Option<&Bound<'_, Counter>>,
        completion_counter: Option<&Bound<'_, Counter>>,
    ) -> PyResult<()> {
        let given = Given { target: target_counter, origin: origin_counter, completion: completion_counter };
        let remote = Remote { target, window, offset: 0 };
        transfer::vector(&self.port, Direction::Put, buffers, &remote, &offsets, given)
    }

    /// Copies into several writable buffers, into the i-th from the i-th offset, as one
    /// operation (LAPI_Getv).
    #[pyo3(signature = (buffers, target, window, offsets, *, target_counter = None, origin_counter = None))]
    fn getv(
        &self,
        buffers: &Bound<'_, PyAny>,
        target: i64,
        window: &Bound<'_, Window>,
        offsets: Vec<i64>,
        target_counter: Option<&Bound<'_, Counter>>,
        origin_counter: Option<&Bound<'_, Counter>>,
    ) -> PyResult<()> {
        let given = Given { target: target_counter, origin: origin_counter, completion: None };
        let remote = Remote { target, window, offset: 0 };
        transfer::vector(&self.port, Direction::Get, buffers, &remote, &offsets, given)
    }

    /// Copies `count` blocks of `block` bytes. In the buffer they begin at byte `start` and are
    /// `stride` bytes apart, in the window at `offset` and `target_stride`, which is `stride`
    /// unless given (LAPI_Putv).
    #[pyo3(signature = (buffer, target, window, offset = 0, *, block, count, stride, target_stride = None, start = 0, target_counter = None, origin_counter = None, completion_counter = None))]
    #[allow(clippy::too_many_arguments)]
    fn put_strided(
        &self,
        buffer: &Bound<'_, PyAny>,
        target: i64,
        window: &Bound<'_, Window>,
        offset: i64,
        block: usize,
        count: usize,
        stride: usize,
        target_stride: Option<usize>,
        start: usize,
        target_counter: Option<&Bound<'_, Counter>>,
        origin_counter: Option<&Bound<'_, Counter>>,
        completion_counter: Option<&Bound<'_, Counter>>,
    ) -> PyResult<()> {
        let given = Given { target: target_counter, origin: origin_counter, completion: completion_counter };
        let strides = Strides { block, count, stride, target_stride, start };
        let remote = Remote { target, window, offset };
        transfer::strided(&self.port, Direction::Put, buffer, &remote, &strides, given)
    }

    /// Gets strided blocks from the window into a writable buffer (LAPI_Getv).
    #[pyo3(signature = (buffer, target, window, offset = 0, *, block, count, stride, target_stride = None, start = 0, target_counter = None, origin_counter = None))]
    #[allow(clippy::too_many_arguments)]
    fn get_strided(
        &self,
        buffer: &Bound<'_, PyAny>,
        target: i64,
        window: &Bound<'_, Window>,
        offset: i64,
        block: usize,
        count: usize,
        stride: usize,
        target_stride: Option<usize>,
        start: usize,
        target_counter: Option<&Bound<'_, Counter>>,
        origin_counter: Option<&Bound<'_, Counter>>,
    ) -> PyResult<()> {
        let given = Given { target: target_counter, origin: origin_counter, completion: None };
        let strides = Strides { block, count, stride, target_stride, start };
        let remote = Remote { target, window, offset };
        transfer::strided(&self.port, Direction::Get, buffer, &remote, &strides, given)
    }

    /// Adds to an integer in the window of a task, and returns its signed value before
    /// (LAPI_Rmw64, LAPI_Rmw).
    #[pyo3(signature = (target, window, offset, value, *, bits = 64))]
    fn fetch_and_add(
        &self,
        py: Python<'_>,
        target: i64,
        window: &Bound<'_, Window>,
        offset: i64,
        value: i128,
        bits: u32,
    ) -> PyResult<i64> {
        let remote = Remote { target, window, offset };
        transfer::atomic(py, &self.port, FETCH_AND_ADD, &remote, [value, 0], bits, "fetch_and_add")
    }

    /// Sets bits of an integer in the window of a task, and returns its signed value before.
    #[pyo3(signature = (target, window, offset, value, *, bits = 64))]
    fn fetch_and_or(
        &self,
        py: Python<'_>,
        target: i64,
        window: &Bound<'_, Window>,
        offset: i64,
        value: i128,
        bits: u32,
    ) -> PyResult<i64> {
        let remote = Remote { target, window, offset };
        transfer::atomic(py, &self.port, FETCH_AND_OR, &remote, [value, 0], bits, "fetch_and_or")
    }

    /// Replaces an integer in the window of a task, and returns its signed value before.
    #[pyo3(signature = (target, window, offset, value, *, bits = 64))]
    fn swap(
        &self,
        py: Python<'_>,
        target: i64,
        window: &Bound<'_, Window>,
        offset: i64,
        value: i128,
        bits: u32,
    ) -> PyResult<i64> {
        let remote = Remote { target, window, offset };
        transfer::atomic(py, &self.port, SWAP, &remote, [value, 0], bits, "swap")
    }

    /// Replaces an integer in the window of a task if it is `expected`, and returns whether it was.
    #[pyo3(signature = (target, window, offset, expected, value, *, bits = 64))]
    #[allow(clippy::too_many_arguments)]
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        target: i64,
        window: &Bound<'_, Window>,
        offset: i64,
        expected: i128,
        value: i128,
        bits: u32,
    ) -> PyResult<bool> {
        let remote = Remote { target, window, offset };
        let values = [expected, value];
        let operation = COMPARE_AND_SWAP;
        let swapped = transfer::atomic(py, &self.port, operation, &remote, values, bits, "compare_and_swap")?;
        Ok(swapped != 0)
    }

    /// Whether a thread of the library serves messages while the program computes (INTERRUPT_SET).
    #[setter]
    fn set_interrupts(&self, py: Python<'_>, on: bool) -> PyResult<()> {
        self.port.may_call("interrupts")?;
        let (handle, set) = (self.port.handle, self.port.library.LAPI_Senv);
        // SAFETY: any handle may be passed.
        check(detached(py, || unsafe { set(handle, INTERRUPT_SET, on.into()) }), "interrupts")
    }

    /// Whether a thread of the library serves messages while the program computes (INTERRUPT_SET).
    #[getter]
    fn interrupts(&self, py: Python<'_>) -> PyResult<bool> {
        self.port.may_call("interrupts")?;
        let (handle, query) = (self.port.handle, self.port.library.LAPI_Qenv);
        let mut value: c_int = 0;
        // SAFETY: the attribute is one number.
        check(detached(py, || unsafe { query(handle, INTERRUPT_SET, &raw mut value) }), "interrupts")?;
        Ok(value != 0)
    }

    fn __repr__(&self) -> String {
        let state = if self.closed() { ", closed" } else { "" };
        format!("<openlapi.Context: task {} of {}{state}>", self.port.task, self.port.tasks)
    }
}
