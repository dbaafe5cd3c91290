//! How a thread waits.
//!
//! It polls the dispatcher: for a while in a tight loop, then giving the processor away between polls, and at last it
//! sleeps. One thread of a context sleeps on the transport's descriptor; other threads that wait sleep in the waiting
//! room, and are told when something has happened. Where the machine has more tasks than processors the first phase
//! is nearly left out: the peer needs our processor to make what we wait for.

use crate::abi::{LAPI_ERR_HNDL_INVALID, LAPI_ERR_UNKNOWN};
use crate::base::bell::{self, Cause};
use crate::base::clock::moment;
use crate::base::poll::await_readable;
use crate::base::thread::note_thread;
use crate::base::thread::this_thread;
use crate::engine::context::completion_queue::runs_handler;
use crate::engine::context::waiters::{WaitPolicy, WaitTarget, Waiter};
use crate::engine::context::{Context, Core, Held};
use crate::engine::progress::dispatcher;
use crate::engine::progress::lost_peers;
use crate::engine::transfer::path;
use crate::error::{Error, Result};
use crate::transport::Task;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A sleeper wakes at least this often and looks whether its peers are still there.
const LOOK_AROUND: Duration = Duration::from_millis(250);
/// With work that nothing announces, it wakes after this.
const RESTLESS: Duration = Duration::from_millis(1);

/// With something to be sent to a task that is to come back, it wakes after this.
const EXPECTANT: Duration = Duration::from_millis(20);

/// A thread that polls by itself and never sleeps sees once in so many polls whether it should look after its peers.
const POLLS_BETWEEN_LOOKS: u64 = 1 << 6;
/// A thread that waits and is kept awake by what comes in looks after its peers once in so many polls.
const BUSY_POLLS: u32 = 1 << 12;

/// A thread that has polled so often for the answer of a peer that does not look wakes that peer: some 100 microseconds.
const KICK_AFTER: u32 = 2000;

/// How long a call pauses when what waits for room exceeds its bound, once more for each [`EXCESS`] bytes above it.
const PAUSE: Duration = Duration::from_millis(1);
/// See [`PAUSE`].
const EXCESS: usize = 64 << 10;
/// No call pauses longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A call that has polled for [`PAUSE`] polls only so often.
const NAP: Duration = Duration::from_micros(100);

/// A counter was changed by a call that does not take the lock: wake who may wait for it.
#[inline]
pub fn counter_changed(context: &Context) {
    if context.waiting_room.occupied() {
        if let Ok(mut held) = context.enter() {
            held.core().news = true;
        }
    }
}

/// Waits until `ready` has an answer, and keeps everything going meanwhile. `what` says in an error what was waited for.
pub fn wait_until<T>(
    held: &mut Held<'_>,
    what: impl Into<WaitTarget>,
    ready: impl FnMut(&mut Core) -> Option<T>,
) -> Result<T> {
    let patience = held.core().options.patience;
    wait_with(held, what, patience, ready)
}

/// The same with another patience than the context's.
pub fn wait_with<T>(
    held: &mut Held<'_>,
    what: impl Into<WaitTarget>,
    patience: WaitPolicy,
    mut ready: impl FnMut(&mut Core) -> Option<T>,
) -> Result<T> {
    if let Some(answer) = ready(held.core()) {
        return Ok(answer);
    }
    let what = what.into();
    if held.in_handler() {
        let call = what.call;
        return Err(Error::new(
            LAPI_ERR_UNKNOWN,
            format!(
                "{call} would wait inside of a handler that the dispatcher runs: nothing it waits for can happen"
            ),
        ));
    }
    begin(held);
    let mut listed = None;
    let answer = poll_until(held, &what, patience, &mut listed, &mut ready);
    if let Some(since) = listed {
        let me = this_thread();
        let list = &mut held.core().waiters.list;
        if let Some(at) = list.iter().rposition(|waiter| waiter.thread == me && waiter.since == since) {
            list.swap_remove(at);
        }
    }
    end(held);
    answer
}

/// This thread is about to sleep: from now on it can be seen who waits, for what. Threads that are served sooner cost nothing.
#[cold]
fn list(held: &mut Held<'_>, awaited: &WaitTarget) -> u32 {
    note_thread();
    let since = moment();
    held.core().waiters.list.push(Waiter { thread: this_thread(), awaited: *awaited, since });
    since
}

/// A sleeper has woken: when nothing has moved for long, that is reported.
fn look_for_stall(held: &mut Held<'_>, since: u32) {
    let core = held.core();
    let moved = core.stats.moved();
    if core.waiters.stillness.look(moved, moment(), since, bell::stall()) {
        bell::ring(Cause::Stall);
    }
}

/// One round of the dispatcher for a thread of the program that looks for messages by itself.
pub fn poll_once(held: &mut Held<'_>) -> bool {
    if held.in_handler() {
        return false;
    }
    take_over(held);
    let core = held.core();
    core.activity += 1;
    if core.waiters.waiting == 0 {
        // Who polls now will most likely poll again.
        core.transport.set_attentive(false);
    }
    if core.activity % POLLS_BETWEEN_LOOKS == 0 {
        lost_peers::look_when_due(held);
    }
    dispatcher::turn(held)
}

/// Too many bytes wait for room at `tgt`: gives it time to make some. The call always returns, whatever the peer does, but the
/// pause grows with the excess: what waits grows with the square root of time, at most, and not with the speed of the program.
/// Calls of handlers are not slowed down: they hold up the dispatcher.
#[cold]
pub fn throttle(held: &mut Held<'_>, tgt: Task) {
    if held.nested() {
        return;
    }
    lost_peers::look_when_due(held);
    path::kick_inattentive_peers(held.core());
    let core = held.core();
    let before = core.outbox.bytes(tgt);
    let excess = before.saturating_sub(core.options.lane_bytes);
    let pause = (PAUSE * (1 + excess / EXCESS).min(1 << 20) as u32).min(LONGEST_PAUSE);
    let begun = Instant::now();
    while held.core().outbox.bytes(tgt) >= before && begun.elapsed() < pause && !held.core().closing {
        if !dispatcher::turn(held) {
            let polled = begun.elapsed() < PAUSE;
            held.unlocked(|| if polled { std::thread::yield_now() } else { std::thread::sleep(NAP) });
        }
    }
}

fn begin(held: &mut Held<'_>) {
    take_over(held);
    held.step_out();
    let core = held.core();
    core.waiters.waiting += 1;
    core.waiters.handlers += u32::from(runs_handler());
    if core.waiters.waiting == 1 {
        core.transport.set_attentive(true);
    }
}

fn end(held: &mut Held<'_>) {
    held.step_in();
    let core = held.core();
    core.waiters.waiting -= 1;
    core.waiters.handlers -= u32::from(runs_handler());
    if core.waiters.waiting == 0 {
        core.transport.set_attentive(false);
    } else if !core.waiters.on_descriptor {
        // Those in the room must choose a new one for the descriptor.
        core.news = true;
    }
}

/// The program polls by itself now: the notifier steps back.
#[inline]
fn take_over(held: &mut Held<'_>) {
    let context = held.context();
    let core = held.core();
    if core.waiters.notifier_armed {
        core.waiters.notifier_armed = false;
        core.transport.disarm();
        context.notifier.watch();
    }
}

fn poll_until<T>(
    held: &mut Held<'_>,
    what: &WaitTarget,
    patience: WaitPolicy,
    listed: &mut Option<u32>,
    ready: &mut impl FnMut(&mut Core) -> Option<T>,
) -> Result<T> {
    let (mut polls, mut busy) = (0, 0);
    loop {
        held.core().activity += 1;
        let moved = dispatcher::turn(held);
        let core = held.core();
        if let Some(answer) = ready(core) {
            return Ok(answer);
        }
        if core.closing {
            return Err(Error::new(LAPI_ERR_HNDL_INVALID, "the handle was ended while this call waited"));
        }
        if moved || core.has_ready_work() {
            polls = 0;
            busy += 1;
            if busy % BUSY_POLLS == 0 {
                lost_peers::look_when_due(held);
            }
        }
        let core = held.core();
        polls += 1;
        if polls == KICK_AFTER {
            path::kick_inattentive_peers(core);
        }
        let spin = patience.spins(core.waiters.waiting);
        if polls <= spin {
            std::hint::spin_loop();
            held.yield_lock();
        } else if polls <= spin + patience.yields {
            held.unlocked(std::thread::yield_now);
        } else {
            let since = *listed.get_or_insert_with(|| list(held, what));
            if let Some(answer) = sleep(held, ready) {
                return Ok(answer);
            }
            look_for_stall(held, since);
            // What woke us is worth a look or two before the next sleep.
            polls = spin + patience.yields.saturating_sub(8);
        }
    }
}

/// Sleeps until there may be something new. The answer, when it came just before that: `ready` gives it once only.
fn sleep<T>(held: &mut Held<'_>, ready: &mut impl FnMut(&mut Core) -> Option<T>) -> Option<T> {
    path::kick_inattentive_peers(held.core());
    let context = held.context();
    let room = &context.waiting_room;
    room.lie_down();
    // Calls that change a counter without the lock look into the room after the change: one of us sees the other.
    let answer = ready(held.core());
    if answer.is_none() {
        if held.core().waiters.on_descriptor {
            sleep_in_room(held);
        } else {
            sleep_on_descriptor(held);
        }
    }
    room.get_up();
    answer
}

fn sleep_in_room(held: &mut Held<'_>) {
    let room = &held.context().waiting_room;
    held.core().waiters.in_room += 1;
    let before = room.number();
    held.unlocked(|| room.sleep(before, LOOK_AROUND));
    held.core().waiters.in_room -= 1;
}

fn sleep_on_descriptor(held: &mut Held<'_>) {
    let core = held.core();
    if core.waiters.notifier_armed || !core.transport.arm() {
        take_over(held);
        return;
    }
    core.waiters.on_descriptor = true;
    let at_most = match () {
        () if core.has_deferred() => RESTLESS,
        () if core.has_traffic_for_rejoining() => EXPECTANT,
        () => LOOK_AROUND,
    };
    let descriptor = core.transport.event_fd().as_raw_fd();
    let woken = held.unlocked(|| {
        // SAFETY: the transport lives as long as the core, and the core is not closed while `waiting` is not 0.
        let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
        await_readable(&[descriptor], Some(at_most))[0]
    });
    let core = held.core();
    core.transport.disarm();
    core.waiters.on_descriptor = false;
    core.activity += 1;
    if core.waiters.in_room != 0 {
        core.news = true;
    }
    if woken || at_most < LOOK_AROUND {
        // A wake-up costs what has come in, not what this task waits for.
        lost_peers::welcome(held.core());
        lost_peers::look_when_due(held);
    } else {
        lost_peers::look_after_peers(held);
    }
    if held.context().settings.interrupts.load(Ordering::Relaxed) {
        held.context().notifier.watch_if_idle();
    }
}
