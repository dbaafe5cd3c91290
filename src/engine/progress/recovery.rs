//! Tasks that the program gives up and lets rejoin: LAPI_Purge_totask, LAPI_Resume_totask.
//!
//! A purge drops everything that is under way between two tasks. A task that rejoins begins from
//! nothing, whether it is the same process, which has purged this one likewise, or another process
//! in its place. Until it has connected, messages to it wait.

use crate::abi::LAPI_ERR_TGT_PURGED;
use crate::engine::context::Held;
use crate::engine::context::membership::Standing;
use crate::engine::progress::dispatcher;
use crate::engine::progress::parting::{abandon, let_rejoin};
use crate::engine::progress::reports::FIRST_POSITION;
use crate::error::Result;
use crate::transport::{PeerState, Task, Withdrawal};

/// Gives tasks up: everything that goes to them, comes from them or waits for them ends. Has no
/// effect on a task that is purged.
pub fn purge(held: &mut Held<'_>, tasks: &[Task]) {
    give_up(held, tasks);
    held.wake_waiters();
}

fn give_up(held: &mut Held<'_>, tasks: &[Task]) {
    let core = held.core();
    for &task in tasks {
        if core.membership.standing(task) == Standing::Purged {
            continue;
        }
        core.collectives.lose(task, LAPI_ERR_TGT_PURGED);
        core.advance_collective();
        abandon(core, task, LAPI_ERR_TGT_PURGED);
        core.transport.withdraw(task, Withdrawal::Connection);
        core.membership.purge(task);
        core.watched.purged(task);
        core.waiters.note_news();
    }
    // Send completion handlers run now.
    dispatcher::turn(held);
}

/// Lets a task rejoin that was purged or lost. Has no effect on others.
///
/// # Errors
/// LAPI_ERR_SHM_SETUP: the system lacks what is needed; the task stays as it was.
pub fn resume(held: &mut Held<'_>, task: Task) -> Result<()> {
    let core = held.core();
    let lost = match core.membership.standing(task) {
        Standing::Lost => true,
        // It has died or left, and nothing was under way that would have shown it.
        Standing::Up => matches!(core.transport.standing(task).state, PeerState::Dead | PeerState::Closed),
        _ => false,
    };
    if lost {
        give_up(held, &[task]);
    }
    let core = held.core();
    if core.membership.standing(task) != Standing::Purged {
        return Ok(());
    }
    let epoch = FIRST_POSITION + u64::from(core.collectives.position());
    let_rejoin(core, task, epoch)?;
    held.wake_waiters();
    Ok(())
}

/// Whether the task has left or was given up, and the program has neither purged nor
/// resumed it since.
pub fn is_lost(held: &mut Held<'_>, task: Task) -> bool {
    held.core().membership.standing(task) == Standing::Lost
}
