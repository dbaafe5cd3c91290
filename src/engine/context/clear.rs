//! Whether anything hinders the short ways of small messages: many conditions in one word.
//!
//! The short ways leave these conditions as they are, and use the core by [`Unhindered`] alone. So
//! what one of them has found out stays in the word for the next one. No code that changes a
//! condition has to know of that: [`Held::core`] empties the word, and without the core no
//! condition changes but one that ends: an event loop that has been woken.
//!
//! A word that is not empty says, too, that the context is open, and that no round of the
//! dispatcher is under way, but for one whose header handler has used no core.
//!
//! [`Unhindered`]: super::unhindered::Unhindered
//! [`Held::core`]: super::Held

use super::Core;
use super::event_loop::ArmedBy;
use std::sync::atomic::{AtomicU8, Ordering};

/// What nothing hinders, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clear(u8);

impl Clear {
    /// Sending a message at once: nothing waits, all peers are up, and no call is further up the
    /// stack.
    pub const TO_SEND: Self = Self(1);
    /// Taking what has come and doing nothing else: besides, no other thread waits or is to be
    /// relieved, and no event loop of the program is to be called. A collective operation may be
    /// under way, and is advanced by who waits for it.
    pub const TO_TAKE: Self = Self(2);
    /// Taking what has come in place of a round of the dispatcher: besides, no collective operation
    /// is under way, and no death is to be reported.
    pub const FOR_A_ROUND: Self = Self(4);
    /// [`Self::FOR_A_ROUND`] where there is a processor for each task.
    pub const TO_POLL: Self = Self(8);
    /// Looking again and again for what has come, instead of waiting: besides [`Self::TO_TAKE`],
    /// the transport has no deadlines, and there is a processor for each task.
    pub const TO_LOOK: Self = Self(16);

    /// Whether that is one of the ways that nothing hinders.
    #[inline(always)]
    pub(super) fn includes(self, way: Self) -> bool {
        self.0 & way.0 != 0
    }

    /// Looks at all conditions. To be asked by the thread that has the lock for a call that is
    /// the only one on its stack, while no round of the dispatcher is under way.
    pub(super) fn find(core: &Core) -> Self {
        let waits = core.outbox.waiting() || core.has_work() || core.has_deferred();
        let unusual = core.is_closing() || core.one_sided.are_possible() || !core.membership.are_all_up();
        if waits || unusual || !core.watched.is_empty() {
            return Self::default();
        }
        let waiters = &core.waiters;
        let others = waiters.waiting() != 0 || waiters.armed != ArmedBy::NoThread;
        if others || waiters.awaits_news() {
            return Self::TO_SEND;
        }
        let round = !core.collectives.busy() && !core.membership.look_is_wanted();
        let policy = &core.options.wait_policy;
        let looks = policy.looks_first() && !core.keeps_time();
        Self::TO_SEND
            .and(Self::TO_TAKE)
            .and_if(round, Self::FOR_A_ROUND)
            .and_if(round && !policy.crowded(), Self::TO_POLL)
            .and_if(looks, Self::TO_LOOK)
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn and_if(self, holds: bool, other: Self) -> Self {
        if holds { self.and(other) } else { self }
    }

    /// Whether all that this says is so in `other`, too.
    #[cfg(debug_assertions)]
    pub(super) fn holds_in(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}

/// What is known of a context, guarded by its lock.
#[derive(Default)]
pub(super) struct Known(AtomicU8);

impl Known {
    /// What is known.
    #[inline(always)]
    pub(super) fn get(&self) -> Clear {
        Clear(self.0.load(Ordering::Relaxed))
    }

    /// Nothing is known any more, or this is.
    #[inline(always)]
    pub(super) fn set(&self, clear: Clear) {
        self.0.store(clear.0, Ordering::Relaxed);
    }
}
