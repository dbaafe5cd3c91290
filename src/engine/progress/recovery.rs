//! Tasks that are given up by the program's will, and let come back: LAPI_Purge_totask, LAPI_Resume_totask.
//!
//! A purge forgets everything that lies between two tasks; what comes back later begins from nothing, whether it is the same
//! process, which has purged this one likewise, or another one with its place. Until it is there, what is sent to it waits.

use crate::abi::LAPI_ERR_TGT_PURGED;
use crate::engine::context::Held;
use crate::engine::progress::dispatcher::{self, advance_collective};
use crate::engine::progress::lost_peers::{FIRST_POSITION, abandon, welcome};
use crate::error::Result;
use crate::transport::Task;

/// Gives the task up: whatever goes to it, comes from it or waits for it ends. Nothing happens when that was done before.
pub fn purge(held: &mut Held<'_>, task: Task) {
    if !held.core().purged.insert(task) {
        return;
    }
    let core = held.core();
    core.collectives.lose(task, LAPI_ERR_TGT_PURGED);
    advance_collective(core);
    abandon(core, task, LAPI_ERR_TGT_PURGED);
    core.transport.part(task);
    core.dropped.retain(|dropped| dropped.message.src != task);
    *core.incarnations.entry(task).or_default() += 1;
    core.awaited.remove(&task);
    core.watched.purged(task);
    core.news = true;
    // Send completion handlers learn it now.
    dispatcher::turn(held);
}

/// Lets a task come back that was purged, or that was lost. Nothing happens to others.
///
/// # Errors
/// LAPI_ERR_SHM_SETUP: the system lacks what is needed; the task stays as it was.
pub fn resume(held: &mut Held<'_>, task: Task) -> Result<()> {
    if held.core().lost.contains(&task) {
        purge(held, task);
    }
    let core = held.core();
    if !core.purged.contains(&task) {
        return Ok(());
    }
    let epoch = FIRST_POSITION + u64::from(core.collectives.position());
    core.transport.rejoin(task, epoch)?;
    core.purged.remove(&task);
    core.lost.remove(&task);
    core.quarantined.remove(&task);
    core.awaited.insert(task);
    core.outbox.renew(task);
    core.inbox.forget(task);
    core.collectives.forgive(task);
    welcome(core);
    Ok(())
}
