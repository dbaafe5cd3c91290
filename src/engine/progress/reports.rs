//! What the transport reports: memory that is free again, accesses that are over, peers that have
//! rejoined.

use crate::engine::context::Core;
use crate::engine::context::membership::Standing;
use crate::engine::transfer::send::send_control;
use crate::proto::before;
use crate::transport::{NO_EPOCH, Report, Task};
use crate::wire::packet::Head;

/// The epoch of a task that has entered no collective operation. A task that rejoins the job
/// itself has none.
pub const FIRST_POSITION: u64 = NO_EPOCH + 1;

/// Takes what the transport reports. What may run handlers of the program is left to a round of the
/// dispatcher.
pub fn take(core: &mut Core) {
    while let Some(report) = core.transport.report() {
        match report {
            Report::Free(ticket) => core.note_free(ticket),
            Report::Accessed(id, outcome) => core.copies.note_ended(id, outcome),
            Report::Written(ended) => core.one_sided.note_ended(ended),
            Report::Joined(task, epoch) => note_joined(core, task, epoch),
        }
    }
}

/// Takes tasks that have rejoined before the transport is armed. Whoever disarmed it last may have
/// emptied the descriptor, which was all that told of them.
#[inline]
pub fn take_rejoined(core: &mut Core) {
    if !core.membership.rejoining().is_empty() {
        take(core);
    }
}

/// Takes note of a task that has rejoined, or has let this task rejoin.
fn note_joined(core: &mut Core, task: Task, epoch: u64) {
    if core.membership.standing(task) == Standing::Rejoining {
        core.membership.rejoined(task);
        // A frame further up a stack may have been in the middle of an earlier message.
        core.inbox.forget(task);
    } else if core.membership.joined_at().is_none() {
        // This process has taken the place of another one, which the peer had given up.
        core.membership.join_at(0);
    }
    core.waiters.note_news();
    if let Some(position) = epoch.checked_sub(FIRST_POSITION) {
        catch_up_collectives(core, task, position as u32);
    }
}

/// `task` had entered `position` collective operations when it let this task rejoin.
fn catch_up_collectives(core: &mut Core, task: Task, position: u32) {
    let (collectives, outbox, mut wire) = core.collective();
    collectives.catch_up(position, outbox, &mut wire);
    core.advance_collective();
    // A task that has rejoined learns the position of every other task before it takes part in
    // anything. Later positions, its own or theirs, do not matter.
    let Some(joined_at) = core.membership.joined_at() else { return };
    if before(joined_at, position) {
        core.membership.join_at(position);
        let (me, tasks) = (core.options.me, core.options.tasks);
        (0..tasks).filter(|&peer| peer != me).for_each(|peer| report_position(core, peer, position));
    } else if before(position, joined_at) {
        report_position(core, task, joined_at);
    }
}

/// Sends a peer, which may be behind, the highest position that is known.
fn report_position(core: &mut Core, peer: Task, position: u32) {
    if core.transport.is_open(peer) && core.membership.standing(peer) == Standing::Up {
        send_control(core, peer, &Head::CollectiveAt { sequence: position });
    }
}
