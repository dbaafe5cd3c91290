//! Ctrl-C while a call of the library waits.
//!
//! Python notes SIGINT, and raises KeyboardInterrupt when the main thread runs Python code again.
//! In a call that waits for another task that may be never: LAPI's waits have no end but what they
//! wait for, and a collective call cannot be left half-way. So a thread looks twice a second
//! whether the main thread is still in the call in which SIGINT has come. Then it writes the stack
//! of the main thread, as for an exception that is not caught, and ends the process by SIGINT.
//!
//! This is for Python's own handler of SIGINT, from the first context on until the last one is
//! closed. One that the program has set runs when the call returns, as ever. A program that sets
//! Python's handler again, as `asyncio.run` and Jupyter do, removes ours: the same thread puts it
//! back while a call waits. To look in each call would cost a call of the system, and a small put
//! is not much longer than that.

use crate::place::Here;
use crate::threads;
use pyo3::prelude::*;
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use std::{mem, ptr, thread};

/// The calls of the main thread so far: twice their number, and one more while it is in a call.
static CALLS: AtomicU64 = AtomicU64::new(0);
/// What `CALLS` was when SIGINT came last.
static INTERRUPTED: AtomicU64 = AtomicU64::new(0);
/// The process that has the thread: a forked child has none.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The process whose contexts are counted, and how many are open. Changed with Python's lock.
static COUNTED: AtomicU32 = AtomicU32::new(0);
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// Python's part of a handler, which is the same for all functions of Python; 0: not known yet.
static OF_PYTHON: AtomicUsize = AtomicUsize::new(0);
/// How long a call may last after SIGINT, at least; at most twice as long.
const GRACE: Duration = Duration::from_millis(500);

thread_local! {
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
}

fn is_main() -> bool {
    IS_MAIN.get().unwrap_or_else(|| {
        // SAFETY: they only return numbers.
        let main = unsafe { libc::gettid() == libc::getpid() };
        IS_MAIN.set(Some(main));
        main
    })
}

/// Runs calls of the library without Python's lock.
#[inline]
pub fn detached<R: Send>(py: Python<'_>, run: impl FnOnce() -> R + Send) -> R {
    let _here = Here::of(py);
    if !is_main() {
        return py.detach(run);
    }
    CALLS.fetch_add(1, Ordering::SeqCst);
    let result = py.detach(run);
    CALLS.fetch_add(1, Ordering::SeqCst);
    result
}

/// While it lives, SIGINT is watched for. It is dropped with Python's lock.
pub struct Watch {
    process: u32,
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Those of a parent are not counted in a forked child.
        if self.process == std::process::id() && OPEN.fetch_sub(1, Ordering::SeqCst) == 1 {
            put_back();
        }
    }
}

/// Watches for SIGINT from now on, when the main thread calls this.
pub fn watch(py: Python<'_>) -> PyResult<Watch> {
    // It takes the thread for the main one that is the first to import it.
    py.import("threading")?;
    let process = std::process::id();
    if COUNTED.swap(process, Ordering::SeqCst) != process {
        OPEN.store(0, Ordering::SeqCst);
    }
    OPEN.fetch_add(1, Ordering::SeqCst);
    let watch = Watch { process };
    if !is_main() {
        return Ok(watch);
    }
    put_before(py)?;
    if PROCESS.load(Ordering::SeqCst) == process {
        return Ok(watch);
    }
    // SAFETY: sets of signals that the calls fill in.
    unsafe {
        // It takes no signal: the handler runs on the program's threads, as before.
        let (mut all, mut before) = (mem::zeroed(), mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let spawned = thread::Builder::new().name("lapi-ctrl-c".into()).spawn(look);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        spawned?;
    }
    PROCESS.store(process, Ordering::SeqCst);
    Ok(watch)
}

/// The handler of SIGINT of this process.
fn handler() -> libc::sigaction {
    // SAFETY: a zeroed sigaction is a valid one, and the call fills it in.
    unsafe {
        let mut now: libc::sigaction = mem::zeroed();
        libc::sigaction(libc::SIGINT, ptr::null(), &raw mut now);
        now
    }
}

fn is_ours(handler: &libc::sigaction) -> bool {
    handler.sa_sigaction == on_interrupt as *const () as usize
}

/// Whether it may be Python's. Once that is known it is no other: one that has ours behind it would
/// be called by ours and call ours, for ever.
fn is_of_python(handler: &libc::sigaction) -> bool {
    let (at, known) = (handler.sa_sigaction, OF_PYTHON.load(Ordering::SeqCst));
    let is_function =
        ![libc::SIG_DFL, libc::SIG_IGN].contains(&at) && handler.sa_flags & libc::SA_SIGINFO == 0;
    !is_ours(handler) && is_function && (known == 0 || known == at)
}

/// Puts our handler before Python's, where that is to raise KeyboardInterrupt, and a context is
/// open.
fn put_before(py: Python<'_>) -> PyResult<()> {
    // Its functions are in C: from the last call on this thread has Python's lock, and nothing in
    // Python changes the handler or closes the last context.
    let signal = py.import("_signal")?;
    let default = signal.getattr("default_int_handler")?;
    let is_default = signal.call_method1("getsignal", (libc::SIGINT,))?.is(&default);
    let mut now = handler();
    if is_default && OPEN.load(Ordering::SeqCst) != 0 && is_of_python(&now) {
        OF_PYTHON.store(now.sa_sigaction, Ordering::SeqCst);
        now.sa_sigaction = on_interrupt as *const () as usize;
        // SAFETY: what the process had, with a function that takes the number of a signal.
        unsafe { libc::sigaction(libc::SIGINT, &raw const now, ptr::null_mut()) };
    }
    Ok(())
}

/// Removes our handler, unless the program has set another one since.
fn put_back() {
    let mut now = handler();
    if is_ours(&now) {
        now.sa_sigaction = OF_PYTHON.load(Ordering::SeqCst);
        // SAFETY: what the process had before.
        unsafe { libc::sigaction(libc::SIGINT, &raw const now, ptr::null_mut()) };
    }
}

extern "C" fn on_interrupt(signal: c_int) {
    let of_python = OF_PYTHON.load(Ordering::SeqCst);
    // SAFETY: the address of a handler of signals, from sigaction.
    unsafe { mem::transmute::<usize, extern "C" fn(c_int)>(of_python)(signal) };
    INTERRUPTED.store(CALLS.load(Ordering::SeqCst), Ordering::SeqCst);
}

/// The thread.
fn look() {
    let mut before = 0;
    loop {
        thread::sleep(GRACE);
        let (call, interrupted) = (CALLS.load(Ordering::SeqCst), INTERRUPTED.load(Ordering::SeqCst));
        if call % 2 == 0 {
            continue;
        }
        if interrupted != call {
            if is_of_python(&handler()) {
                // Where it fails the next look tries it again.
                threads::attach(|py| drop(put_before(py)));
            }
        } else if before == call {
            threads::attach(end);
        } else {
            before = call;
        }
    }
}

/// Writes where the main thread is, and ends the process.
fn end(py: Python<'_>) {
    let show = || -> PyResult<()> {
        let stderr = py.import("sys")?.getattr("stderr")?;
        let main = py.import("threading")?.call_method0("main_thread")?.getattr("ident")?;
        let frame = py.import("sys")?.call_method0("_current_frames")?.get_item(main)?;
        stderr.call_method1("write", ("Traceback (most recent call last):\n",))?;
        py.import("traceback")?.call_method1("print_stack", (frame,))?;
        let why = "KeyboardInterrupt: the task ends in a call of LAPI that waits for another task\n";
        stderr.call_method1("write", (why,))?;
        for stream in ["stdout", "stderr"] {
            py.import("sys")?.getattr(stream)?.call_method0("flush")?;
        }
        Ok(())
    };
    if let Err(why) = show() {
        why.print(py);
    }
    // SAFETY: a default disposition, and a signal to this process.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_DFL);
        libc::kill(libc::getpid(), libc::SIGINT);
    }
}
