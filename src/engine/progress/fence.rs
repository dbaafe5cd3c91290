//! Fences: a task waits until the data of all that it has started is where it belongs, alone or
//! together with all tasks.

use crate::engine::context::{Core, Held};
use crate::engine::progress::poll::make_progress;
use crate::engine::progress::wait::{await_report, wait_and_tell, wait_until};
use crate::engine::progress::{collective, message_poll};
use crate::engine::transfer::{accessed, one_sided};
use crate::error::Result;
use crate::transport::Task;

/// Waits until the data of all operations that this task has started is in place (man page
/// LAPI_Fence).
pub fn fence(held: &mut Held<'_>) -> Result<()> {
    if quiesce(held, "LAPI_Fence")? {
        // A program that calls nothing but fences must make progress too.
        make_progress(held);
    }
    Ok(())
}

/// Waits until each of all tasks has called, and no message that was sent before is under way (man
/// page LAPI_Gfence).
pub fn gfence(held: &mut Held<'_>) -> Result<()> {
    quiesce(held, "LAPI_Gfence")?;
    // This is done before the other tasks can know that this one is here, because what they send
    // after the fence may arrive before it returns.
    message_poll::forget_completed(held);
    collective::barrier(held)
}

/// A peer that must confirm messages: its number, how many messages, and its incarnation
/// when it was asked.
struct Asked {
    peer: Task,
    count: u64,
    incarnation: u32,
}

/// Waits until the data of all operations of this task is in place. Returns whether the call has
/// not polled for that ([`Waited::has_polled`]).
///
/// [`Waited::has_polled`]: super::wait::Waited::has_polled
fn quiesce(held: &mut Held<'_>, call: &'static str) -> Result<bool> {
    // A handler that the dispatcher runs cannot wait for the error handler.
    let nested = held.in_handler();
    let core = held.core();
    if core.has_nothing_under_way() {
        return Ok(true);
    }
    let epoch = core.ops.epochs().close();
    if one_sided::is_active(core) {
        // Its targets are to hear of it, and the fence ends when they have.
        wait_until(held, call, |held| held.core().ops.epochs().over(epoch).then_some(()))?;
        accessed::announce(held.core());
    }
    let core = held.core();
    // Handlers may go on sending to their own task, and refusing what they are offered.
    let (queued, mut kept) = (core.queued_to_self(), None);
    let mut asked: Vec<Asked> = Vec::new();
    let (outbox, mut wire) = core.out();
    outbox.ask(&mut wire, |peer, count| asked.push(Asked { peer, count, incarnation: 0 }));
    asked.iter_mut().for_each(|asked| asked.incarnation = core.incarnation(asked.peer));
    let waited = wait_and_tell(held, call, |held| {
        let core = held.core();
        // Each check drops the peers that have confirmed from the end, so that all checks together
        // cost as much as one.
        while asked.last().is_some_and(|asked| is_confirmed(core, asked)) {
            asked.pop();
        }
        let taken = core.taken_to_self() >= queued;
        if taken && kept.is_none() {
            // Those of them that were refused have a number now.
            kept = Some(core.last_own_kept());
        }
        let complete = asked.is_empty()
            && core.ops.epochs().over(epoch)
            && kept.is_some_and(|last| !core.keeps_own_messages(last));
        complete.then_some(())
    })?;
    if !nested {
        await_report(held, call, |core| core.loss_reports.due_to_fences())?;
    }
    Ok(!waited.has_polled)
}

fn is_confirmed(core: &Core, asked: &Asked) -> bool {
    // The numbers start again when a task that was given up rejoins.
    core.outbox.confirmed(asked.peer, asked.count) || core.incarnation(asked.peer) != asked.incarnation
}
