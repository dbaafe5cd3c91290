//! How a thread sleeps in a call: on the transport's descriptor, or parked while another thread
//! does.

use crate::base::clock::now;
use crate::base::poll::await_events;
use crate::engine::context::event_loop::{ArmedBy, EventLoop};
use crate::engine::context::{Core, Held};
use crate::engine::progress::{attention, dispatcher, lost_peers, reports};
use crate::engine::transfer::accessed;
use crate::transport::Want;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

/// In a large crowd a sleeper checks its peers up to this many times as seldom as the settings say.
const RAREST_LOOK: u32 = 4;
/// With work that nothing announces, it wakes after this.
pub(super) const DEFERRED_RETRY: Duration = Duration::from_millis(1);
/// With something to be sent to a task that is to rejoin, it wakes after this.
const EXPECTANT: Duration = Duration::from_millis(20);

/// How a sleep ended.
pub(super) enum Woken<T> {
    /// The sleep did not begin: what is waited for came just before. `ready` returns it once only.
    Ready(T),
    /// The transport's descriptor became readable.
    ByDescriptor,
    /// The time was over, and nothing had happened.
    ByTimeout,
    /// Another thread woke this one, or there was something to do at once.
    Otherwise,
}

/// Sleeps until something may have changed, and not past `until`.
pub(super) fn sleep<T>(
    held: &mut Held<'_>,
    until: Option<Instant>,
    ready: &mut impl FnMut(&mut Held<'_>) -> Option<T>,
) -> Woken<T> {
    attention::kick_inattentive_peers(held.core());
    let context = held.context();
    let parking = &context.parking;
    let ticket = parking.prepare();
    // Calls that change a counter without the lock look at the parked threads after the change:
    // either they see this thread there, or this thread sees the change.
    let woken = match ready(held) {
        Some(value) => Woken::Ready(value),
        None if must_park(held) => {
            park(held, ticket, until);
            Woken::Otherwise
        }
        None => sleep_on_descriptor(held, until),
    };
    parking.finish();
    woken
}

/// Another thread sleeps on the descriptor already, or is in a handler that the dispatcher runs
/// without the lock: then no other thread can take the packets that have come, so they do not keep
/// this thread awake. Nor does the descriptor while it calls the program's event loop.
fn must_park(held: &mut Held<'_>) -> bool {
    let waiters = &held.core().waiters;
    waiters.on_descriptor
        || waiters.event_loop() == EventLoop::Called
        || held.context().activity.thread() != 0
}

fn park(held: &mut Held<'_>, ticket: u32, until: Option<Instant>) {
    let parking = &held.context().parking;
    let core = held.core();
    core.waiters.park();
    // The event loop may have other things to do first.
    let called = core.waiters.event_loop() == EventLoop::Called;
    let at_most = before_deadline(if called { DEFERRED_RETRY } else { look_around(core) }, until);
    held.unlocked(|| parking.sleep(ticket, Some(at_most)));
    held.core().waiters.unpark();
}

/// When a thread that sleeps checks its peers, if nothing wakes it.
pub(super) fn look_around(core: &Core) -> Duration {
    core.options.wait_policy.period(core.options.look_around, RAREST_LOOK)
}

/// This time, or what is left until the deadline.
fn before_deadline(at_most: Duration, until: Option<Instant>) -> Duration {
    until.map_or(at_most, |until| at_most.min(until.saturating_duration_since(now())))
}

/// This thread serves the transport now: what has armed it outside of calls steps back.
#[inline]
pub(super) fn take_over(held: &mut Held<'_>) {
    if held.core().waiters.armed != ArmedBy::NoThread {
        relieve(held);
    }
}

#[cold]
fn relieve(held: &mut Held<'_>) {
    let context = held.context();
    let core = held.core();
    if core.waiters.armed == ArmedBy::EventLoop {
        // It arms again, or sleeps without that while a thread waits.
        return core.call_event_loop();
    }
    core.waiters.armed = ArmedBy::NoThread;
    core.disarm();
    context.notifier.watch();
}

/// Arms the transport for a thread that is to sleep on its descriptor. Returns for how long it may
/// sleep at most; `None`: nothing is armed, since there may be something to do.
pub(in crate::engine) fn arm(held: &mut Held<'_>) -> Option<Duration> {
    let core = held.core();
    accessed::announce(core);
    reports::take_rejoined(core);
    if core.waiters.armed != ArmedBy::NoThread || !core.arm() {
        take_over(held);
        return None;
    }
    if dispatcher::look_for_signals(core) {
        core.disarm();
        // Another thread may wait for it.
        core.waiters.note_news();
        return None;
    }
    let at_most = match () {
        () if core.has_deferred() => DEFERRED_RETRY,
        () if core.has_traffic_for_rejoining() => EXPECTANT,
        () => look_around(core),
    };
    let at_most = core.until_due(at_most);
    if at_most.is_zero() {
        // Taking packets does not do all that is due.
        core.disarm();
        core.transport.want(Want::Serve);
        lost_peers::look_when_due(held);
        return None;
    }
    Some(at_most)
}

fn sleep_on_descriptor<T>(held: &mut Held<'_>, until: Option<Instant>) -> Woken<T> {
    let Some(at_most) = arm(held) else { return Woken::Otherwise };
    let at_most = before_deadline(at_most, until);
    let core = held.core();
    core.waiters.on_descriptor = true;
    let descriptor = core.transport.event_fd().as_raw_fd();
    let woken = held.unlocked(|| {
        // SAFETY: the transport lives as long as the core, and the core is not closed while
        // `waiting` is not 0.
        let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
        await_events([descriptor], Some(at_most))[0]
    });
    let core = held.core();
    core.disarm();
    core.waiters.on_descriptor = false;
    core.waiters.activity += 1;
    if core.waiters.awaits_news() {
        core.waiters.note_news();
    }
    if !woken && at_most >= look_around(core) {
        lost_peers::look_after_peers(held);
        return Woken::ByTimeout;
    }
    // A wake-up costs what has come in, not what this task waits for.
    reports::take(held.core());
    lost_peers::look_when_due(held);
    if woken { Woken::ByDescriptor } else { Woken::Otherwise }
}
