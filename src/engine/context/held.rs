//! The way to the core, for as long as the lock is held.

use super::clear::Clear;
use super::event_loop::ArmedBy;
use super::lock::Hold;
use super::{Context, Core, other_contexts};
use crate::abi::LAPI_ERR_UNKNOWN;
use crate::base::event_count::ALL;
use crate::base::known_threads::this_thread;
use crate::error::{Error, Result};
use crate::transport::Want;
use std::marker::PhantomData;

/// Proof that the calling thread holds the lock, and the way to the core. A thread has one at a
/// time, but for the calls of its handlers.
pub struct Held<'a> {
    pub(super) context: &'a Context,
    hold: Hold,
    /// The call sends: see [`Held::has_sent`].
    sends: bool,
    /// The lock belongs to the thread.
    here: PhantomData<*const ()>,
}

impl<'a> Held<'a> {
    pub(super) fn by(context: &'a Context, hold: Hold) -> Self {
        Self { context, hold, sends: false, here: PhantomData }
    }

    /// The value of a short call that has taken the lock, and `sends`: see [`Held::has_sent`].
    pub(super) fn of_short(context: &'a Context, sends: bool) -> Self {
        Self { context, hold: Hold::Taken, sends, here: PhantomData }
    }

    /// The end of a call that sends, which others may follow at once: when it leaves the lock,
    /// packets may wait for those of the next ones.
    #[inline]
    pub(in crate::engine) fn has_sent(&mut self) {
        self.sends = true;
    }

    /// The context.
    #[inline]
    pub fn context(&self) -> &'a Context {
        self.context
    }

    /// How many datagrams a transport acknowledges together from now on, at most (the attribute
    /// ACK_THRESHOLD).
    pub fn acknowledge_every(&mut self, datagrams: u16) {
        self.core().transport.want(Want::AcknowledgeEvery(datagrams));
    }

    /// The core. The reference must be gone before a handler of the program is called.
    #[inline]
    pub(in crate::engine) fn core(&mut self) -> &mut Core {
        // What is done with it may change anything.
        self.context.clear.set(Clear::default());
        self.try_core()
            .expect("the core stays while a call is inside, see Context::enter and progress::closing")
    }

    /// Whether this call comes from a handler that runs under a lock: of this context or, by this
    /// thread, of another one.
    #[inline]
    pub fn in_handler(&self) -> bool {
        self.hold == Hold::Within || self.context.activity.here()
    }

    /// Whether this call has taken the lock, and leaves it at its end: no call of this thread that
    /// holds it is further up its stack, and the program does not hold it. An error handler may
    /// run in a call that has left the lock.
    #[inline]
    pub(in crate::engine) fn is_alone(&self) -> bool {
        self.hold == Hold::Taken
    }

    /// Whether a round of the dispatcher is under way, in this thread or in another one.
    #[inline]
    pub fn dispatching(&self) -> bool {
        self.context.activity.busy()
    }

    /// Whether another thread waits for the lock. May be out of date when it is read.
    #[inline]
    pub(in crate::engine) fn is_lock_wanted(&self) -> bool {
        self.context.lock.is_wanted()
    }

    /// Begins a round of the dispatcher, which ends by [`Self::end_round`]. `false`: a round is
    /// under way already, or this thread is in a handler of another context; nothing has changed.
    #[inline]
    pub(in crate::engine) fn begin_round(&mut self) -> bool {
        self.context.clear.set(Clear::default());
        // The lock knows the calling thread, which holds it.
        self.hold != Hold::Within && self.context.activity.begin(self.context.lock_owner())
    }

    /// The end of what [`Self::begin_round`] began.
    #[inline]
    pub(in crate::engine) fn end_round(&self) {
        self.context.activity.end();
    }

    #[inline]
    pub(super) fn try_core(&mut self) -> Option<&mut Core> {
        // SAFETY: the lock is held by this thread. Other `Held`s of this thread may exist further
        // up the stack, but they have no reference out while code of the program runs, and only
        // that leads back here: a handler, or a call of `wake`.
        unsafe { (*self.context.core.get()).as_deref_mut() }
    }

    /// Lets another thread have the lock for a moment, if one waits.
    #[inline]
    pub fn yield_lock(&mut self) {
        self.core().flush();
        if self.hold != Hold::Nested && self.is_lock_wanted() {
            self.step_out();
            // SAFETY: this thread holds the lock.
            unsafe { self.context.lock.yield_to_others() }
            self.step_in();
        }
    }

    /// Notes that this thread will need the core again, so that it is not taken out meanwhile.
    #[inline]
    pub(in crate::engine) fn step_out(&mut self) {
        self.core().waiters.step_out(this_thread());
    }

    /// The end of what [`Self::step_out`] began.
    #[inline]
    pub(in crate::engine) fn step_in(&mut self) {
        self.core().waiters.step_in(this_thread());
    }

    /// A call is over, and may have left work behind: a thread that sleeps for this context must be
    /// woken, or no thread continues.
    #[inline]
    pub fn wake_waiters(&mut self) {
        let core = self.core();
        let asleep = core.waiters.armed != ArmedBy::NoThread || core.waiters.on_descriptor;
        if asleep && (core.outbox.waiting() || core.has_work() || core.has_deferred()) {
            core.transport.want(Want::Wake);
        }
    }

    /// Whether a frame further up this thread's stack is in the middle of a call, as when a handler
    /// made this one.
    pub fn nested(&mut self) -> bool {
        self.in_handler() || self.core().waiters.inside().contains(&this_thread())
    }

    /// Whether this thread has another [`Held`] further up its stack, and is in no handler that the
    /// dispatcher has called since.
    #[inline(always)]
    pub(in crate::engine) fn is_second(&self) -> bool {
        self.hold == Hold::Nested && !self.in_handler()
    }

    /// This value, unless it is the second one.
    #[inline(always)]
    pub(super) fn unless_second(self) -> Result<Self> {
        if self.is_second() { Err(second()) } else { Ok(self) }
    }

    /// Runs something without the lock, if it is ours to release.
    pub fn unlocked<R>(&mut self, run: impl FnOnce() -> R) -> R {
        if self.hold == Hold::Nested { run() } else { self.without_lock(run) }
    }

    /// Runs something without the lock in any case. Calls further up the stack have no reference
    /// into the core out, since only handlers lead from them to here.
    pub(super) fn without_lock<R>(&mut self, run: impl FnOnce() -> R) -> R {
        self.prepare_to_leave(false);
        self.step_out();
        // SAFETY: this thread holds the lock, and takes it again before this value can be used.
        let calls = unsafe { self.context.lock.leave_calls() };
        let result = run();
        self.context.lock.enter_calls(calls);
        self.step_in();
        result
    }

    /// The end of a value that did not take the lock. A lock of the program is given back to it.
    /// First a thread that waits for the lock has a turn: the program may hold the lock for its
    /// whole run, so that only its calls let other threads have it. The program's hold ends here
    /// when the handle was terminated meanwhile.
    #[inline(never)]
    fn give_back(&mut self) {
        if self.hold == Hold::Nested {
            if let Some(core) = self.try_core() {
                core.flush();
            }
            return self.context.lock.leave_nested();
        }
        self.prepare_to_leave(false);
        if self.hold == Hold::Within {
            // SAFETY: this value took the lock.
            unsafe { self.context.lock.leave() }
            return other_contexts::take_again();
        }
        let (context, handle) = (self.context, self.context.handle());
        // SAFETY: this thread holds the lock; this was the outermost call.
        unsafe {
            context.lock.yield_to_others();
            if context.serves(handle) {
                context.keep_for_program();
                context.lock.give_back();
            } else {
                context.lock.leave();
            }
        }
    }

    /// What is to be done before another thread can have the lock. With `sends`, packets may
    /// wait for others.
    #[inline]
    pub(super) fn prepare_to_leave(&mut self, sends: bool) {
        let context = self.context;
        if let Some(core) = self.try_core()
            && (core.waiters.has_news() | core.is_holding_back())
        {
            wake_others(context, core, sends);
        }
    }
}

#[cold]
fn second() -> Error {
    Error::new(LAPI_ERR_UNKNOWN, "the thread is in the middle of another call of this handle")
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.hold != Hold::Taken {
            return self.give_back();
        }
        self.prepare_to_leave(self.sends);
        // SAFETY: this value took the lock.
        unsafe { self.context.lock.leave() }
    }
}

/// Wakes the sleeping threads, if something has changed, and sends what waits for other packets. A
/// call that sends leaves that to the next one, or to the notifier if the program computes from now
/// on (`docs/design/0025-coalescing.md`).
#[cold]
fn wake_others(context: &Context, core: &mut Core, sends: bool) {
    if core.waiters.has_news() {
        wake_sleepers(context, core);
    }
    if core.is_holding_back() && !(sends && context.notifier.looks_soon()) {
        core.flush();
    }
}

fn wake_sleepers(context: &Context, core: &mut Core) {
    core.waiters.take_news();
    if core.waiters.on_descriptor {
        core.transport.want(Want::Wake);
    }
    if core.waiters.parked() != 0 {
        context.parking.notify(ALL);
    }
    core.call_event_loop();
}
