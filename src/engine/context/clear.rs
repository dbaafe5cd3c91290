//! Whether anything hinders the short ways of small messages: many conditions in one word.
//!
//! The calls that send and take small messages leave these conditions as they are. So what one of
//! them has found out is kept for the next, until then in the core. No code that changes a
//! condition has to know of that: whoever gets the lock takes the word out of the core, whoever
//! uses the core afterwards drops it ([`Held::core`]), and only a call whose end was that of a
//! short way ([`Held::stays_clear`]) puts it back.

use super::event_loop::ArmedBy;
use super::{Core, Held};
use std::mem::take;

/// What nothing hinders, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clear(u8);

impl Clear {
    /// Sending a message at once: nothing waits, all peers are up, and no call is further up the
    /// stack.
    pub const TO_SEND: Self = Self(1);
    /// Taking what has come and doing nothing else: besides, no other thread waits or is to be
    /// relieved, and no event loop of the program is to be told. A collective operation may be
    /// under way, and is advanced by who waits for it.
    pub const TO_TAKE: Self = Self(2);

    #[inline(always)]
    fn includes(self, way: Self) -> bool {
        self.0 & way.0 != 0
    }

    fn find(core: &Core) -> Self {
        let waits = core.outbox.waiting() || core.has_work() || core.has_deferred();
        let unusual = core.is_closing() || core.one_sided.are_possible() || !core.membership.are_all_up();
        if waits || unusual || !core.watched.is_empty() {
            return Self::default();
        }
        let waiters = &core.waiters;
        if waiters.waiting() != 0 || waiters.armed() != ArmedBy::NoThread || waiters.awaits_news() {
            return Self::TO_SEND;
        }
        Self(Self::TO_SEND.0 | Self::TO_TAKE.0)
    }
}

impl Held<'_> {
    /// The core, if there is one, from which this takes what is known: to be called when the lock
    /// was taken. Where a call further up the stack has the lock, nothing is known.
    #[inline(always)]
    pub(super) fn begin(&mut self) -> Option<&mut Core> {
        let alone = self.is_alone();
        let kept = &mut self.kept;
        // SAFETY: as in `try_core`: this thread has the lock, and no reference into the core.
        let core = unsafe { (*self.context.core.get()).as_deref_mut() }?;
        let known = take(&mut core.clear);
        if alone {
            *kept = known;
        }
        Some(core)
    }

    /// A short way begins, before it uses the core: whether nothing hinders it.
    #[inline(always)]
    pub(in crate::engine) fn begins_clear(&mut self, way: Clear) -> bool {
        self.clear = take(&mut self.kept);
        self.is_clear(way)
    }

    /// Whether nothing hinders this way. Looks at the conditions if the short way that is under way
    /// does not know.
    #[inline(always)]
    pub(in crate::engine) fn is_clear(&mut self, way: Clear) -> bool {
        let known = self.clear.includes(way);
        debug_assert!(!known || self.find_clear().includes(way), "no call puts back what it has changed");
        known || self.is_found_clear(way)
    }

    #[inline(never)]
    fn is_found_clear(&mut self, way: Clear) -> bool {
        self.clear = self.find_clear();
        self.clear.includes(way)
    }

    fn find_clear(&mut self) -> Clear {
        let alone = self.is_alone() && !self.dispatching();
        if alone { Clear::find(self.core()) } else { Clear::default() }
    }

    /// The end of a short way: what was found out holds for the next one, too, if this value does
    /// nothing else.
    #[inline(always)]
    pub(in crate::engine) fn stays_clear(&mut self) {
        debug_assert_eq!(self.find_clear().0 & self.clear.0, self.clear.0, "a short way changes none of it");
        self.kept = take(&mut self.clear);
    }

    /// The lock is left: the next call may begin with what this one has kept.
    #[inline(always)]
    pub(super) fn put_back_clear(&mut self) {
        let kept = self.kept;
        if kept != Clear::default()
            && let Some(core) = self.try_core()
        {
            core.clear = kept;
        }
    }

    /// Nothing is known any more: others may have had the lock, or anything may be done now.
    #[inline]
    pub(in crate::engine) fn forget_clear(&mut self) {
        self.clear = Clear::default();
        self.core().clear = Clear::default();
    }
}
