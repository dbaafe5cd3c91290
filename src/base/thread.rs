//! The threads that the library makes: with the program's attributes and init function, a name that
//! shows in `ps -T`, and signals blocked, so that the program's signal handlers run on the
//! program's threads.

use crate::abi::{LAPI_ERR_MEMORY_EXHAUSTED, com_thread_info_t, thread_init_func_p};
use crate::base::clock::now;
use crate::base::known_threads::note_thread;
use crate::base::limits;
#[cfg(test)]
use crate::base::simulation;
use crate::base::sync::{Condvar, Futex, Mutex, Ordering};
use crate::error::{Error, Result};
use std::cell::Cell;
use std::ffi::CString;
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How the program wants threads to be made: lapi_thread_attr of lapi_info_t, copied.
#[derive(Clone, Copy, Debug)]
pub struct ThreadConfig {
    attributes: *const libc::pthread_attr_t,
    init: thread_init_func_p,
    parameter: *mut libc::c_void,
    extra: *mut libc::c_void,
}

// SAFETY: the pointers are handed on to pthread_create and to the program's own function, never
// looked into here.
unsafe impl Send for ThreadConfig {}

impl ThreadConfig {
    /// Nothing special.
    pub const PLAIN: Self =
        Self { attributes: ptr::null(), init: None, parameter: ptr::null_mut(), extra: ptr::null_mut() };

    fn detached(&self) -> bool {
        if self.attributes.is_null() {
            return false;
        }
        let mut state = libc::PTHREAD_CREATE_JOINABLE;
        // SAFETY: the program's attributes, which live until LAPI_Init returns.
        unsafe { pthread_attr_getdetachstate(self.attributes, &mut state) };
        state == libc::PTHREAD_CREATE_DETACHED
    }

    /// As the program says. Its attributes are used until LAPI_Init returns, not later.
    pub fn of(info: &com_thread_info_t) -> Self {
        Self {
            attributes: info.thread_attr,
            init: info.thread_init_func,
            parameter: info.parm_ptr,
            extra: info.extra_ptr,
        }
    }
}

/// A thread to be waited for.
pub struct Thread {
    id: libc::pthread_t,
    /// The program's attributes made it detached: the system forgets it when it ends.
    detached: bool,
    ended: Arc<Ended>,
}

#[derive(Default)]
struct Ended {
    yes: Mutex<bool>,
    changed: Condvar,
}

impl Thread {
    /// Lets the thread end by itself.
    pub fn detach(self) {
        if !self.detached {
            // SAFETY: the thread was made by `spawn`, is not detached, and is released once, since
            // `self` is consumed.
            unsafe { libc::pthread_detach(self.id) };
        }
    }

    /// Waits for the thread's end, but not for longer than that; not for itself. Returns whether
    /// there is nothing left to wait for.
    pub fn join_within(self, at_most: Duration) -> bool {
        self.join_until(Some(now() + at_most))
    }

    /// Waits for the thread's end; not for itself.
    pub fn join(self) {
        self.join_until(None);
    }

    fn join_until(self, until: Option<Instant>) -> bool {
        // SAFETY: pthread_self and pthread_equal have no preconditions.
        let is_current = unsafe { libc::pthread_equal(self.id, libc::pthread_self()) != 0 };
        let mut has_ended = self.ended.yes.lock();
        let mut in_time = true;
        while !is_current && !*has_ended && in_time {
            match until {
                Some(until) => in_time = self.ended.changed.wait_until(&mut has_ended, until),
                None => self.ended.changed.wait(&mut has_ended),
            }
        }
        drop(has_ended);
        if is_current || !in_time {
            self.detach();
        } else if !self.detached {
            // SAFETY: the thread was made by `spawn`, is not detached, and is joined once, since
            // `self` is consumed.
            unsafe { libc::pthread_join(self.id, ptr::null_mut()) };
        }
        in_time
    }
}

struct Start {
    name: CString,
    /// The signals that the thread which started this one had blocked.
    mask: libc::sigset_t,
    thread_config: ThreadConfig,
    run: Box<dyn FnOnce() + Send>,
    ended: Arc<Ended>,
    ready: Arc<Futex>,
}

/// Starts a thread. When this returns, the thread has its own memory of the C library's allocator.
///
/// A thread's first allocation may map such memory (an arena), and what the program maps after
/// LAPI_Init must lie at the same address in all tasks, whichever of its threads has run first.
pub fn spawn(name: &str, thread_config: ThreadConfig, run: impl FnOnce() + Send + 'static) -> Result<Thread> {
    let (ended, ready) = (Arc::new(Ended::default()), Arc::new(Futex::new(0)));
    #[cfg(test)]
    if simulation::active() {
        let end = ended.clone();
        simulation::spawn(name, move || {
            run();
            *end.yes.lock() = true;
            end.changed.notify_all();
        });
        // It is no thread of the C library's that could be joined.
        return Ok(Thread { id: 0, detached: true, ended });
    }
    let attributes = Attributes::of(thread_config.attributes);
    // SAFETY: all arguments are valid for the calls; `start` is taken back by the new thread, or
    // here when there is none.
    unsafe {
        let mut before = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, &asynchronous(), &mut before);
        let start = Box::into_raw(Box::new(Start {
            name: CString::new(name).unwrap_or_default(),
            mask: before,
            thread_config,
            run: Box::new(run),
            ended: ended.clone(),
            ready: ready.clone(),
        }));
        let mut id = std::mem::zeroed();
        let failed = libc::pthread_create(&mut id, attributes.as_ptr(), enter, start.cast());
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        if failed != 0 {
            drop(Box::from_raw(start));
            let reason = limits::explained(rustix::io::Errno::from_raw_os_error(failed));
            return Err(Error::new(
                LAPI_ERR_MEMORY_EXHAUSTED,
                format!("the thread {name}, one of about five of each task, cannot be started: {reason}"),
            ));
        }
        while ready.load(Ordering::Acquire) == 0 {
            ready.sleep(0, None);
        }
        Ok(Thread { id, detached: thread_config.detached(), ended })
    }
}

/// Runs this with the asynchronous signals blocked, as they stay in a thread that it starts by
/// other means than [`spawn`].
pub fn with_signals_blocked<T>(run: impl FnOnce() -> T) -> T {
    // SAFETY: whole sets, of which the system fills the second one.
    let before = unsafe {
        let mut before = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, &asynchronous(), &mut before);
        before
    };
    let result = run();
    // SAFETY: a whole set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut()) };
    result
}

/// All signals but those that an instruction of the thread itself raises: the program may have a
/// handler for memory that is not there yet, and the library copies into the program's memory.
fn asynchronous() -> libc::sigset_t {
    // SAFETY: the set is made by `sigfillset`.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&mut set);
        for own in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS] {
            libc::sigdelset(&mut set, own);
        }
        set
    }
}

/// In a forked child: when it comes from one of our threads (a handler has forked), its signals are
/// those of the program again.
pub fn forget_in_child() {
    // No such variable: the thread is just ending, and does not fork.
    if let Ok(Some(mask)) = MASK.try_with(Cell::take) {
        // SAFETY: a whole set, from `spawn`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &mask, ptr::null_mut()) };
    }
}

thread_local! {
    /// In our threads: what the program had blocked when it opened the context.
    static MASK: Cell<Option<libc::sigset_t>> = const { Cell::new(None) };
}

extern "C" fn enter(start: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: `spawn` made this from a box and gave it to this thread alone.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    MASK.set(Some(start.mask));
    // An allocation, not only a release of memory: that alone finds out which arena is
    // this thread's.
    drop(std::hint::black_box(Box::new([0_u8; 64])));
    start.ready.store(1, Ordering::Release);
    start.ready.wake(1);
    // By the thread itself: if it is detached, no other thread may name it later. The program
    // may rename it.
    // SAFETY: this thread itself, and a zero-terminated name.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), start.name.as_ptr()) };
    note_thread();
    if let Some(init) = start.thread_config.init {
        // SAFETY: the program's own function with the program's own parameters.
        unsafe { init(start.thread_config.parameter, start.thread_config.extra) };
    }
    (start.run)();
    *start.ended.yes.lock() = true;
    start.ended.changed.notify_all();
    ptr::null_mut()
}

/// The smallest stack that our threads run on, in bytes. The manual gives no least size, and the
/// system's is too small for a dispatcher that calls the program's handlers.
pub const LEAST_STACK: usize = 128 << 10;
/// The largest stack of a thread whose size the program has not given, in bytes.
pub const MOST_STACK: usize = 64 << 20;

/// The program's attributes as they can be used: for several threads, and with a stack that
/// is large enough.
enum Attributes {
    /// The program's own, or none.
    Given(*const libc::pthread_attr_t),
    /// A copy with another stack.
    Changed(Box<libc::pthread_attr_t>),
}

impl Attributes {
    fn of(given: *const libc::pthread_attr_t) -> Self {
        if given.is_null() {
            return Self::with_bounded_stack();
        }
        let (mut stack, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the program's attributes, which live until LAPI_Init returns.
        if unsafe { libc::pthread_attr_getstack(given, &mut stack, &mut size) } != 0 {
            return Self::Given(given);
        }
        // With no address in them the attributes return the size below 0.
        let has_place = stack.addr().wrapping_add(size) != 0;
        if !has_place && size >= LEAST_STACK {
            return Self::Given(given);
        }
        Self::Changed(copy(given, size.max(LEAST_STACK)))
    }

    /// The stack of a thread is as large as the user's limit for the first one (ulimit -s), which
    /// may be more than there is memory.
    fn with_bounded_stack() -> Self {
        // Without a limit the C library has a size of its own.
        let limit = rustix::process::getrlimit(rustix::process::Resource::Stack).current;
        match limit.map(|limit| limit.clamp(LEAST_STACK as u64, MOST_STACK as u64)) {
            Some(stack) if Some(stack) != limit => Self::Changed(with_stack(stack as usize)),
            _ => Self::Given(ptr::null()),
        }
    }

    fn as_ptr(&self) -> *const libc::pthread_attr_t {
        match self {
            Self::Given(given) => *given,
            Self::Changed(changed) => &**changed,
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        if let Self::Changed(changed) = self {
            // SAFETY: made by `with_stack`.
            unsafe { libc::pthread_attr_destroy(&mut **changed) };
        }
    }
}

/// Attributes whose stack has this size.
fn with_stack(size: usize) -> Box<libc::pthread_attr_t> {
    // SAFETY: bytes for the system, which initialises them first.
    unsafe {
        let mut attributes: Box<libc::pthread_attr_t> = Box::new(std::mem::zeroed());
        libc::pthread_attr_init(&mut *attributes);
        libc::pthread_attr_setstacksize(&mut *attributes, size);
        attributes
    }
}

/// A copy of the attributes without the address of a stack, which only one thread could use.
fn copy(given: *const libc::pthread_attr_t, stack: usize) -> Box<libc::pthread_attr_t> {
    let mut to = with_stack(stack);
    // SAFETY: `given` is the program's, `to` is initialised; each value that is read from one is
    // valid for the other.
    unsafe {
        let mut number = 0;
        if pthread_attr_getdetachstate(given, &mut number) == 0 {
            libc::pthread_attr_setdetachstate(&mut *to, number);
        }
        if pthread_attr_getscope(given, &mut number) == 0 {
            pthread_attr_setscope(&mut *to, number);
        }
        if libc::pthread_attr_getinheritsched(given, &mut number) == 0 {
            libc::pthread_attr_setinheritsched(&mut *to, number);
        }
        if libc::pthread_attr_getschedpolicy(given, &mut number) == 0 {
            libc::pthread_attr_setschedpolicy(&mut *to, number);
        }
        let mut schedule = std::mem::zeroed();
        if libc::pthread_attr_getschedparam(given, &mut schedule) == 0 {
            libc::pthread_attr_setschedparam(&mut *to, &schedule);
        }
        let mut guard = 0;
        if libc::pthread_attr_getguardsize(given, &mut guard) == 0 {
            libc::pthread_attr_setguardsize(&mut *to, guard);
        }
        let mut processors: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        // Without any in them the attributes return the largest set.
        if libc::pthread_attr_getaffinity_np(given, size, &mut processors) == 0
            && (1..libc::CPU_SETSIZE).contains(&libc::CPU_COUNT(&processors))
        {
            libc::pthread_attr_setaffinity_np(&mut *to, size, &processors);
        }
    }
    to
}

unsafe extern "C" {
    fn pthread_attr_getdetachstate(attr: *const libc::pthread_attr_t, state: *mut libc::c_int)
    -> libc::c_int;
    fn pthread_attr_getscope(attr: *const libc::pthread_attr_t, scope: *mut libc::c_int) -> libc::c_int;
    fn pthread_attr_setscope(attr: *mut libc::pthread_attr_t, scope: libc::c_int) -> libc::c_int;
}
