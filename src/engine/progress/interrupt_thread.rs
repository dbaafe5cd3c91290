//! The thread of interrupt mode: it serves messages while the program computes.
//!
//! While the program polls by itself the notifier must cost nothing, and no peer may pay for waking
//! it. So the transport is not armed then, and the notifier *watches*, waking at growing intervals
//! just to see whether the program has polled since. When it has not, the notifier *arms* the
//! transport, so that peers wake it from then on, and sleeps. The next time a thread of the program
//! waits for something it disarms the transport and sets the watch again. While a thread of the
//! program is in a call that has slept, the notifier *rests*: that thread looks for messages, and
//! sets the watch again when its call ends. So it does while the program's event loop sleeps (see
//! [`crate::engine::progress::event_loop`]).
//!
//! A peer that has waited for long wakes the notifier even while it only watches (see
//! [`crate::engine::progress::attention::kick_inattentive_peers`]).

use crate::base::clock::ticks;
use crate::base::poll::{await_events, is_event};
use crate::base::thread::ThreadConfig;
use crate::engine::context::event_loop::ArmedBy;
use crate::engine::context::notifier::WATCH_FIRST;
use crate::engine::context::{Context, Core, Held};
use crate::engine::progress::{dispatcher, lost_peers, reports};
use crate::engine::transfer::accessed;
use crate::error::Result;
use crate::transport::Want;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long the program may be silent at most before the notifier arms the transport, while it
/// keeps polling; in a large crowd, where the processors come round to a task more seldom than
/// that, up to [`RAREST_WATCH`] times as long.
const WATCH_LONGEST: Duration = Duration::from_millis(8);
/// See [`WATCH_LONGEST`].
const RAREST_WATCH: u32 = 32;
/// A program that polled within this many ticks is polling: 20 to 100 microseconds.
const LOOKING: u64 = 100_000;
/// One that last polled longer ago than this computes: 0.5 to 2.5 milliseconds. In between this is
/// unknown, and the notifier looks again after [`DOUBT`].
const COMPUTING: u64 = 2_500_000;
const DOUBT: Duration = Duration::from_millis(1);
/// With work that nothing announces, the armed notifier wakes after this.
const DEFERRED_RETRY: Duration = Duration::from_millis(1);
/// The notifier wakes at least this often: peers may have died or fallen silent, and one that is
/// killed between taking the bell and ringing it leaves a message unannounced.
const LOOK_AROUND: Duration = Duration::from_millis(500);
/// While it rests it looks this often whether the transport has a deadline.
const BETWEEN_SERVICES: Duration = Duration::from_millis(5);
/// How many rounds without any event the notifier makes before it arms again.
const LINGER: u32 = 20;

/// Starts the thread.
pub fn start(context: &Arc<Context>, thread_config: ThreadConfig) -> Result<()> {
    let shared = context.clone();
    context.notifier.start(thread_config, move |timer, generation| run(&shared, timer, generation))
}

/// What the notifier does next.
enum Plan {
    /// Look again when the timer expires, or when a peer that has waited for long rings.
    Watch(Duration),
    /// Sleep on the transport's descriptor.
    Sleep { at_most: Duration },
    /// Sleep until another thread sets the timer. With a limit: serve the transport then.
    Idle { at_most: Option<Duration> },
}

fn run(context: &Context, timer: BorrowedFd<'_>, generation: u64) {
    let ended = || !context.notifier.present(generation);
    let mut interval = WATCH_FIRST;
    let mut seen = 0;
    let mut called = false;
    while !ended() {
        let Some(mut held) = context.enter_closing() else { return };
        // Before it counts as awake: an exit leaves nothing to a thread that is.
        held.core().flush();
        context.notifier.note_wake();
        let plan = decide(&mut held, &mut interval, &mut seen, called);
        let descriptor = held.core().transport.event_fd().as_raw_fd();
        // A call that leaves packets sets the timer, too, and not before this thread has: it
        // needs the lock.
        context.notifier.note_sleep(
            timer,
            match plan {
                Plan::Watch(interval) => Some(interval),
                Plan::Sleep { .. } | Plan::Idle { .. } => None,
            },
        );
        drop(held);
        if ended() {
            // Possibly by a handler that this thread itself ran: the core may be taken out now.
            return;
        }
        // SAFETY: the transport lives as long as the core, and the context ends this thread
        // before the core.
        let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let ready = match plan {
            Plan::Watch(_) => await_events([timer, descriptor], None),
            Plan::Sleep { at_most } => await_events([timer, descriptor], Some(at_most)),
            Plan::Idle { at_most } => [await_events([timer], at_most)[0], false],
        };
        // The program may have closed it during the wait, and opened a file.
        if ready[0] && is_event(timer) {
            // Empty it, or it stays readable. Nothing to read means that it was set
            // again meanwhile.
            let _ = rustix::io::read(timer, &mut [0; 8]);
        }
        called = ready[1];
    }
}

/// Serves what has arrived, and decides how to continue.
fn decide(held: &mut Held<'_>, interval: &mut Duration, seen: &mut u64, called: bool) -> Plan {
    let context = held.context();
    let notifier = &context.notifier;
    if !context.settings.interrupts.load(Ordering::Relaxed) || held.core().is_closing() {
        if held.core().waiters.armed == ArmedBy::Notifier {
            disarm(held);
        }
        return rest(held);
    }
    let waiters = &held.core().waiters;
    if waiters.on_descriptor || !waiters.listed.is_empty() || waiters.event_loop().sleeps() {
        return rest(held);
    }
    let was_armed = held.core().waiters.armed == ArmedBy::Notifier;
    let next = watch_on(held.core(), *interval, *seen);
    *seen = held.core().waiters.activity;
    if let (Some(next), false, false) = (next, called, was_armed) {
        *interval = next;
        notifier.note_watch();
        // The program may poll so seldom that it rarely checks by itself.
        lost_peers::look_when_due(held);
        return Plan::Watch(next);
    }
    *interval = WATCH_FIRST;
    disarm(held);
    serve(held, called);
    if !context.settings.interrupts.load(Ordering::Relaxed) || held.core().is_closing() {
        return rest(held);
    }
    if held.context().activity.thread() != 0 {
        // Another thread is in the error handler, in the middle of a round: until it returns, no
        // other thread can serve.
        notifier.note_watch();
        return Plan::Watch(DOUBT);
    }
    let core = held.core();
    accessed::announce(core);
    reports::take_rejoined(core);
    if core.has_ready_work()
        || core.waiters.waiting() != 0
        || core.waiters.on_descriptor
        || core.waiters.event_loop().sleeps()
        || !core.arm()
    {
        notifier.note_watch();
        return Plan::Watch(Duration::from_micros(1));
    }
    core.waiters.armed = ArmedBy::Notifier;
    Plan::Sleep { at_most: core.until_due(if core.has_deferred() { DEFERRED_RETRY } else { LOOK_AROUND }) }
}

/// The notifier runs no handler now. Where the transport has deadlines, it serves the transport
/// nevertheless: the program may compute for long. A program that polls does that itself, and is
/// only looked at.
fn rest(held: &mut Held<'_>) -> Plan {
    held.context().notifier.note_rest();
    let core = held.core();
    if !core.keeps_time() || core.is_closing() {
        return Plan::Idle { at_most: None };
    }
    let waits = core.waiters.waiting() != 0 && !core.waiters.on_descriptor;
    if waits || ticks().wrapping_sub(core.waiters.last_poll) < LOOKING {
        return Plan::Idle { at_most: Some(DOUBT) };
    }
    core.transport.want(Want::Serve);
    accessed::announce(core);
    Plan::Idle { at_most: Some(core.until_due(BETWEEN_SERVICES)) }
}

/// When to look at the program again, if it polls by itself. It has not polled since when
/// `activity` is still `seen`.
fn watch_on(core: &Core, interval: Duration, seen: u64) -> Option<Duration> {
    let longer = (interval * 2).min(core.options.wait_policy.period(WATCH_LONGEST, RAREST_WATCH));
    if core.waiters.waiting() != 0 {
        return Some(longer);
    }
    if core.waiters.activity == seen {
        return None;
    }
    // It has, but perhaps just after the last time that the notifier looked: then it may have
    // stopped long ago.
    match ticks().wrapping_sub(core.waiters.last_poll) {
        0..LOOKING => Some(longer),
        LOOKING..COMPUTING => Some(DOUBT),
        COMPUTING.. => None,
    }
}

fn disarm(held: &mut Held<'_>) {
    let core = held.core();
    core.waiters.armed = ArmedBy::NoThread;
    core.disarm();
}

/// Runs the dispatcher until there has been nothing to do for a little while. `called`: the
/// descriptor has woken this thread.
fn serve(held: &mut Held<'_>, called: bool) {
    let mut idle = 0;
    let mut any = false;
    let wanted = |held: &mut Held<'_>| {
        let core = held.core();
        core.waiters.waiting() == 0 && !core.is_closing()
    };
    while idle < LINGER && wanted(held) && held.context().settings.interrupts.load(Ordering::Relaxed) {
        let moved = dispatcher::turn(held);
        any |= moved;
        idle = if moved || held.core().has_ready_work() { 0 } else { idle + 1 };
        held.yield_lock();
    }
    // What has arrived shows that the peers run. All of them are checked when nothing has arrived,
    // and from time to time.
    reports::take(held.core());
    if called && any { lost_peers::look_when_due(held) } else { lost_peers::look_after_peers(held) }
}
