//! Collective operations as calls of the program make them: one at a time in each task.

use crate::abi::LAPI_ERR_UNKNOWN;
use crate::base::clock::now;
use crate::engine::context::{Core, Held};
use crate::engine::progress::dispatcher;
use crate::engine::progress::poll::make_progress;
use crate::engine::progress::wait::{await_report, wait_and_tell, wait_until};
use crate::error::{Error, Result};
use crate::proto::collective::Failure;
use std::time::Duration;

/// For how long a complete collective operation keeps sending its last packets.
const LAST_PACKET: Duration = Duration::from_secs(1);

const GFENCE: &str = "LAPI_Gfence";
const ADDRESS_INIT: &str = "LAPI_Address_init";

/// Returns when all tasks have called.
pub(in crate::engine) fn barrier(held: &mut Held<'_>) -> Result<()> {
    collective(held, GFENCE, None).map(drop)
}

/// Every task gives a value and gets those of all tasks, by task (man page LAPI_Address_init64).
pub fn exchange(held: &mut Held<'_>, value: u64) -> Result<Vec<u64>> {
    collective(held, ADDRESS_INIT, Some(value))
}

/// Whether a task may not get what it needs of this one's part of the operation: packets for it
/// have found no room.
fn is_held_up(core: &Core) -> bool {
    core.outbox.waiting() && core.collectives.is_held_up(&core.outbox)
}

/// One collective operation. Threads of one task take turns.
fn collective(held: &mut Held<'_>, call: &'static str, value: Option<u64>) -> Result<Vec<u64>> {
    if held.in_handler() {
        let detail = format!("{call} in a handler that the dispatcher runs");
        return Err(Error::new(LAPI_ERR_UNKNOWN, detail));
    }
    wait_until(held, call, |held| held.core().begin_collective().then_some(()))?;
    let core = held.core();
    let (collectives, outbox, mut wire) = core.collective();
    collectives.enter(value, outbox, &mut wire);
    core.advance_collective();
    let outcome = wait_and_tell(held, call, |held| {
        let core = held.core();
        // A wait looks before it polls, and not by rounds of the dispatcher.
        dispatcher::look_for_signals(core);
        core.take_collected()
    });
    if is_held_up(held.core()) {
        // This task's part of the operation has found no room yet. Other tasks wait for it, and
        // this task may not call LAPI again soon.
        let until = now() + LAST_PACKET;
        wait_until(held, call, |held| (!is_held_up(held.core()) || now() >= until).then_some(()))?;
    }
    let core = held.core();
    core.end_collective();
    // Another thread may wait for its turn.
    core.waiters.note_news_if_waiting();
    let me = core.options.me;
    if outcome.as_ref().is_ok_and(|waited| !waited.has_polled) {
        // The task that comes last.
        make_progress(held);
    }
    let outcome = outcome?.value;
    if let Err(Failure { task, .. }) = outcome {
        await_report(held, call, |core| core.loss_reports.due_to_failure(task))?;
    }
    outcome.map_err(|failure| {
        let Failure { task, code } = failure;
        if failure.is_mismatch() {
            let other = if value.is_some() { GFENCE } else { ADDRESS_INIT };
            let detail = format!("{call} of task {me} met {other} of task {task}");
            return Error::new(code, detail);
        }
        Error::new(code, format!("{call} cannot complete: task {task} has left the job"))
    })
}
