//! What a task writes when a fault ends it (LAPI_BACKTRACE): the signal, what LAPI was doing for
//! which task, and the stack.
//!
//! The handler is installed by the first LAPI_Init, for signals whose default action the program
//! has not changed (a runtime's handler that only writes a backtrace does not count). It writes,
//! gives the signal its default action back, and lets it come again, so that the exit status and a
//! core file are what they would be without it. All that it calls may be called in a signal
//! handler, but for two: `backtrace`, which has loaded its helper library when the handler was
//! installed, and, with a C library before glibc 2.35, `dladdr`, which takes the loader's lock.

mod line;
mod place;
mod registers;
mod stack;

use crate::report::thread;
use libc::{c_int, c_void, siginfo_t};
use line::Line;
use openlapi::base::loader::{object_at, stay_loaded};
use openlapi::engine::context::active_handler::{Activity, State};
use openlapi::transport::Inbound;
use openlapi::wire::packet::{Head, RMW_WIDE, VECTOR_GET};
use registers::Registers;
use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::fmt::{self, Write as _};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

const FAULTS: [c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];
/// For the handler, when the thread's own stack is exhausted.
const STACK: usize = 64 << 10;
/// A fault so near to the stack pointer is one of the stack.
const NEAR: usize = 1 << 16;

static INSTALLED: AtomicBool = AtomicBool::new(false);
/// The thread that is in the handler, or 0: one description is enough.
static SPEAKING: AtomicI32 = AtomicI32::new(0);
/// The signal that it describes.
static DESCRIBED: AtomicI32 = AtomicI32::new(0);

/// Installs the handlers, once. The calling thread gets a stack for them if it has none.
pub fn install() {
    if INSTALLED.swap(true, Ordering::Relaxed) {
        return;
    }
    let mut frames = [ptr::null_mut(); 1];
    // SAFETY: the array has room for the one frame; the structures live during the calls; the
    // handler is made for signals.
    unsafe {
        libc::backtrace(frames.as_mut_ptr(), 1);
        for signal in FAULTS {
            let mut now: libc::sigaction = mem::zeroed();
            if libc::sigaction(signal, ptr::null(), &mut now) != 0 || !is_free(now.sa_sigaction) {
                continue;
            }
            let mut ours: libc::sigaction = mem::zeroed();
            ours.sa_sigaction = on_fault as *const () as usize;
            // Other faults are not those of a stack, and the stack for handlers may be small that a
            // language's own runtime has given the thread.
            let of_stack = matches!(signal, libc::SIGSEGV | libc::SIGBUS);
            ours.sa_flags = libc::SA_SIGINFO | if of_stack { libc::SA_ONSTACK } else { 0 };
            if of_stack {
                give_stack();
            }
            libc::sigaction(signal, &ours, ptr::null_mut());
        }
    }
    stay_loaded(on_fault as *const () as usize);
}

/// Libraries whose handlers do nothing but write a backtrace and end the process: those of
/// Fortran's runtime (gfortran's and Intel's), and what libfabric and MPI are linked with.
const ONLY_WRITE: [&CStr; 4] = [c"libgfortran.so", c"libifcore", c"libinfinipath.so", c"libucs.so"];

/// Whether the signal is left to its default action, or to one of these: then there is one
/// description, and the status is that of the signal.
fn is_free(handler: usize) -> bool {
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        return handler == libc::SIG_DFL;
    }
    object_at(handler).is_some_and(|object| {
        let contains = |name: &&CStr| {
            // SAFETY: both texts end with a zero.
            unsafe { !libc::strstr(object.file.as_ptr(), name.as_ptr()).is_null() }
        };
        ONLY_WRITE.iter().any(contains)
    })
}

/// The stack for the handler, of the thread that has opened the first context. It is no memory of
/// the heap, of which checkers would say that it is lost.
struct HandlerStack(UnsafeCell<[u8; STACK]>);
// SAFETY: only its address is used here; the kernel gives it to one thread.
unsafe impl Sync for HandlerStack {}
static HANDLER_STACK: HandlerStack = HandlerStack(UnsafeCell::new([0; STACK]));

/// Gives the calling thread a stack for handlers if it has none. Called by one thread alone.
fn give_stack() {
    // SAFETY: the structures live during the calls, and the memory is the handler's for ever.
    unsafe {
        let mut now: libc::stack_t = mem::zeroed();
        if libc::sigaltstack(ptr::null(), &mut now) == 0 && now.ss_flags & libc::SS_DISABLE != 0 {
            let ours = libc::stack_t { ss_sp: HANDLER_STACK.0.get().cast(), ss_flags: 0, ss_size: STACK };
            libc::sigaltstack(&ours, ptr::null_mut());
        }
    }
}

unsafe extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: what a handler gets; a system call.
    let (code, mut registers, thread) = unsafe { ((*info).si_code, Registers::of(context), libc::gettid()) };
    match SPEAKING.compare_exchange(0, thread, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            DESCRIBED.store(signal, Ordering::Relaxed);
            // SAFETY: what a handler gets.
            let address = (code > 0 && code != SI_KERNEL).then(|| unsafe { (*info).si_addr() } as usize);
            let before = (registers.instruction, registers.stack);
            describe(signal, address, code > 0, &mut registers);
            // The same instruction is to raise the signal again.
            registers.set(before.0, before.1);
        }
        // The description itself has failed.
        Err(speaking) if speaking == thread => give_up(DESCRIBED.load(Ordering::Relaxed)),
        Err(_) => {
            // Another thread writes, and ends the process; not for long if it cannot. The helper
            // may take less.
            let mut left = libc::timespec { tv_sec: 5, tv_nsec: 0 };
            // Signals that the program handles interrupt it.
            // SAFETY: nanosleep is a system call; both places live during the call.
            while unsafe { libc::nanosleep(&raw const left, &raw mut left) } != 0
                && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
            {}
        }
    }
    // SAFETY: the structure lives during the call. The signal is blocked until this handler
    // returns: then the same instruction raises it again, or it comes because it was sent.
    unsafe {
        let default: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, &default, ptr::null_mut());
        if code <= 0 {
            libc::raise(signal);
        }
    }
}

/// Ends the process with the signal that was to be described: the stack is damaged (a program that
/// the compiler's guard of the stack has ended), and reading it was a fault of its own.
fn give_up(signal: c_int) {
    let mut line = Line::new();
    let _ = write!(line, "  the stack cannot be read");
    line.end();
    // SAFETY: the structures live during the calls, which may be made in a handler.
    unsafe {
        let mut only: libc::sigset_t = mem::zeroed();
        libc::sigaddset(&mut only, signal);
        let default: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, &default, ptr::null_mut());
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &only, ptr::null_mut());
    }
}

/// The kernel does not know the address: it is not canonical.
const SI_KERNEL: c_int = 0x80;

fn describe(signal: c_int, address: Option<usize>, fault: bool, registers: &mut Registers) {
    let mut line = Line::new();
    let _ = write!(line, "signal {signal} ({})", name(signal));
    if let (libc::SIGSEGV | libc::SIGBUS, true) = (signal, fault) {
        let _ = match address {
            Some(address) => write!(line, " at address {address:#x}"),
            None => write!(line, " at a non-canonical address"),
        };
    }
    if address.is_some_and(|address| registers.stack.abs_diff(address) < NEAR) && signal == libc::SIGSEGV {
        let _ = write!(line, ", near the end of the stack (ulimit -s)");
    }
    thread::with_contexts(|context| {
        if context.activity.here() {
            let _ = activity(&mut line, &context.activity, context.activity.packet());
        }
    });
    line.end();
    stack::write(registers);
}

/// What the thread does in a context, with the packet that it handles.
fn activity(line: &mut Line, activity: &Activity, packet: Option<*const Inbound>) -> fmt::Result {
    match activity.state() {
        State::Outside => Ok(()),
        State::Handler(kind) => {
            write!(line, ", in {} of the program", kind.name())?;
            match packet {
                // SAFETY: see below.
                Some(packet) => write!(line, ", for a message of task {}", unsafe { (*packet).src }),
                None => Ok(()),
            }
        }
        State::Dispatching => match packet {
            // SAFETY: this thread runs the dispatcher, further up its stack: the packet and its
            // bytes are there until it returns.
            Some(packet) => unsafe { operation(line, &*packet) },
            None => write!(line, ", while LAPI makes progress"),
        },
    }
}

/// What a packet makes LAPI do.
///
/// # Safety
/// The packet must not be released yet.
unsafe fn operation(line: &mut Line, packet: &Inbound) -> fmt::Result {
    let src = packet.src;
    // SAFETY: the caller's promise.
    let head = unsafe { std::slice::from_raw_parts(packet.head, packet.head_len) };
    let counter = |line: &mut Line, counter: u64| match counter {
        0 => Ok(()),
        counter => write!(line, " (its target counter is at {counter:#x})"),
    };
    write!(line, ", while LAPI ")?;
    match Head::decode(head) {
        Some(Head::Put { addr, total, tgt_cntr, .. }) => {
            let bytes = total.max(packet.body_len as u64);
            write!(line, "stores {bytes} bytes at {addr:#x} for LAPI_Put of task {src}")?;
            counter(line, tgt_cntr)
        }
        Some(Head::Get { addr, len, tgt_cntr, .. }) => {
            write!(line, "reads {len} bytes at {addr:#x} for LAPI_Get of task {src}")?;
            counter(line, tgt_cntr)
        }
        Some(Head::Rmw { op, var, .. }) => {
            let bits = if op & RMW_WIDE != 0 { 64 } else { 32 };
            write!(line, "changes the {bits}-bit variable at {var:#x} for LAPI_Rmw of task {src}")
        }
        Some(Head::Vector { op, total, tgt_cntr, .. }) => {
            let (does, call) = if op & VECTOR_GET != 0 { ("reads", "Get") } else { ("stores", "Put") };
            write!(line, "{does} {total} bytes for LAPI_{call} or LAPI_{call}v of task {src}")?;
            counter(line, tgt_cntr)
        }
        Some(Head::Am { tgt_cntr, .. } | Head::Amv { tgt_cntr, .. }) => {
            write!(line, "stores the data of an active message of task {src}")?;
            counter(line, tgt_cntr)
        }
        Some(Head::Data { offset, .. }) => {
            write!(line, "stores data of a message of task {src}, from its byte {offset} on")
        }
        Some(Head::Reply { offset, .. }) => {
            write!(line, "stores data that task {src} was asked for, from byte {offset} on")
        }
        Some(
            Head::Done { .. }
            | Head::RmwReply { .. }
            | Head::Placed { .. }
            | Head::Accessed { .. }
            | Head::Written { .. },
        ) => {
            write!(line, "completes an operation with task {src}")
        }
        _ => write!(line, "handles a packet of task {src}"),
    }
}

fn name(signal: c_int) -> &'static str {
    match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        _ => "SIGABRT",
    }
}
