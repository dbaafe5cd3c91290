//! How a program makes progress that does not wait: it polls, or makes a call of another kind.

use crate::base::clock::{self, ticks};
use crate::base::long_calls;
use crate::engine::context::Held;
use crate::engine::context::clear::Clear;
use crate::engine::context::unhindered::{ShortCall, Unhindered};
use crate::engine::progress::short_take::{self, See};
use crate::engine::progress::sleep::take_over;
use crate::engine::progress::{dispatcher, lost_peers};
use crate::transport::Look;
use crate::transport::Task;

/// [`poll_once`] by a short way. `false`: nothing was done, and [`poll_once`] is to do it.
#[inline(always)]
pub fn poll_shortly(mut call: ShortCall<'_>) -> bool {
    let seen = begin_poll(call.way());
    match seen {
        Some(See::Packet(src)) => take_shortly(call, src),
        Some(See::Something) => {
            call.go_on(|held| take_more(held, See::Something));
        }
        Some(See::Nothing) | None => {}
    }
    seen.is_some()
}

/// [`take_more`] in a short call that has seen a packet of this peer, as long as nothing hinders
/// that.
#[inline(never)]
fn take_shortly(mut call: ShortCall<'_>, src: Task) {
    let mut taken = 0;
    match take_in_turn(call.way(), See::Packet(src), &mut taken) {
        Remaining::Nothing => {}
        remaining => {
            call.go_on(|held| take_remaining(held, remaining, taken));
        }
    }
}

/// One round of the dispatcher for a thread of the program that looks for messages by itself, again
/// and again (man page LAPI_Probe). Where there are more tasks than processors it yields the
/// processor when it has found nothing for a while. Returns whether anything moved.
pub fn poll_once(held: &mut Held<'_>) -> bool {
    match held.unhindered(Clear::TO_POLL).and_then(|mut way| begin_poll(&mut way)) {
        Some(seen) => take_more(held, seen),
        None => poll_fully(held),
    }
}

/// What has come, for a thread that polls by itself. `None`: the thread is to look after its peers.
#[inline(always)]
fn begin_poll(way: &mut Unhindered<'_>) -> Option<See> {
    let waiters = &mut way.core().waiters;
    if !waiters.count_common_poll() {
        return None;
    }
    let now = ticks();
    waiters.activity += 1;
    waiters.last_poll = now;
    Some(short_take::see(way, Look::Polled(now)))
}

/// Takes what has come in place of a round of the dispatcher. `false`: that is hindered.
pub(super) fn take_what_has_come(held: &mut Held<'_>) -> bool {
    let Some(mut way) = held.unhindered(Clear::TO_TAKE) else { return false };
    let seen = short_take::see(&mut way, Look::All);
    take_more(held, seen);
    true
}

/// Takes what was seen, and what follows it, as many packets as a round takes. Returns whether
/// anything moved.
fn take_more(held: &mut Held<'_>, seen: See) -> bool {
    let Some(mut way) = held.unhindered(Clear::TO_TAKE) else { return true };
    let mut taken = 0;
    let remaining = take_in_turn(&mut way, seen, &mut taken);
    take_remaining(held, remaining, taken)
}

/// What is left where no more packets are taken by a short way.
enum Remaining {
    /// Nothing had come at the last look.
    Nothing,
    /// Something that is for a round of the dispatcher.
    ForARound,
    /// What has come since, after a packet that may hinder the short way.
    Unknown,
    /// What has come since, after as many packets as a round takes.
    Unseen,
}

/// Takes what was seen, and what follows it, and counts that.
#[inline(always)]
fn take_in_turn(way: &mut Unhindered<'_>, mut seen: See, taken: &mut usize) -> Remaining {
    loop {
        match seen {
            See::Nothing => return Remaining::Nothing,
            See::Packet(src) if short_take::take(way, src) => *taken += 1,
            See::Packet(_) | See::Something => return Remaining::ForARound,
        }
        if *taken == dispatcher::BATCH {
            return Remaining::Unseen;
        }
        if !way.includes(Clear::TO_TAKE) {
            return Remaining::Unknown;
        }
        seen = short_take::see(way, Look::All);
    }
}

/// Takes what is left after that many packets. Returns whether anything has moved.
#[inline(never)]
fn take_remaining(held: &mut Held<'_>, mut remaining: Remaining, mut taken: usize) -> bool {
    while let Remaining::Unknown = remaining {
        let Some(mut way) = held.unhindered(Clear::TO_TAKE) else { break };
        let seen = short_take::see(&mut way, Look::All);
        remaining = take_in_turn(&mut way, seen, &mut taken);
    }
    let due = match remaining {
        Remaining::Nothing | Remaining::Unknown => false,
        Remaining::ForARound => true,
        // Where packets keep coming, no look was for reports on this task's own messages.
        Remaining::Unseen => {
            held.unhindered(Clear::TO_TAKE).is_none_or(|mut way| way.core().awaits_reports())
        }
    };
    due && turn(held) || taken != 0
}

/// A round of the dispatcher.
fn turn(held: &mut Held<'_>) -> bool {
    let moved = dispatcher::turn(held);
    held.wake_waiters();
    moved
}

/// [`poll_once`] in all cases.
#[inline(never)]
fn poll_fully(held: &mut Held<'_>) -> bool {
    if held.in_handler() {
        return false;
    }
    take_over(held);
    let core = held.core();
    core.waiters.activity += 1;
    if core.waiters.waiting() == 0 {
        // A thread that polls now will most likely poll again.
        core.set_polling(false);
    }
    // Not by `activity`, which waits change as well: between two polls by an even number, perhaps.
    if core.waiters.count_poll() {
        lost_peers::look_when_due(held);
    }
    let moved = !held.core().is_idle() && dispatcher::turn(held);
    let core = held.core();
    if moved {
        core.waiters.note_found(true);
    } else if core.options.wait_policy.crowded() {
        core.waiters.note_found(false);
        if core.waiters.idle_polls > core.options.wait_policy.spin {
            long_calls::begins();
            held.unlocked(clock::yield_now);
        }
    }
    moved
}

/// [`make_progress`] by a short way.
#[inline(always)]
pub fn make_progress_shortly(mut call: ShortCall<'_>) {
    if !call.way().includes(Clear::FOR_A_ROUND) {
        return call.go_on(make_progress_fully);
    }
    let seen = short_take::see(call.way(), Look::All);
    if !matches!(seen, See::Nothing) {
        call.go_on(|held| take_more(held, seen));
    }
}

/// One round of the dispatcher in a call that neither sends nor waits. In polling mode messages are
/// served by calls only, so every call that is no send does its part; it costs no more than a check
/// of the rings when nothing has arrived.
pub fn make_progress(held: &mut Held<'_>) {
    match held.unhindered(Clear::FOR_A_ROUND) {
        Some(mut way) => {
            let seen = short_take::see(&mut way, Look::All);
            if !matches!(seen, See::Nothing) {
                take_more(held, seen);
            }
        }
        None => make_progress_fully(held),
    }
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
