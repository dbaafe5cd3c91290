//! The program's own event loop: it makes progress by [`poll`], and between [`arm`] and [`disarm`]
//! it sleeps outside of calls, on the transport's descriptor among its own.
//!
//! The loop is one more thread that waits, with the descriptor as its place. Whatever wakes a
//! thread in [`super::wait`] makes the descriptor readable; what happens while the loop runs keeps
//! the next [`arm`] from arming. While threads wait in calls, they look for messages, and the loop
//! sleeps until something has changed.

use crate::abi::LAPI_ERR_UNKNOWN;
use crate::base::clock::now;
use crate::engine::context::event_loop::{ArmedBy, EventLoop};
use crate::engine::context::{Context, Held};
use crate::engine::progress::poll::poll_once;
use crate::engine::progress::sleep::{self, DEFERRED_RETRY};
use crate::engine::progress::{lost_peers, reports, wait};
use crate::error::{Error, Result};
use crate::transport::Task;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Gets ready for a sleep on the transport's descriptor, until this time at the latest. `None`:
/// something may have changed since the last [`poll`] that found nothing, and nothing is armed. A
/// sleep that was not ended by [`disarm`] ends by this.
///
/// # Errors
/// LAPI_ERR_UNKNOWN: in a handler that the dispatcher runs, which must not sleep.
pub fn arm(held: &mut Held<'_>) -> Result<Option<Instant>> {
    if held.in_handler() {
        let detail = "a handler that the dispatcher runs would sleep, and nothing would wake it";
        return Err(Error::new(LAPI_ERR_UNKNOWN, detail));
    }
    get_up(held);
    let context = held.context();
    let core = held.core();
    if core.waiters.event_loop() == EventLoop::Absent {
        core.waiters.set_event_loop(EventLoop::Due);
    }
    // The caller looks at the sleepers after that: either it sees the loop there, or it is seen.
    context.parking.prepare();
    let due = core.waiters.event_loop() == EventLoop::Due || context.called.swap(false, Ordering::Relaxed);
    let armed = if due || core.has_ready_work() { None } else { sleep_beside_others(held) };
    match armed {
        Some(_) => held.core().waiters.set_event_loop(EventLoop::Asleep),
        None => context.parking.finish(),
    }
    Ok(armed)
}

/// For how long the loop may sleep. The transport is armed, unless another thread serves it.
fn sleep_beside_others(held: &mut Held<'_>) -> Option<Instant> {
    let in_round = held.dispatching();
    let core = held.core();
    let at_most = match () {
        // In its error handler. Others cannot serve until it returns, and nothing tells when.
        () if in_round => DEFERRED_RETRY,
        () if core.waiters.waiting() != 0 => sleep::look_around(core),
        () => {
            sleep::take_over(held);
            let at_most = sleep::arm(held)?;
            held.core().waiters.armed = ArmedBy::EventLoop;
            at_most
        }
    };
    Some(now() + at_most)
}

/// Ends what [`arm`] began, and handles what has come. Returns whether anything has.
pub fn disarm(held: &mut Held<'_>) -> bool {
    let slept = get_up(held);
    let called = held.context().called.swap(false, Ordering::Relaxed);
    if slept {
        reports::take(held.core());
    }
    let moved = poll(held);
    if slept && !moved && !called {
        // The time is over, or a peer has left.
        lost_peers::look_after_peers(held);
    } else {
        lost_peers::look_when_due(held);
    }
    moved
}

/// One round of the dispatcher. Returns whether anything moved.
pub fn poll(held: &mut Held<'_>) -> bool {
    let waiters = &mut held.core().waiters;
    if waiters.event_loop() == EventLoop::Due {
        waiters.set_event_loop(EventLoop::Awake);
    }
    poll_once(held)
}

/// How many rounds, of some packets each, [`drain`] takes at most: a window of UDP holds 10,000 of
/// the smallest, whose bundles are taken apart here.
const DRAIN: u32 = 10_000;

/// Receives what a peer has sent that has ended, or is to be purged; also what it has sent before
/// its first contact with this task was complete here. Ends early where `goes_on` does not hold
/// before a round.
pub fn drain(held: &mut Held<'_>, peer: Task, goes_on: impl FnMut() -> bool) {
    if held.in_handler() {
        return;
    }
    sleep::take_over(held);
    lost_peers::drain_while(held, peer, DRAIN, goes_on);
    held.wake_waiters();
}

/// How many bytes of this task's memory are taken by what waits for room at `tgt`.
pub fn waiting(held: &mut Held<'_>, tgt: Task) -> usize {
    held.core().outbox.bytes(tgt)
}

/// Ends a sleep of the loop. Returns whether it has slept.
fn get_up(held: &mut Held<'_>) -> bool {
    let context = held.context();
    let core = held.core();
    let before = core.waiters.event_loop();
    if !before.sleeps() {
        return false;
    }
    core.waiters.set_event_loop(EventLoop::Awake);
    context.parking.finish();
    if core.waiters.armed == ArmedBy::EventLoop {
        core.waiters.armed = ArmedBy::NoThread;
        core.transport.disarm();
    } else if before == EventLoop::Called && !core.waiters.on_descriptor {
        // Empties the descriptor.
        core.transport.disarm();
    }
    if core.waiters.waiting() != 0 {
        // A parked thread may go to the descriptor now.
        core.waiters.note_news();
    } else if context.settings.interrupts.load(Ordering::Relaxed) {
        context.notifier.watch_if_idle();
    }
    true
}

/// Calls the loop, from any thread: its sleep ends, or its next [`arm`] does not arm. Threads that
/// wait in calls look again at what they wait for.
pub fn wake(context: &Context) {
    context.called.store(true, Ordering::Relaxed);
    wait::counter_changed(context);
}
