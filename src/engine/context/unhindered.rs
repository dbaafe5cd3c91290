//! The way to the core of a call that nothing hinders ([`Clear`]).
//!
//! Such a call is a [`ShortCall`] from its beginning, or comes by a [`Held`]. A short call takes
//! the lock only where that costs no more than stores and loads, and if nothing is known to
//! hinder it; then the context is open and no other call is on this thread's stack, so that it
//! need not look at that. Where it does not begin, or leaves something to be done, there is
//! [`Held`].

use super::clear::Clear;
use super::lock::Entry;
use super::{Context, Core, Held, other_contexts};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// The core, while nothing hinders a short way.
pub struct Unhindered<'a> {
    context: &'a Context,
    core: NonNull<Core>,
}

impl<'a> Unhindered<'a> {
    /// The context.
    #[inline(always)]
    pub(in crate::engine) fn context(&self) -> &'a Context {
        self.context
    }

    /// The core. The reference must be gone before a handler of the program is called, and
    /// [`Self::renew`] follows the handler.
    #[inline(always)]
    pub(in crate::engine) fn core(&mut self) -> &mut Core {
        // SAFETY: the lock is held by this thread. A `Held` that this has come by is borrowed, a
        // short call has none, and after those of handlers and of `go_beyond` the pointer is made
        // again.
        unsafe { self.core.as_mut() }
    }

    /// Finds the core again, after calls of a handler have used it.
    #[inline(always)]
    pub(in crate::engine) fn renew(&mut self) {
        // SAFETY: the lock is held by this thread, and no reference into the core is out.
        if let Some(core) = unsafe { (*self.context.core.get()).as_deref_mut() } {
            self.core = core.into();
        }
    }

    /// Whether nothing is known to hinder that, too.
    #[inline(always)]
    pub(in crate::engine) fn includes(&self, way: Clear) -> bool {
        self.context.clear.get().includes(way)
    }

    /// Something is changed that may hinder other calls.
    #[inline(always)]
    pub(in crate::engine) fn forget(&mut self) {
        self.context.clear.set(Clear::default());
    }

    /// Does what no short way does, in the middle of one. Afterwards nothing is known, and the lock
    /// may have been others' meanwhile: a short call goes on by [`ShortCall::go_on`].
    pub(in crate::engine) fn go_beyond<R>(&mut self, run: impl FnOnce(&mut Held<'_>) -> R) -> R {
        self.forget();
        // The lock is not this value's to leave.
        let result = run(&mut ManuallyDrop::new(Held::of_short(self.context, false)));
        self.renew();
        result
    }

    /// What is known is so, in builds that check themselves.
    #[inline(always)]
    fn check(&mut self) {
        #[cfg(debug_assertions)]
        {
            let known = self.context.clear.get();
            assert!(known != Clear::default(), "a short call that has forgotten what is known goes on");
            assert!(known.holds_in(Clear::find(self.core())), "no short way changes what is known");
        }
    }
}

/// A call that has begun by a short way, and has the lock.
pub struct ShortCall<'a> {
    way: Unhindered<'a>,
    entry: Entry<'a>,
    /// Packets that wait for others may go on waiting for those of the next call.
    sends: bool,
}

impl Context {
    /// Takes the lock for a call by this way, if that can be done at once and nothing is known to
    /// hinder it.
    #[inline(always)]
    pub fn enter_short(&self, way: Clear) -> Option<ShortCall<'_>> {
        if other_contexts::several() && other_contexts::is_within_another(self) {
            return None;
        }
        let entry = self.lock.enter_at_once()?;
        if !self.clear.get().includes(way) {
            // SAFETY: this call has entered so.
            unsafe { self.lock.leave_at_once(entry) }
            return None;
        }
        // SAFETY: this thread has the lock, and no reference into the core: it is in no other call.
        // There is a core where anything is known of it.
        let core = unsafe { (*self.core.get()).as_deref_mut().unwrap_unchecked() };
        let mut way = Unhindered { context: self, core: core.into() };
        way.check();
        Some(ShortCall { way, entry, sends: false })
    }
}

impl<'a> ShortCall<'a> {
    /// The context.
    #[inline(always)]
    pub fn context(&self) -> &'a Context {
        self.way.context
    }

    /// The way to the core.
    #[inline(always)]
    pub(in crate::engine) fn way(&mut self) -> &mut Unhindered<'a> {
        &mut self.way
    }

    /// See [`Held::has_sent`].
    #[inline(always)]
    pub(in crate::engine) fn has_sent(&mut self) {
        self.sends = true;
    }

    /// Whether another thread waits for the lock. May be out of date when it is read.
    #[inline(always)]
    pub(in crate::engine) fn is_lock_wanted(&self) -> bool {
        self.entry.is_ended()
    }

    /// This call does what no short way does, and ends with that.
    #[inline(always)]
    pub(in crate::engine) fn go_on<R>(self, run: impl FnOnce(&mut Held<'_>) -> R) -> R {
        let call = ManuallyDrop::new(self);
        run_held(call.way.context, call.sends, run)
    }
}

/// Away from the short call, which gets by with registers.
#[cold]
#[inline(never)]
fn run_held<R>(context: &Context, sends: bool, run: impl FnOnce(&mut Held<'_>) -> R) -> R {
    run(&mut Held::of_short(context, sends))
}

impl Drop for ShortCall<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.way.check();
        let core = self.way.core();
        if core.waiters.has_news() | core.is_holding_back() {
            return run_held(self.way.context, self.sends, |_| ());
        }
        // SAFETY: this call has entered so, and has not left the lock since.
        unsafe { self.way.context.lock.leave_at_once(self.entry) }
    }
}

impl Held<'_> {
    /// The way to the core of a short way in this call, if nothing hinders it. Looks at the
    /// conditions if nothing is known of them.
    #[inline]
    pub(in crate::engine) fn unhindered(&mut self, way: Clear) -> Option<Unhindered<'_>> {
        if !self.is_alone() || self.dispatching() {
            return None;
        }
        let context = self.context;
        let core = self.try_core()?;
        if !context.clear.get().includes(way) {
            context.clear.set(Clear::find(core));
            if !context.clear.get().includes(way) {
                return None;
            }
        }
        let mut way = Unhindered { context, core: core.into() };
        way.check();
        Some(way)
    }
}
