//! How a program makes progress that does not wait: it polls, or makes a call of another kind.

use crate::base::clock::{self, ticks};
use crate::base::long_calls;
use crate::engine::context::Held;
use crate::engine::context::clear::Clear;
use crate::engine::progress::short_take::{self, Looked};
use crate::engine::progress::sleep::take_over;
use crate::engine::progress::{dispatcher, lost_peers};
use crate::transport::Inbound;

/// A thread that polls by itself and never sleeps checks once in this many polls whether a check of
/// its peers is due.
const POLLS_BETWEEN_LOOKS: u64 = 1 << 6;

/// One round of the dispatcher for a thread of the program that looks for messages by itself, again
/// and again. Where there are more tasks than processors it yields the processor when it has found
/// nothing for a while. Returns whether anything moved.
#[inline(always)]
pub fn poll_once(held: &mut Held<'_>) -> bool {
    if held.begins_clear(Clear::TO_TAKE) {
        let core = held.core();
        let looks_after_peers = core.waiters.next_poll_is_one_of(POLLS_BETWEEN_LOOKS);
        if !looks_after_peers && !core.options.wait_policy.crowded() && !core.collectives.busy() {
            let now = ticks();
            core.waiters.count_activity();
            core.waiters.count_poll(POLLS_BETWEEN_LOOKS);
            core.waiters.note_poll(now);
            return match short_take::look(held, Some(now)) {
                Looked::Nothing => {
                    held.stays_clear();
                    false
                }
                Looked::Taken => take_more(held),
                Looked::Packet(packet) => turn(held, Some(packet)),
                Looked::Something => turn(held, None),
            };
        }
    }
    poll_fully(held)
}

/// A packet has come from the peer to which the call has sent: takes it.
#[inline(never)]
pub(super) fn take_one(held: &mut Held<'_>) {
    if !held.is_clear(Clear::TO_TAKE) {
        turn(held, None);
        return held.wake_waiters();
    }
    match short_take::look(held, None) {
        Looked::Taken | Looked::Nothing => held.stays_clear(),
        Looked::Packet(packet) => {
            turn(held, Some(packet));
        }
        Looked::Something => {
            turn(held, None);
        }
    }
}

/// A short message has come and was taken: takes those that follow it, as many as a round does.
#[inline(never)]
fn take_more(held: &mut Held<'_>) -> bool {
    for _ in 1..dispatcher::BATCH {
        if !held.is_clear(Clear::TO_TAKE) {
            return true;
        }
        match short_take::look(held, None) {
            Looked::Taken => {}
            Looked::Nothing => break,
            Looked::Packet(packet) => return turn(held, Some(packet)),
            Looked::Something => {
                turn(held, None);
                return true;
            }
        }
    }
    held.stays_clear();
    true
}

/// A round of the dispatcher, which begins with this packet.
#[inline(never)]
fn turn(held: &mut Held<'_>, first: Option<Inbound>) -> bool {
    dispatcher::turn_until(held, first, &mut |_| None::<()>).0
}

/// [`poll_once`] in all cases.
#[inline(never)]
fn poll_fully(held: &mut Held<'_>) -> bool {
    if held.in_handler() {
        return false;
    }
    take_over(held);
    let core = held.core();
    core.waiters.count_activity();
    if core.waiters.waiting() == 0 {
        // A thread that polls now will most likely poll again.
        core.set_polling(false);
    }
    // Not by `activity`, which waits change as well: between two polls by an even number, perhaps.
    if core.waiters.count_poll(POLLS_BETWEEN_LOOKS) {
        lost_peers::look_when_due(held);
    }
    let moved = !held.core().is_idle() && dispatcher::turn(held);
    let core = held.core();
    if moved {
        core.waiters.note_found(true);
    } else if core.options.wait_policy.crowded() {
        core.waiters.note_found(false);
        if core.waiters.idle_polls() > core.options.wait_policy.spin {
            long_calls::begins();
            held.unlocked(clock::yield_now);
        }
    }
    moved
}

/// One round of the dispatcher in a call that neither sends nor waits. In polling mode messages are
/// served by calls only, so every call does its part; it costs no more than a check of the rings
/// when nothing has arrived.
#[inline(always)]
pub fn make_progress(held: &mut Held<'_>) {
    if held.begins_clear(Clear::TO_TAKE)
        && !held.core().membership.look_is_wanted()
        && !held.core().collectives.busy()
    {
        match short_take::look(held, None) {
            Looked::Nothing => return held.stays_clear(),
            Looked::Packet(packet) => {
                turn(held, Some(packet));
            }
            Looked::Taken | Looked::Something => {}
        }
    }
    make_progress_fully(held);
}

/// [`make_progress`] in all cases.
#[inline(never)]
fn make_progress_fully(held: &mut Held<'_>) {
    if held.context().activity.thread() != 0 {
        return;
    }
    let idle = held.core().is_idle();
    if !idle {
        dispatcher::turn(held);
    }
    if held.core().membership.look_is_wanted() {
        // A death is to be reported.
        lost_peers::look_after_peers(held);
    } else if idle {
        return;
    }
    held.wake_waiters();
}
