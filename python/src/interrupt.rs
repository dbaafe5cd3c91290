//! Ctrl-C while a call of the library waits.
//!
//! Python notes SIGINT, and raises KeyboardInterrupt when the main thread runs Python code again.
//! In a call that waits for another task that may be never: LAPI's waits have no end but what they
//! wait for, and a collective call cannot be left half-way. So a thread looks, half a second after
//! SIGINT, whether the main thread is still in the same call. Then it writes the stack of the main
//! thread, as for an exception that is not caught, and ends the process by SIGINT.
//!
//! This is for Python's own handler of SIGINT. One that the program has set runs when the call
//! returns, as ever.

use crate::place::Here;
use crate::threads;
use pyo3::prelude::*;
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use std::{io, mem, ptr, thread};

/// The calls of the main thread so far: twice their number, and one more while it is in a call.
static CALLS: AtomicU64 = AtomicU64::new(0);
/// The pipe that wakes the thread: its end for the handler.
static WAKE: AtomicI32 = AtomicI32::new(-1);
/// The process that has the thread: a forked child has none.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// Python's own handler.
static OF_PYTHON: AtomicUsize = AtomicUsize::new(0);
/// How long a call may last after SIGINT.
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

/// Watches for SIGINT from now on, when the main thread calls this and Python's own handler is set.
pub fn watch(py: Python<'_>) -> PyResult<()> {
    // It takes the thread for the main one that is the first to import it.
    py.import("threading")?;
    let signal = py.import("signal")?;
    let is_default =
        signal.call_method1("getsignal", (libc::SIGINT,))?.is(&signal.getattr("default_int_handler")?);
    if is_main() && is_default {
        start()?;
    }
    Ok(())
}

/// Puts our handler before Python's, and starts the thread; nothing where both are there.
fn start() -> io::Result<()> {
    // SAFETY: it only returns a number.
    let process = unsafe { libc::getpid() };
    // SAFETY: a zeroed sigaction is a valid one, and the calls fill it in.
    unsafe {
        let mut now: libc::sigaction = mem::zeroed();
        libc::sigaction(libc::SIGINT, ptr::null(), &raw mut now);
        let ours = on_interrupt as *const () as usize;
        if now.sa_sigaction != ours {
            if [libc::SIG_DFL, libc::SIG_IGN].contains(&now.sa_sigaction)
                || now.sa_flags & libc::SA_SIGINFO != 0
            {
                return Ok(());
            }
            OF_PYTHON.store(now.sa_sigaction, Ordering::SeqCst);
            now.sa_sigaction = ours;
            libc::sigaction(libc::SIGINT, &raw const now, ptr::null_mut());
        }
        if PROCESS.swap(process, Ordering::SeqCst) == process {
            return Ok(());
        }
        let mut ends = [0; 2];
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        WAKE.store(ends[1], Ordering::SeqCst);
        // It takes no signal: the handler runs on the program's threads, as before.
        let (mut all, mut before) = (mem::zeroed(), mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let from = ends[0];
        let spawned = thread::Builder::new().name("lapi-ctrl-c".into()).spawn(move || look(from));
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        spawned.map(drop)
    }
}

extern "C" fn on_interrupt(signal: c_int) {
    let of_python = OF_PYTHON.load(Ordering::SeqCst);
    // SAFETY: the address of a handler of signals, from sigaction; and calls that a handler may
    // make, which leave errno as it was.
    unsafe {
        mem::transmute::<usize, extern "C" fn(c_int)>(of_python)(signal);
        if CALLS.load(Ordering::SeqCst) % 2 == 1 && PROCESS.load(Ordering::SeqCst) == libc::getpid() {
            let errno = *libc::__errno_location();
            libc::write(WAKE.load(Ordering::SeqCst), [0u8].as_ptr().cast(), 1);
            *libc::__errno_location() = errno;
        }
    }
}

/// The thread.
fn look(from: c_int) {
    let mut byte = 0u8;
    // SAFETY: room for one byte.
    while unsafe { libc::read(from, (&raw mut byte).cast(), 1) } != 0 {
        let call = CALLS.load(Ordering::SeqCst);
        thread::sleep(GRACE);
        if call % 2 == 1 && CALLS.load(Ordering::SeqCst) == call {
            threads::attach(end);
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
