//! Calls that a handler of one context makes on another context.
//!
//! A handler runs with its context's lock held. If its call on another context waited for that
//! one's lock, two threads in handlers of two contexts that call each other's could wait for ever.
//! So a thread never waits for the lock of one context while it holds that of another: where the
//! lock is not free at once, the call releases the handler's lock, and takes it again when it has
//! released the other one (`docs/design/0011-handlers-and-other-handles.md`).
//!
//! A process with one context pays one load for this, in each call.

use crate::base::handler_runs::{self, Handler};
use crate::base::long_calls;
use crate::engine::context::lock::Hold;
use crate::engine::context::{Context, Held};
use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many contexts of the process are open. A child of fork begins with its parent's number: too
/// many does no harm.
static OPEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The context in whose handler this thread is, while several are open.
    static WITHIN: Cell<*const Context> = const { Cell::new(ptr::null()) };
    /// A call on another context has released the lock of that one.
    static LET_GO: Cell<bool> = const { Cell::new(false) };
}

/// A context was opened.
pub(super) fn opened() {
    OPEN.fetch_add(1, Ordering::Relaxed);
}

/// A context was closed.
pub(super) fn closed() {
    OPEN.fetch_sub(1, Ordering::Relaxed);
}

/// Whether several contexts are open.
#[inline(always)]
pub(super) fn several() -> bool {
    #[cfg(all(test, not(loom)))]
    if crate::base::simulation::active() {
        // Whatever else the process does meanwhile: a seed gives the same run.
        return true;
    }
    OPEN.load(Ordering::Relaxed) > 1
}

/// Whether this thread is in a handler of another context than this one.
#[cold]
#[inline(never)]
pub(super) fn is_within_another(context: &Context) -> bool {
    let within = WITHIN.get();
    !within.is_null() && !ptr::eq(within, context)
}

impl Held<'_> {
    /// Calls a handler of the program, from inside of a round of the dispatcher. What waits for
    /// other packets is sent before: the handler may take long.
    #[inline]
    pub(in crate::engine) fn run_handler<R>(&mut self, handler: Handler, run: impl FnOnce() -> R) -> R {
        self.core().flush();
        let context = self.context();
        if handler_runs::watched() {
            long_calls::begins();
            return handler_runs::run_watched(handler, || context.run_unwatched(handler, run));
        }
        context.run_unwatched(handler, run)
    }
}

impl Context {
    /// Calls a handler of the program that no profiler watches, from inside of a round of the
    /// dispatcher.
    #[inline(always)]
    pub(in crate::engine) fn run_unwatched<R>(&self, handler: Handler, run: impl FnOnce() -> R) -> R {
        let before = if several() { Some(WITHIN.replace(self)) } else { None };
        let result = self.activity.run(handler.kind, handler.address, run);
        if let Some(before) = before {
            WITHIN.set(before);
        }
        result
    }

    /// Takes the lock for a call.
    #[inline(always)]
    pub(super) fn enter_lock(&self) -> Hold {
        if several() { self.enter_lock_beside() } else { self.lock.enter() }
    }

    /// Takes the lock for a call that can do without it: `None` when another thread holds it.
    #[inline]
    pub(super) fn try_enter_lock(&self) -> Option<Hold> {
        let hold = self.lock.try_enter()?;
        let within = if several() { WITHIN.get() } else { ptr::null() };
        let beside = !within.is_null() && !ptr::eq(within, self) && hold == Hold::Taken;
        Some(if beside { Hold::Within } else { hold })
    }

    #[cold]
    fn enter_lock_beside(&self) -> Hold {
        let within = WITHIN.get();
        if within.is_null() || ptr::eq(within, self) || self.lock.mine() {
            return self.lock.enter();
        }
        if self.lock.try_enter().is_none() {
            let_go(within);
            self.lock.enter();
        }
        Hold::Within
    }
}

/// Releases the lock of the context in whose handler this thread is.
fn let_go(context: *const Context) {
    // SAFETY: the frame that has called the handler is further up this thread's stack, and
    // uses the context.
    let context = unsafe { &*context };
    if context.lock.mine() && !LET_GO.replace(true) {
        let mut held = std::mem::ManuallyDrop::new(Held::by(context, Hold::Nested));
        held.prepare_to_leave(false);
        held.step_out();
        // SAFETY: this thread holds the lock. No frame further up has a reference into the core:
        // only a handler leads here.
        unsafe { context.lock.leave() };
    }
}

/// A call on another context is over, and has released that context's lock: takes the
/// handler's lock again.
pub(super) fn take_again() {
    if LET_GO.replace(false)
        && let Some(context) = NonNull::new(WITHIN.get().cast_mut())
    {
        // SAFETY: as in `let_go`.
        let context = unsafe { context.as_ref() };
        context.lock.enter();
        std::mem::ManuallyDrop::new(Held::by(context, Hold::Nested)).step_in();
    }
}
