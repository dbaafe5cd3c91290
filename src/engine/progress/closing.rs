//! The end of a context: LAPI_Term.

use crate::abi::{LAPI_ERR_HNDL_INVALID, LAPI_ERR_TGT_PURGED, lapi_handle_t};
use crate::base::call_stack::DEPTH;
use crate::base::clock::{self, moment};
use crate::base::known_threads::{note_thread, this_thread};
use crate::engine::context::core::flow;
use crate::engine::context::snapshot::SETTLING;
use crate::engine::context::waiters::{WaitTarget, Waiter};
use crate::engine::context::{Context, Core, Held};
use crate::engine::progress::wait::wait_until;
use crate::engine::progress::{dispatcher, parting};
use crate::engine::transfer::accessed;
use crate::error::{Error, Result};
use crate::transport::PeerState;
use std::time::Duration;

/// For how long what has found no room is still sent.
const FLUSH: Duration = Duration::from_secs(5);

/// For how long completion handlers are waited for after that: one may never return.
const RETURN: Duration = Duration::from_secs(1);

/// How long the exit of a process waits for a lock that another thread has: that may
/// be in a handler.
const LOCK: Duration = Duration::from_secs(1);

/// How many rounds of the dispatcher serve what has arrived, at most.
const LAST_ROUNDS: u32 = 10_000;

/// Closes the context that was opened with this handle. Calls of other threads that are inside end
/// with LAPI_ERR_HNDL_INVALID.
///
/// # Errors
/// LAPI_ERR_HNDL_INVALID: the context is closed, or opened again, or another thread is closing it.
/// LAPI_ERR_UNKNOWN: the calling thread has a [`Held`] of it.
pub fn close(context: &Context, handle: lapi_handle_t) -> Result<()> {
    let mut held = match context.enter() {
        Ok(held) => held,
        Err(error) => return close_ended(context, handle).ok_or(error),
    };
    if context.handle() != handle {
        return Err(Error::new(LAPI_ERR_HNDL_INVALID, "the handle was terminated, and opened again"));
    }
    let nested = held.nested();
    held.core().begin_ending();
    if !nested {
        finish_sending(&mut held);
    }
    if !held.core().begin_closing() {
        return Err(Error::new(LAPI_ERR_HNDL_INVALID, "another thread is ending the handle"));
    }
    close_entered(held, nested);
    Ok(())
}

/// Closes a context that has ended by a failure. Nothing is sent or served any more.
fn close_ended(context: &Context, handle: lapi_handle_t) -> Option<()> {
    let mut held = context.enter_closing()?;
    if held.is_second() || context.handle() != handle {
        return None;
    }
    let nested = held.nested();
    (held.core().has_failed() && held.core().begin_closing()).then(|| close_entered(held, nested))
}

/// Closes a context in which no new call gets any more.
fn close_entered(mut held: Held<'_>, nested: bool) {
    let context = held.context();
    held.core().waiters.note_news();
    context.conditions.end();
    if nested {
        // A handler ends its own context: nothing can be waited for, since this thread itself is in
        // the middle of a call.
        context.notifier.dismiss();
        context.completions.dismiss();
        held.core().options.events.clone().closing(context, false);
        close_transport(held.core());
        context.retire();
        return;
    }
    while !held.core().waiters.inside().is_empty() {
        held.core().waiters.note_news();
        held.unlocked(|| clock::sleep(Duration::from_micros(50)));
    }
    drop(held);
    stop(context);
}

/// Stops the threads, notifies the peers, and takes the core out. No thread may be inside.
pub fn stop(context: &Context) {
    let events = context.enter_closing().map(|mut held| held.core().options.events.clone());
    if let Some(events) = events {
        events.closing(context, true);
    }
    context.notifier.stop();
    let have_returned = context.completions.stop(RETURN);
    let core = context.enter_closing().and_then(|mut held| {
        if !have_returned && context.info_level() >= 1 {
            held.core().options.log.line(format_args!(
                "LAPI_Term: a completion handler has not returned, and is not waited for any longer"
            ));
        }
        held.core().begin_closing();
        context.conditions.end();
        close_transport(held.core());
        context.close(held)
    });
    drop(core);
}

/// Peers that look for this task from now on find that it has ended LAPI.
fn close_transport(core: &mut Core) {
    if let Some(opening) = &core.options.opening {
        opening.close();
    }
    core.transport.close();
}

/// The process exits without LAPI_Term: what waits for other packets is sent, which no thread will
/// do any more, and none waits from now on. Another thread may keep the lock; and when this one has
/// been interrupted in the middle of a call, by a signal whose function exits, what waits is lost.
pub fn leave(context: &Context) {
    if context.notifier.look_no_more() && !context.is_in_call() {
        // It leaves the lock as a call that does not send.
        drop(context.enter_within(LOCK));
    }
}

/// Sends what waits, ends the completion handlers, and serves what has arrived.
fn finish_sending(held: &mut Held<'_>) {
    give_up_the_awaited(held.core());
    flush(held);
    let context = held.context();
    note_thread();
    let awaited = WaitTarget::from(SETTLING);
    let waiter = Waiter { thread: this_thread(), awaited, since: moment(), stack: [0; DEPTH] };
    held.core().waiters.settling = Some(waiter);
    held.unlocked(|| context.completions.settle(FLUSH));
    held.core().waiters.settling = None;
    flow::release_all(held.core());
    // What these handlers have sent.
    flush(held);
    serve_last(held);
}

/// Waits until nothing is to be sent, but no longer than [`FLUSH`].
fn flush(held: &mut Held<'_>) {
    accessed::announce(held.core());
    let until = clock::now() + FLUSH;
    // What finds no room in all this time never will: the peer has stopped polling.
    let _ = wait_until(held, "LAPI_Term", |held| {
        let core = held.core();
        let idle = !core.is_sending();
        let late = || clock::now() >= until && !awaits_a_late_task(core);
        (idle || late()).then_some(())
    });
}

/// Whether something is to be sent to a task that has not called LAPI_Init yet: as long as it may
/// come, nothing of it is lost.
fn awaits_a_late_task(core: &Core) -> bool {
    core.outbox.waiting_for().any(|peer| core.transport.standing(peer).state == PeerState::Connecting)
}

/// Data for tasks that have not connected is not waited for.
fn give_up_the_awaited(core: &mut Core) {
    for task in core.membership.give_up_rejoining() {
        parting::abandon(core, task, LAPI_ERR_TGT_PURGED);
    }
}

/// Serves what has arrived until now: a peer's fence may wait for it.
fn serve_last(held: &mut Held<'_>) {
    for _ in 0..LAST_ROUNDS {
        if !dispatcher::turn(held) {
            return;
        }
    }
}
