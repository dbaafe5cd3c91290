//! Small packets that wait in the transport for others ([`Endpoint::holds_back_since`]): when they leave, where the program or a handler of it may
//! take long. `docs/design/0025-coalescing.md` has the reasons.

use super::active_handler::{Kind, State};
use super::core::Core;
use super::{Context, Held};
use crate::base::clock::{self, ticks};
#[cfg(doc)]
use crate::transport::Endpoint;

/// A header handler of more ticks than this, some 100 microseconds, takes long.
const LONG_HANDLER: u64 = 300_000;

/// How many of the next header handlers are expected to take long, too.
const NEXT_HANDLERS: u32 = 64;

impl Context {
    /// The program keeps the lock from now on, perhaps for long: what waits for other packets is sent, which the notifier cannot do.
    ///
    /// # Safety
    /// The calling thread must hold the lock, and no reference into the core may be out.
    pub(in crate::engine) unsafe fn keep_for_program(&self) {
        // SAFETY: the caller's promise.
        let core = unsafe { (*self.core.get()).as_deref_mut() };
        if let Some(core) = core.filter(|core| core.coalesces) {
            core.transport.send_held_back();
        }
    }
}

impl Held<'_> {
    /// Sends what waits for other packets: the program gets the lock, perhaps for long, so that the notifier cannot.
    #[inline]
    pub(in crate::engine) fn send_held_back(&mut self) {
        if let Some(core) = self.try_core()
            && core.coalesces
            && core.transport.holds_back_since().is_some()
        {
            core.transport.send_held_back();
        }
    }

    /// A header handler is to be called: when that is, in ticks, if small packets may wait for others.
    #[inline]
    pub(in crate::engine) fn before_header_handler(&mut self) -> Option<u64> {
        let core = self.core();
        if !core.coalesces {
            return None;
        }
        if core.long_handlers != 0 {
            core.transport.send_held_back();
        }
        Some(ticks())
    }

    /// A header handler has returned, which was called then. When it has taken long, the next ones send at once.
    #[inline]
    pub(in crate::engine) fn after_header_handler(&mut self, called: Option<u64>) {
        if let Some(called) = called {
            let long = ticks().saturating_sub(called) > LONG_HANDLER;
            let core = self.core();
            core.long_handlers = if long { NEXT_HANDLERS } else { core.long_handlers.saturating_sub(1) };
        }
    }

    /// A call that a handler has made is over. A header handler is short, mostly, and its messages may be the replies to a stream.
    pub(super) fn after_nested_call(&mut self) {
        let in_header_handler = self.context.activity.state() == State::Handler(Kind::Header);
        if !in_header_handler || self.try_core().is_some_and(|core| core.long_handlers != 0) {
            self.send_held_back();
        }
    }
}

/// The lock is left: lets the notifier send what waits, since the program may compute from now on.
pub(super) fn leave_to_notifier(context: &Context, core: &mut Core) {
    let planned = std::mem::take(&mut core.notifier_plans);
    // The notifier may run one, which may take long.
    if core.error_handlers != 0 {
        core.transport.send_held_back();
    }
    let Some(since) = core.transport.holds_back_since() else { return };
    // Without room it is not tried again before its time, for which the notifier has planned.
    if !planned || core.transport.due().is_none_or(|at| at <= clock::now()) {
        context.notifier.look_soon(since);
    }
}
