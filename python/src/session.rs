//! Sessions: a service and its clients, which no launcher has started. They need no `liblapi_r`.

use crate::buffer::Buffer;
use openlapi_session::{
    Change, Error, Listener as RawListener, Message, Routes, Session as RawSession, Settings, connect_tcp,
    connect_unix, key_file,
};
use pyo3::exceptions::{
    PyBrokenPipeError, PyConnectionError, PyConnectionResetError, PyEOFError, PyOSError, PyPermissionError,
    PyRuntimeError, PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::mem;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A call that waits looks for signals of Python this often.
const LOOK: Duration = Duration::from_millis(100);

/// Where the two sides meet, as in the module `socket`: a path, or host and port.
#[derive(FromPyObject)]
pub enum Address {
    Unix(PathBuf),
    Tcp((String, u16)),
}

/// The exception for an error.
#[cold]
fn raised(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Closed => PyEOFError::new_err(text),
        Error::Lost(_) => PyConnectionResetError::new_err(text),
        Error::Late(_) => PyTimeoutError::new_err(text),
        Error::WrongKey | Error::OtherUser(_) | Error::Key(_) => PyPermissionError::new_err(text),
        Error::System(_, why) => match why.raw_os_error() {
            Some(code) => PyOSError::new_err((code, text)),
            None => PyOSError::new_err(text),
        },
        Error::Limit(_) | Error::Core(_) => PyRuntimeError::new_err(text),
        _ => PyConnectionError::new_err(text),
    }
}

fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| PyValueError::new_err(format!("{seconds} seconds")))
}

fn deadline(timeout: Option<f64>) -> PyResult<Option<Instant>> {
    let Some(time) = timeout.map(duration).transpose()? else { return Ok(None) };
    Ok(Instant::now().checked_add(time))
}

fn settings(timeout: f64, routes: Option<Vec<String>>) -> PyResult<Settings> {
    let mut all = Routes(0);
    for name in routes.iter().flatten() {
        all.0 |= match name.as_str() {
            "shm" => Routes::SHARED_MEMORY.0,
            "fabric" => Routes::FABRIC.0,
            "udp" => Routes::UDP.0,
            _ => {
                return Err(PyValueError::new_err(format!("the route {name:?} is none of shm, fabric, udp")));
            }
        };
    }
    let routes = if routes.is_some() { all } else { Routes::ALL };
    Ok(Settings { routes, patience: duration(timeout)?, ..Settings::default() })
}

fn places(py: Python<'_>, (host, port): &(String, u16)) -> PyResult<Vec<SocketAddr>> {
    let found = py.detach(|| (host.as_str(), *port).to_socket_addrs());
    Ok(found.map_err(|error| PyOSError::new_err(error.to_string()))?.collect())
}

fn key(file: Option<PathBuf>) -> PyResult<[u8; 16]> {
    let file = file.ok_or_else(|| PyValueError::new_err("a TCP port wants a key file"))?;
    key_file(file).map_err(raised)
}

/// Waits in steps, between which Python handles its signals. `None`: the deadline has passed.
fn patiently<T: Send>(
    py: Python<'_>,
    deadline: Option<Instant>,
    mut step: impl FnMut(Option<Instant>) -> Result<Option<T>, Error> + Send,
) -> PyResult<Option<T>> {
    loop {
        let next = Instant::now() + LOOK;
        let until = deadline.map_or(next, |deadline| deadline.min(next));
        if let Some(found) = py.detach(|| step(Some(until))).map_err(raised)? {
            return Ok(Some(found));
        }
        py.check_signals()?;
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Ok(None);
        }
    }
}

/// What a session uses of Python's memory. After the session in `Session`, so that it ends first.
#[derive(Default)]
struct Memory {
    /// Until the session ends.
    lent: Vec<Buffer>,
    /// Of operations that were started, until a fence finds them complete.
    busy: Vec<Buffer>,
}

/// A session with one other process. Use it with `with`: the end of the block closes it in order,
/// and an exception ends it at once.
#[pyclass(frozen, module = "openlapi")]
pub struct Session {
    session: Mutex<Option<Arc<RawSession>>>,
    memory: Mutex<Memory>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    fn new(session: RawSession) -> Self {
        Self { session: Mutex::new(Some(Arc::new(session))), memory: Mutex::default() }
    }

    fn open(&self) -> PyResult<Arc<RawSession>> {
        lock(&self.session).clone().ok_or_else(|| PyValueError::new_err("the session is closed"))
    }

    /// Changes a number of the peer, and waits until it has.
    fn change(&self, py: Python<'_>, address: u64, change: Change) -> PyResult<u64> {
        let session = self.open()?;
        // SAFETY: the number is the program's promise.
        let started = py.detach(|| unsafe { session.start_fetch(address, change) }).map_err(raised)?;
        loop {
            if let Some(previous) = patiently(py, None, |until| started.wait(until))? {
                return Ok(previous);
            }
        }
    }

    fn wait_for_all(&self, py: Python<'_>, session: &RawSession) -> PyResult<()> {
        // What another thread starts after this is not waited for.
        let mine = mem::take(&mut lock(&self.memory).busy);
        let mut is_in_use = true;
        let waited = patiently(py, None, |until| match session.fence_until(until) {
            Ok(false) => Ok(None),
            Ok(true) => {
                is_in_use = false;
                Ok(Some(()))
            }
            Err(error) => {
                // Of the others the session has ended.
                is_in_use = matches!(error, Error::Core(_));
                Err(error)
            }
        });
        if is_in_use {
            lock(&self.memory).busy.extend(mine);
        }
        waited.map(drop)
    }

    /// Drops the memory of earlier operations where all are complete. An operation that is to be
    /// started is not yet, since one that has just been started seldom is complete.
    fn drop_complete(&self, session: &RawSession) {
        let mut memory = lock(&self.memory);
        let over = if session.is_complete() { mem::take(&mut memory.busy) } else { Vec::new() };
        // The end of a buffer may call Python.
        drop(memory);
        drop(over);
    }

    /// Keeps the memory of an operation, which was started before this.
    fn keep_busy(&self, buffer: Buffer) {
        lock(&self.memory).busy.push(buffer);
    }

    /// Drops all memory of a session that has ended.
    fn forget_memory(&self) {
        let memory = mem::take(&mut *lock(&self.memory));
        drop(memory);
    }
}

#[pymethods]
impl Session {
    /// The way that data takes: "shared memory", "libfabric" or "UDP".
    #[getter]
    fn route(&self) -> PyResult<String> {
        Ok(self.open()?.route().to_string())
    }

    /// Whether this side has closed it.
    #[getter]
    fn closed(&self) -> bool {
        lock(&self.session).is_none()
    }

    /// Lends memory to the peer until the session ends, and returns its address, which the
    /// program sends to the peer. What the peer does there is seen after a message of it.
    fn lend(&self, memory: &Bound<'_, PyAny>) -> PyResult<usize> {
        let buffer = Buffer::writable(memory, "lend")?;
        let address = buffer.address();
        self.open()?;
        lock(&self.memory).lent.push(buffer);
        Ok(address)
    }

    /// Starts to copy memory to an address of the peer, which it has lent.
    fn put(&self, py: Python<'_>, data: &Bound<'_, PyAny>, address: u64) -> PyResult<()> {
        let (session, buffer) = (self.open()?, Buffer::readable(data, "put")?);
        let (at, length) = (buffer.address(), buffer.len());
        self.drop_complete(&session);
        // SAFETY: the buffer is kept until the operation is complete, or the session has ended;
        // that the peer has memory there is the program's promise.
        let started = py.detach(|| unsafe { session.put(at as *const u8, length, address) });
        self.keep_busy(buffer);
        started.map_err(raised)
    }

    /// Starts to copy memory at an address of the peer, which it has lent, to memory of this
    /// process.
    fn get(&self, py: Python<'_>, into: &Bound<'_, PyAny>, address: u64) -> PyResult<()> {
        let (session, buffer) = (self.open()?, Buffer::writable(into, "get")?);
        let (at, length) = (buffer.address(), buffer.len());
        self.drop_complete(&session);
        // SAFETY: as for `put`.
        let started = py.detach(|| unsafe { session.get(at as *mut u8, length, address) });
        self.keep_busy(buffer);
        started.map_err(raised)
    }

    /// Adds to a number of 64 bits of the peer as one step, and returns what it was before.
    fn fetch_add(&self, py: Python<'_>, address: u64, value: u64) -> PyResult<u64> {
        self.change(py, address, Change::Add(value))
    }

    /// Sets bits of a number of 64 bits of the peer as one step, and returns what it was before.
    fn fetch_or(&self, py: Python<'_>, address: u64, value: u64) -> PyResult<u64> {
        self.change(py, address, Change::Or(value))
    }

    /// Replaces a number of 64 bits of the peer as one step, and returns what it was before.
    fn swap(&self, py: Python<'_>, address: u64, value: u64) -> PyResult<u64> {
        self.change(py, address, Change::Swap(value))
    }

    /// Replaces a number of 64 bits of the peer if it is `expected`, as one step, and returns
    /// whether it was.
    fn compare_and_swap(&self, py: Python<'_>, address: u64, expected: u64, value: u64) -> PyResult<bool> {
        let change = Change::CompareAndSwap { expected, new: value };
        self.change(py, address, change).map(|swapped| swapped != 0)
    }

    /// Waits until all that was started is complete, here and at the peer.
    fn fence(&self, py: Python<'_>) -> PyResult<()> {
        let session = self.open()?;
        self.wait_for_all(py, &session)
    }

    /// Sends a message: a header of up to 1020 bytes, and data, which is copied.
    #[pyo3(signature = (data, header = None))]
    fn send(&self, py: Python<'_>, data: &Bound<'_, PyAny>, header: Option<&[u8]>) -> PyResult<()> {
        let (session, buffer) = (self.open()?, Buffer::readable(data, "send")?);
        let at = if buffer.len() == 0 {
            std::ptr::NonNull::dangling().as_ptr()
        } else {
            buffer.address() as *mut u8
        };
        // SAFETY: the buffer keeps its memory during the call; a program that changes it meanwhile
        // sends the one or the other.
        let data = unsafe { std::slice::from_raw_parts(at, buffer.len()) };
        py.detach(|| session.send(header.unwrap_or_default(), data)).map_err(raised)
    }

    /// Waits for the next message: header and data; `None` when none has come in `timeout` seconds.
    #[pyo3(signature = (timeout = None))]
    fn receive<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        let session = self.open()?;
        let message = patiently(py, deadline(timeout)?, |until| session.receive(until))?;
        Ok(message.map(|Message { header, data }| (PyBytes::new(py, &header), PyBytes::new(py, &data))))
    }

    /// The descriptor of an event loop: readable when there may be something to do.
    fn fileno(&self) -> PyResult<i32> {
        Ok(self.open()?.as_fd().as_raw_fd())
    }

    /// Gets ready for a sleep of an event loop, and returns whether it may sleep: not while a
    /// message waits to be received. `progress` follows in any case.
    fn arm(&self, py: Python<'_>) -> PyResult<bool> {
        let session = self.open()?;
        py.detach(|| session.arm()).map_err(raised)
    }

    /// Makes progress, and returns whether anything moved; `receive(0)` has the messages.
    fn progress(&self, py: Python<'_>) -> PyResult<bool> {
        let session = self.open()?;
        py.detach(|| session.progress()).map_err(raised)
    }

    /// Closes the session in order: waits until the peer has all that was sent. Once more is
    /// nothing. No other thread may be in a call of the session.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(shared) = lock(&self.session).take() else { return Ok(()) };
        let session = Arc::try_unwrap(shared).map_err(|shared| {
            *lock(&self.session) = Some(shared);
            PyBrokenPipeError::new_err("another thread is in a call of the session")
        })?;
        let closed = py.detach(|| session.close());
        self.forget_memory();
        closed.map_err(raised)
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (kind = None, value = None, traceback = None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (value, traceback);
        if kind.is_none() {
            return self.close(py);
        }
        // The peer is to see that something went wrong. Where another thread is in a call, the
        // session ends with that, and its memory is kept as long as this object.
        let taken = lock(&self.session).take().and_then(Arc::into_inner);
        if taken.is_some() {
            py.detach(|| drop(taken));
            self.forget_memory();
        }
        Ok(())
    }
}

/// Finds clients: an object of `listen`.
#[pyclass(frozen, module = "openlapi")]
pub struct Listener {
    /// Locked while a client is accepted, without Python's lock: a child of fork may find it locked
    /// for ever.
    listener: Mutex<Option<RawListener>>,
    address: Option<SocketAddr>,
    descriptor: i32,
    is_closed: AtomicBool,
    /// The process that has made it.
    process: u32,
}

impl Listener {
    fn new(listener: RawListener) -> Self {
        let (address, descriptor) = (listener.address(), listener.as_fd().as_raw_fd());
        let (is_closed, process) = (AtomicBool::new(false), std::process::id());
        Self { listener: Mutex::new(Some(listener)), address, descriptor, is_closed, process }
    }

    fn check(&self) -> PyResult<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(PyValueError::new_err("the listener is closed"));
        }
        Ok(())
    }

    /// Whether this process is a child of fork of the one that has made it.
    fn is_of_parent(&self) -> bool {
        self.process != std::process::id()
    }
}

#[pymethods]
impl Listener {
    /// Host and port of a TCP listener; `None` for a Unix socket.
    #[getter]
    fn address(&self) -> PyResult<Option<(String, u16)>> {
        self.check()?;
        Ok(self.address.map(|at| (at.ip().to_string(), at.port())))
    }

    /// Waits for the next client, and opens a session with it; `None` when none has come in so
    /// many seconds, and ValueError when another thread closes the listener. One thread at a time.
    #[pyo3(signature = (timeout = None))]
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Session>> {
        if self.is_of_parent() {
            return Err(PyRuntimeError::new_err("the listener is the parent's of this child of fork"));
        }
        let mut is_open = true;
        let found = patiently(py, deadline(timeout)?, |until| {
            let mut listener = lock(&self.listener);
            // A thread in `close` may wait for the lock, which goes to the faster one.
            let open = listener.as_mut().filter(|_| !self.is_closed.load(Ordering::Acquire));
            is_open = open.is_some();
            open.map_or(Err(Error::Closed), |listener| listener.accept(until))
        });
        // A handler of a signal may have closed it, and raised what the caller is to get.
        if !is_open {
            self.check()?;
        }
        found.map(|found| found.map(Session::new))
    }

    /// The descriptor of an event loop: readable when `accept(0)` has something to do.
    fn fileno(&self) -> PyResult<i32> {
        self.check()?;
        Ok(self.descriptor)
    }

    /// Ends the listener, and removes the file of a Unix socket. A thread in `accept` ends first.
    /// In a child of fork the parent's listener stays as it is.
    fn close(&self, py: Python<'_>) {
        self.is_closed.store(true, Ordering::Release);
        if self.is_of_parent() {
            return;
        }
        py.detach(|| drop(lock(&self.listener).take()));
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (kind = None, value = None, traceback = None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) {
        let _ = (kind, value, traceback);
        self.close(py);
    }
}

/// Opens a session with a process that listens.
#[pyfunction]
#[pyo3(signature = (address, key_file = None, *, timeout = 10.0, routes = None))]
pub fn connect(
    py: Python<'_>,
    address: Address,
    key_file: Option<PathBuf>,
    timeout: f64,
    routes: Option<Vec<String>>,
) -> PyResult<Session> {
    let settings = settings(timeout, routes)?;
    match address {
        Address::Unix(path) => py.detach(|| connect_unix(path, &settings)).map(Session::new).map_err(raised),
        Address::Tcp(place) => {
            let key = key(key_file)?;
            // All addresses together have the time.
            let until = Instant::now().checked_add(settings.patience);
            let mut last = PyOSError::new_err(format!("{}: no address", place.0));
            for at in places(py, &place)? {
                let left = until.map(|until| until.saturating_duration_since(Instant::now()));
                let settings = Settings { patience: left.unwrap_or(settings.patience), ..settings.clone() };
                match py.detach(|| connect_tcp(at, key, &settings)) {
                    Ok(session) => return Ok(Session::new(session)),
                    Err(error) => last = raised(error),
                }
            }
            Err(last)
        }
    }
}

/// Listens for clients: of this user at a Unix socket, or with the key at a TCP port.
#[pyfunction]
#[pyo3(signature = (address, key_file = None, *, timeout = 10.0, routes = None))]
pub fn listen(
    py: Python<'_>,
    address: Address,
    key_file: Option<PathBuf>,
    timeout: f64,
    routes: Option<Vec<String>>,
) -> PyResult<Listener> {
    let settings = settings(timeout, routes)?;
    let listener = match address {
        Address::Unix(path) => RawListener::unix(path, &settings),
        Address::Tcp(place) => {
            let at = places(py, &place)?.into_iter().next();
            let at = at.ok_or_else(|| PyOSError::new_err(format!("{}: no address", place.0)))?;
            RawListener::tcp(at, key(key_file)?, &settings)
        }
    };
    listener.map(Listener::new).map_err(raised)
}
