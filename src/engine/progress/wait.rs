//! How a thread waits.
//!
//! At first it only looks: at what it waits for, and whether a packet has arrived. Most of what
//! is awaited comes soon, and such a wait should cost little. Then it polls the dispatcher: for
//! a while in a tight loop, then yielding the processor between polls, and at last it sleeps.
//! One thread of a context sleeps on the transport's descriptor; other threads that wait are
//! parked, and are woken when something has happened. Where the machine has more tasks than
//! processors the first phase is nearly omitted: the peer needs this processor to produce what
//! the thread waits for.

use crate::abi::{LAPI_ERR_HNDL_INVALID, LAPI_ERR_UNKNOWN};
use crate::base::call_stack::{self, DEPTH};
use crate::base::clock::{self, elapsed, moment, ticks};
use crate::base::known_threads::{note_thread, this_thread};
use crate::base::long_calls;
use crate::base::pause::pause;
use crate::engine::context::clear::Clear;
use crate::engine::context::completion_queue::runs_handler;
use crate::engine::context::unhindered::{ShortCall, Unhindered};
use crate::engine::context::wait_policy::{IdlePolls, LOOKS, Next, WaitPolicy};
use crate::engine::context::waiters::{WaitTarget, Waiter};
use crate::engine::context::{Context, Core, Held};
use crate::engine::progress::short_take::{self, See};
use crate::engine::progress::sleep::{Woken, sleep, take_over};
use crate::engine::progress::{attention, dispatcher, lost_peers};
use crate::error::{Error, Result};
use crate::transport::{Look, Task};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A thread that waits and is kept awake by arriving packets checks its peers once in
/// this many polls.
const BUSY_POLLS: u32 = 1 << 12;
/// The thread's call is long after this many of them.
const BUSY_WHILE: u32 = 4;
/// A wait with a deadline reads the clock when so many ticks have passed since it last did: each
/// reading takes as long as a look, and handlers or a yield may come between two looks.
const BETWEEN_TIMES: u64 = 500;

/// A wait that has looked so often and has found nothing is for a packet that is not under way.
const IN_VAIN: u32 = 4;

/// How long a call pauses when what waits for room exceeds its bound, once more for each [`EXCESS`]
/// bytes above it.
const PAUSE: Duration = Duration::from_millis(1);
/// See [`PAUSE`].
const EXCESS: usize = 64 << 10;
/// No call pauses longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Calls of completion handlers pause only when this many bytes more wait. What a handler sends
/// finishes a message that a peer has sent, often as a reply to it, and the program's own calls
/// begin new ones: if both paused at the same bound, tasks that send to each other would hold each
/// other's packets, and none would take any but at the pace of the pauses.
const HANDLERS_MORE: usize = 4 << 20;
/// A call that has polled for [`PAUSE`] polls only so often.
const NAP: Duration = Duration::from_micros(100);

/// What a wait has waited for, and how.
pub(in crate::engine) struct Waited<T> {
    /// What it has waited for.
    pub value: T,
    /// Whether the wait has taken all that had come, at one moment, or has gone on by rounds of the
    /// dispatcher. Otherwise what has come besides may never be taken, in a program that makes no
    /// other calls.
    pub has_polled: bool,
}

/// A call that does not take the lock has changed a counter: wakes the threads that may wait for
/// it. Where this thread has a [`Held`], they wake when that one leaves the lock.
#[inline]
pub(in crate::engine) fn counter_changed(context: &Context) {
    if context.parking.occupied()
        && let Some(mut held) = context.enter_closing()
    {
        held.core().waiters.note_news();
    }
}

/// Waits until `ready` returns something, and makes progress meanwhile. `what` is named in
/// errors and reports.
#[inline]
pub(in crate::engine) fn wait_until<T>(
    held: &mut Held<'_>,
    what: impl Into<WaitTarget>,
    ready: impl FnMut(&mut Held<'_>) -> Option<T>,
) -> Result<T> {
    Ok(wait_and_tell(held, what, ready)?.value)
}

/// [`wait_until`], which says besides how it has gone.
#[inline]
pub(in crate::engine) fn wait_and_tell<T>(
    held: &mut Held<'_>,
    what: impl Into<WaitTarget>,
    ready: impl FnMut(&mut Held<'_>) -> Option<T>,
) -> Result<Waited<T>> {
    look_and_wait(held, what, None, ready)
}

/// [`wait_until`] in a short call, which goes on as another one when the looks do not suffice.
#[inline(always)]
pub(in crate::engine) fn wait_shortly<T>(
    mut call: ShortCall<'_>,
    what: impl Into<WaitTarget>,
    mut ready: impl FnMut() -> Option<T>,
) -> Result<T> {
    if !call.way().includes(Clear::TO_LOOK) {
        return call.go_on(|held| wait_on(held, what, ready));
    }
    let mut polled = Some(begin_looks(call.way()));
    let (mut left, mut found) = (LOOKS, false);
    loop {
        match short_take::see(call.way(), next_look(&mut polled, LOOKS - left, found)) {
            See::Nothing => pause(),
            // What was taken has left everything as it was, or else the call goes on.
            See::Packet(src) if short_take::take(call.way(), src) && call.way().includes(Clear::TO_LOOK) => {
                found = true;
            }
            See::Packet(_) | See::Something => {
                return call.go_on(|held| wait_until(held, what, |_| ready()));
            }
        }
        if let Some(value) = ready() {
            return Ok(value);
        }
        left -= 1;
        if left == 0 && found {
            return call.go_on(|held| wait_until(held, what, |_| ready()));
        }
        if left == 0 || call.is_lock_wanted() {
            return call.go_on(|held| wait_on(held, what, ready));
        }
    }
}

fn wait_on<T>(
    held: &mut Held<'_>,
    what: impl Into<WaitTarget>,
    mut ready: impl FnMut() -> Option<T>,
) -> Result<T> {
    let policy = held.core().options.wait_policy;
    wait_with(held, what.into(), (policy, None), |_| ready())
}

/// [`wait_until`] with a deadline; `None` when it has passed. Makes progress at least once.
fn wait_before<T>(
    held: &mut Held<'_>,
    what: impl Into<WaitTarget>,
    deadline: Instant,
    mut ready: impl FnMut(&mut Held<'_>) -> Option<T>,
) -> Result<Option<T>> {
    let mut read = ticks();
    let waited = look_and_wait(held, what, Some(deadline), |held| match ready(held) {
        Some(value) => Some(Some(value)),
        None => {
            let now = ticks();
            if now.wrapping_sub(read) < BETWEEN_TIMES {
                return None;
            }
            read = now;
            (clock::now() >= deadline).then_some(None)
        }
    })?;
    Ok(waited.value)
}

/// Waits for reports of lost peers, which other threads make, as long as one is due.
pub(in crate::engine) fn await_report(
    held: &mut Held<'_>,
    what: &'static str,
    due: impl Fn(&Core) -> Option<Instant>,
) -> Result<()> {
    while let Some(until) = due(held.core()) {
        wait_before(held, what, until, |held| due(held.core()).is_none().then_some(()))?;
    }
    Ok(())
}

/// Waits until a condition of the program holds; `false` when the deadline, if there is one, has
/// passed before. Makes progress meanwhile, and at least once unless the condition holds already.
///
/// The condition is looked at after each packet, and when something has changed in the session. A
/// thread that changes it otherwise wakes the session after that (`Session::wake`). The condition
/// must be short, since it runs with the session's lock held, and it must not call the session.
///
/// # Errors
/// `LAPI_ERR_HNDL_INVALID`: the session is being closed, or has ended by a failure.
/// `LAPI_ERR_UNKNOWN`: in a handler, which must not wait.
pub fn wait_for(
    held: &mut Held<'_>,
    deadline: Option<Instant>,
    mut condition: impl FnMut() -> bool,
) -> Result<bool> {
    let call = "a wait for a condition";
    let holds = |_: &mut Held<'_>| condition().then_some(());
    match deadline {
        Some(deadline) => Ok(wait_before(held, call, deadline, holds)?.is_some()),
        None => wait_until(held, call, holds).map(|()| true),
    }
}

/// There is no sleep past `until`.
#[inline]
fn look_and_wait<T>(
    held: &mut Held<'_>,
    what: impl Into<WaitTarget>,
    until: Option<Instant>,
    mut ready: impl FnMut(&mut Held<'_>) -> Option<T>,
) -> Result<Waited<T>> {
    if let Some(value) = ready(held) {
        return Ok(Waited { value, has_polled: false });
    }
    let mut has_polled = false;
    if let Some(value) = look(held, &mut has_polled, &mut ready) {
        return Ok(Waited { value, has_polled });
    }
    let policy = held.core().options.wait_policy;
    let value = wait_with(held, what.into(), (policy, until), ready)?;
    Ok(Waited { value, has_polled: true })
}

/// [`wait_until`] with another policy than the context's, and without the stage of looks; without a
/// sleep past a deadline if there is one.
#[inline(never)]
pub(in crate::engine) fn wait_with<T>(
    held: &mut Held<'_>,
    what: WaitTarget,
    (policy, until): (WaitPolicy, Option<Instant>),
    mut ready: impl FnMut(&mut Held<'_>) -> Option<T>,
) -> Result<T> {
    if let Some(value) = ready(held) {
        return Ok(value);
    }
    if held.in_handler() {
        let call = what.call;
        let detail = format!("{call} would wait in a handler that the dispatcher runs, and never return");
        return Err(Error::new(LAPI_ERR_UNKNOWN, detail));
    }
    begin(held);
    let mut listed = None;
    let value = poll_until(held, &what, (policy, until), &mut listed, &mut ready);
    if let Some(since) = listed {
        held.core().waiters.unlist(this_thread(), since);
    }
    end(held);
    value
}

/// A thread looks from now on. Returns the time in ticks.
#[inline(always)]
fn begin_looks(way: &mut Unhindered<'_>) -> u64 {
    let now = ticks();
    let waiters = &mut way.core().waiters;
    waiters.activity += 1;
    waiters.last_poll = now;
    now
}

/// How a wait looks after that many looks: as one that has begun to poll at that moment, in ticks,
/// if it has not looked yet.
#[inline(always)]
fn next_look(begun: &mut Option<u64>, looks: u32, found: bool) -> Look {
    match begun.take() {
        Some(now) => Look::Polled(now),
        None if found || looks < IN_VAIN => Look::All,
        None => Look::InVain,
    }
}

/// The first stage of a wait: nothing but looks, while nothing else is to be done and there is a
/// processor for each task. It lasts for as long as packets arrive. `None`: the wait goes on.
#[inline]
fn look<T>(
    held: &mut Held<'_>,
    has_polled: &mut bool,
    ready: &mut impl FnMut(&mut Held<'_>) -> Option<T>,
) -> Option<T> {
    let mut rounds = 0;
    loop {
        let (found, value) = look_for_a_while(held, has_polled, ready)?;
        if value.is_some() || !found {
            return value;
        }
        rounds += 1;
        if rounds == BUSY_WHILE {
            long_calls::begins();
        }
        if rounds % (BUSY_POLLS / LOOKS) == 0 {
            lost_peers::look_when_due(held);
        }
        if held.core().awaits_reports() {
            // Where packets keep coming, no look was for these.
            let (_, value) = dispatcher::turn_until(held, ready);
            if value.is_some() {
                return value;
            }
        }
    }
}

/// [`LOOKS`] looks. Returns whether packets have arrived. `None`: something hinders them.
#[inline]
fn look_for_a_while<T>(
    held: &mut Held<'_>,
    has_polled: &mut bool,
    ready: &mut impl FnMut(&mut Held<'_>) -> Option<T>,
) -> Option<(bool, Option<T>)> {
    let mut polled = Some(begin_looks(&mut held.unhindered(Clear::TO_LOOK)?));
    let mut found = false;
    for looks in 0..LOOKS {
        let mut way = held.unhindered(Clear::TO_LOOK)?;
        let mut value = None;
        match short_take::see(&mut way, next_look(&mut polled, looks, found)) {
            See::Nothing => {
                *has_polled = true;
                pause();
            }
            See::Packet(src) if short_take::take(&mut way, src) => found = true,
            See::Packet(_) | See::Something => {
                let moved;
                (moved, value) = dispatcher::turn_until(held, ready);
                found |= moved;
            }
        }
        let value = value.or_else(|| ready(held));
        if value.is_some() {
            return Some((found, value));
        }
        if held.is_lock_wanted() {
            return None;
        }
    }
    Some((found, None))
}

/// This thread is about to sleep: from now on a report shows that it waits, and for what. Threads
/// that are served sooner cost nothing.
#[cold]
fn list(held: &mut Held<'_>, awaited: &WaitTarget) -> u32 {
    note_thread();
    let since = moment();
    held.core().waiters.list(Waiter { thread: this_thread(), awaited: *awaited, since, stack: [0; DEPTH] });
    since
}

/// This thread has slept for a while, and nothing has happened: a report will show from where
/// it has called.
#[cold]
fn note_stack(held: &mut Held<'_>, since: u32) {
    let stack = held.unlocked(call_stack::here);
    held.core().waiters.note_stack(this_thread(), since, stack);
}

/// A sleeper has woken: when nothing has moved for long, that is reported.
fn look_for_stall(held: &mut Held<'_>, since: u32) {
    let core = held.core();
    let moved = core.stats.moved();
    if core.waiters.stall_detector.look(moved, moment(), since, core.options.stall) {
        core.options.events.stalled();
    }
}

/// Too many bytes wait for room at `tgt`: gives it time to make room. The call always returns,
/// whatever the peer does, but the pause grows with the excess: what waits grows with the square
/// root of time, at most, and not with the speed of the program. Calls of handlers that the
/// dispatcher runs are not slowed down: they hold it up.
#[cold]
pub(in crate::engine) fn throttle(held: &mut Held<'_>, tgt: Task) {
    let core = held.core();
    let bound = core.options.lane_bytes.saturating_add(if runs_handler() { HANDLERS_MORE } else { 0 });
    let before = core.outbox.bytes(tgt);
    if before <= bound || held.nested() {
        return;
    }
    lost_peers::look_when_due(held);
    attention::kick_inattentive_peers(held.core());
    long_calls::begins();
    let excess = before - bound;
    let pause = (PAUSE * (1 + excess / EXCESS).min(1 << 20) as u32).min(LONGEST_PAUSE);
    let begun = clock::now();
    while held.core().outbox.bytes(tgt) >= before && elapsed(begun) < pause && !held.core().is_closing() {
        if !dispatcher::turn(held) {
            let polled = elapsed(begun) < PAUSE;
            held.unlocked(|| if polled { clock::yield_now() } else { clock::sleep(NAP) });
        }
    }
}

fn begin(held: &mut Held<'_>) {
    take_over(held);
    held.step_out();
    let core = held.core();
    if core.waiters.begin_wait(runs_handler()) {
        core.set_polling(true);
    }
}

fn end(held: &mut Held<'_>) {
    held.step_in();
    let core = held.core();
    if core.waiters.end_wait(runs_handler()) {
        core.set_polling(false);
        let context = held.context();
        if context.settings.interrupts.load(Ordering::Relaxed) {
            // It has rested if a thread has slept.
            context.notifier.watch_if_idle();
        }
    }
}

fn poll_until<T>(
    held: &mut Held<'_>,
    what: &WaitTarget,
    (policy, until): (WaitPolicy, Option<Instant>),
    listed: &mut Option<u32>,
    ready: &mut impl FnMut(&mut Held<'_>) -> Option<T>,
) -> Result<T> {
    let (mut idle, mut busy) = (IdlePolls::default(), 0);
    let mut by_descriptor = false;
    let mut noted = false;
    loop {
        let core = held.core();
        core.waiters.activity += 1;
        let (moved, value) = if core.is_idle() { (false, None) } else { dispatcher::turn_until(held, ready) };
        if let Some(value) = value.or_else(|| ready(held)) {
            return Ok(value);
        }
        if held.core().is_closing() {
            return Err(Error::new(LAPI_ERR_HNDL_INVALID, "the handle was ended while this call waited"));
        }
        if std::mem::take(&mut by_descriptor) && !moved {
            // The descriptor was readable though no packet had come: a peer may have left.
            lost_peers::look_after_peers(held);
        }
        let moved = moved || held.core().has_ready_work();
        if moved {
            idle = IdlePolls::default();
            busy += 1;
            if busy == BUSY_WHILE {
                long_calls::begins();
            }
            if busy % BUSY_POLLS == 0 {
                lost_peers::look_when_due(held);
            }
        }
        let core = held.core();
        let waiting = core.waiters.waiting();
        let (next, kick) = idle.add(&policy, waiting, clock::now);
        if kick {
            attention::kick_inattentive_peers(core);
        }
        match next {
            Next::Poll => {
                pause();
                held.yield_lock();
            }
            Next::Yield => {
                long_calls::begins();
                held.unlocked(clock::yield_now);
            }
            Next::Sleep => {
                long_calls::begins();
                let since = *listed.get_or_insert_with(|| list(held, what));
                let woken = sleep(held, until, ready);
                // A network wakes it also for peers that access its memory, and then brings it no
                // packet: it polls for as long as before the first sleep, so that a stream of
                // accesses does not find it asleep each time.
                if matches!(woken, Woken::ByDescriptor) && held.core().keeps_time() && !policy.crowded() {
                    idle.begin_again();
                } else {
                    idle.woken(&policy, waiting, matches!(woken, Woken::ByTimeout));
                }
                match woken {
                    Woken::Ready(value) => return Ok(value),
                    Woken::ByDescriptor => {
                        by_descriptor = true;
                        lost_peers::look_when_due(held);
                    }
                    Woken::ByTimeout if !noted => {
                        noted = true;
                        note_stack(held, since);
                    }
                    Woken::ByTimeout => {}
                    // It may come again and again: no sleep would begin, and no death be found.
                    Woken::Otherwise => lost_peers::look_when_due(held),
                }
                look_for_stall(held, since);
            }
        }
    }
}
