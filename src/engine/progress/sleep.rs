//! How a thread sleeps that waits: on the transport's descriptor, or parked while another thread
//! sleeps there.

use crate::base::poll::await_events;
use crate::engine::context::{Core, Held};
use crate::engine::progress::{attention, dispatcher, lost_peers, reports};
use crate::engine::transfer::accessed;
use crate::transport::Want;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// A sleeper wakes at least this often and checks whether its peers still run; in a large crowd up
/// to [`RAREST_LOOK`] times as seldom.
const LOOK_AROUND: Duration = Duration::from_millis(250);
/// See [`LOOK_AROUND`].
const RAREST_LOOK: u32 = 4;
/// With work that nothing announces, it wakes after this.
const DEFERRED_RETRY: Duration = Duration::from_millis(1);

/// With something to be sent to a task that is to rejoin, it wakes after this.
const EXPECTANT: Duration = Duration::from_millis(20);

/// The program polls by itself now: the notifier steps back.
#[inline]
pub(super) fn take_over(held: &mut Held<'_>) {
    let context = held.context();
    let core = held.core();
    if core.waiters.notifier_armed() {
        core.waiters.set_notifier_armed(false);
        core.transport.disarm();
        context.notifier.watch();
    }
}

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

/// Sleeps until something may have changed.
pub(super) fn sleep<T>(held: &mut Held<'_>, ready: &mut impl FnMut(&mut Core) -> Option<T>) -> Woken<T> {
    attention::kick_inattentive_peers(held.core());
    let context = held.context();
    let parking = &context.parking;
    parking.prepare_sleep();
    // Calls that change a counter without the lock look at the parked threads after the change:
    // either they see this thread there, or this thread sees the change.
    let woken = match ready(held.core()) {
        Some(value) => Woken::Ready(value),
        None if must_park(held) => {
            park(held);
            Woken::Otherwise
        }
        None => sleep_on_descriptor(held),
    };
    parking.cancel();
    woken
}

/// Another thread sleeps on the descriptor already, or is in a handler that the dispatcher runs
/// without the lock: then no other thread can take the packets that have come, so they do not keep
/// this thread awake.
fn must_park(held: &mut Held<'_>) -> bool {
    held.context().activity.thread() != 0 || held.core().waiters.on_descriptor()
}

fn park(held: &mut Held<'_>) {
    let parking = &held.context().parking;
    held.core().waiters.park();
    let before = parking.last_wake();
    let at_most = look_around(held.core());
    held.unlocked(|| parking.sleep(before, at_most));
    held.core().waiters.unpark();
}

/// When a thread that sleeps checks its peers, if nothing wakes it.
fn look_around(core: &Core) -> Duration {
    core.options.wait_policy.period(LOOK_AROUND, RAREST_LOOK)
}

fn sleep_on_descriptor<T>(held: &mut Held<'_>) -> Woken<T> {
    let core = held.core();
    accessed::announce(core);
    if core.waiters.notifier_armed() || !core.transport.arm() {
        take_over(held);
        return Woken::Otherwise;
    }
    if dispatcher::look_for_signals(core) {
        core.transport.disarm();
        // Another thread may wait for it.
        core.waiters.note_news();
        return Woken::Otherwise;
    }
    let longest = look_around(core);
    let at_most = match () {
        () if core.has_deferred() => DEFERRED_RETRY,
        () if core.has_traffic_for_rejoining() => EXPECTANT,
        () => longest,
    };
    let at_most = core.until_due(at_most);
    if at_most.is_zero() {
        // Taking packets does not do all that is due.
        core.transport.disarm();
        core.transport.want(Want::Serve);
        lost_peers::look_when_due(held);
        return Woken::Otherwise;
    }
    core.waiters.set_on_descriptor(true);
    let descriptor = core.transport.event_fd().as_raw_fd();
    let woken = held.unlocked(|| {
        // SAFETY: the transport lives as long as the core, and the core is not closed while
        // `waiting` is not 0.
        let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
        await_events([descriptor], Some(at_most))[0]
    });
    let core = held.core();
    core.transport.disarm();
    core.waiters.set_on_descriptor(false);
    core.waiters.count_activity();
    if core.waiters.parked() != 0 {
        core.waiters.note_news();
    }
    if !woken && at_most >= longest {
        lost_peers::look_after_peers(held);
        return Woken::ByTimeout;
    }
    // A wake-up costs what has come in, not what this task waits for.
    reports::take(held.core());
    lost_peers::look_when_due(held);
    if woken { Woken::ByDescriptor } else { Woken::Otherwise }
}
