//! LAPI_Fence and LAPI_Gfence.

use super::address::collective;
use crate::engine::context::{Core, Held};
use crate::engine::progress::wait::wait_until;
use crate::error::Result;
use crate::transport::Task;

/// Waits until the data of all operations that this task has started is where it belongs (man page LAPI_Fence).
pub fn fence(held: &mut Held<'_>) -> Result<()> {
    quiesce(held, "LAPI_Fence")?;
    held.core().unreported = 0;
    Ok(())
}

/// The same for all tasks: each has called, and nothing is under way any more (man page LAPI_Gfence).
pub fn gfence(held: &mut Held<'_>) -> Result<()> {
    quiesce(held, "LAPI_Gfence")?;
    // Before the others can know that this task is here: what they send after the fence may arrive before it returns.
    held.core().unreported = 0;
    collective(held, "LAPI_Gfence", None)?;
    Ok(())
}

fn quiesce(held: &mut Held<'_>, call: &'static str) -> Result<()> {
    let core = held.core();
    let epoch = core.ops.epochs().close();
    let mut asked: Vec<(Task, u64, u32)> = Vec::new();
    let (outbox, mut wire) = core.out();
    outbox.ask(&mut wire, |peer, count| asked.push((peer, count, 0)));
    asked.iter_mut().for_each(|(peer, _, incarnation)| *incarnation = core.incarnation(*peer));
    wait_until(held, call, |core: &mut Core| {
        let answered = core.ops.epochs().over(epoch)
            && core.to_self.is_empty()
            && core.dropped.iter().all(|dropped| !dropped.from_self())
            && asked.iter().all(|&(peer, count, incarnation)| {
                // Numbers begin anew when a task that was given up comes back.
                core.outbox.confirmed(peer, count) || core.incarnation(peer) != incarnation
            });
        answered.then_some(())
    })
}
