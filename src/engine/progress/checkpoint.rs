//! The two hooks of a checkpoint, of `lapi_checkpoint.h`: requests of LAPI_Util that the manual
//! does not have.
//!
//! Checkpoint and restart: this task parts from all others without a loss, and comes back, as the
//! same process or as another one (docs/design/0028-checkpoint.md).
//!
//! [`parting`](super::parting) has what the others do.

use crate::abi::LAPI_ERR_CKPT;
use crate::base::clock::{has_come, ticks};
use crate::engine::context::completion_queue::runs_handler;
use crate::engine::context::membership::Standing;
use crate::engine::context::partings::Stage;
use crate::engine::context::{Context, Core, Held};
use crate::engine::progress::parting::is_quiet;
use crate::engine::progress::recovery;
use crate::engine::progress::wait::wait_until;
use crate::engine::transfer::send::send_control;
use crate::error::{Error, Result};
use crate::transport::{PeerState, Task};
use crate::wire::packet::{Head, PARTING_ASKED, PARTING_DONE, PARTING_PUT_OFF};

/// How often the peers are looked at, in ticks: some ten microseconds.
const BETWEEN_LOOKS: u64 = 100_000;
/// After how long peers are asked again that have refused to part.
const AGAIN: u64 = 30 * BETWEEN_LOOKS;

/// Waits until nothing is under way between this task and any other, and parts from all of them:
/// what others send to it from then on waits for its return.
///
/// When everything seems to be at rest, the peers are asked to send nothing more. From then on no
/// handler runs here: it could send to a peer. If all grant it, all part. If one refuses, because
/// it has sent something meanwhile, all goes on for a while.
///
/// # Errors
/// LAPI_ERR_CKPT: the task has parted already, or another thread does so; a handler calls.
/// LAPI_ERR_HNDL_INVALID: the handle was ended meanwhile.
pub fn before(held: &mut Held<'_>) -> Result<()> {
    if held.nested() || runs_handler() {
        return Err(Error::new(LAPI_ERR_CKPT, "a handler cannot wait for the end of all handlers"));
    }
    if held.core().partings.stage() != Stage::None {
        return Err(Error::new(LAPI_ERR_CKPT, "this task has parted from the others, or is about to"));
    }
    let context = held.context();
    held.core().partings.enter(Stage::Waiting);
    let mut next_look = ticks();
    let parted = wait_until(held, "lapi_checkpoint_before", |held| {
        let core = held.core();
        // Sleeps are short until this is over.
        core.defer();
        let now = ticks();
        if !has_come(next_look, AGAIN, now) {
            return None;
        }
        let asked = core.partings.stage() == Stage::Asking;
        let parted = next_step(context, core);
        let put_off = asked && core.partings.stage() == Stage::Waiting;
        next_look = now.wrapping_add(if put_off { AGAIN } else { BETWEEN_LOOKS });
        // What they may still send has no place to arrive.
        parted.inspect(|_| core.partings.enter(Stage::Parted))
    });
    match parted {
        Ok(peers) => {
            recovery::purge(held, &peers);
            peers.into_iter().for_each(|peer| held.core().partings.part(peer));
        }
        Err(error) => {
            held.core().partings.enter(Stage::None);
            return Err(error);
        }
    }
    if let Some(opening) = &held.core().options.opening {
        opening.leave_to_successor();
    }
    Ok(())
}

/// Continues as far as possible. When all peers have parted: those from which this task parts, too.
fn next_step(context: &Context, core: &mut Core) -> Option<Vec<Task>> {
    match core.partings.stage() {
        Stage::Waiting if is_at_rest(context, core) => {
            core.partings.enter(Stage::Asking);
            for peer in others(core).filter(|&peer| is_connected(core, peer)).collect::<Vec<Task>>() {
                core.partings.ask(peer);
                send_step(core, peer, PARTING_ASKED);
            }
            None
        }
        Stage::Asking => {
            forget_the_gone(core);
            let all = core.partings.all_granted()? && is_at_rest(context, core) && all_were_asked(core);
            let granted = core.partings.granted();
            core.partings.enter(if all { Stage::Parting } else { Stage::Waiting });
            for peer in granted {
                if !all {
                    // What it has held is numbered from the beginning.
                    core.inbox.forget(peer);
                }
                if all {
                    core.partings.ask(peer);
                }
                send_step(core, peer, if all { PARTING_DONE } else { PARTING_PUT_OFF });
            }
            None
        }
        Stage::Parting => {
            forget_the_gone(core);
            core.partings.all_granted()?;
            Some(others(core).filter(|&peer| may_return(core, peer)).collect())
        }
        Stage::None | Stage::Waiting | Stage::Parted => None,
    }
}

/// Whether nothing is under way from this task, no handler is to run in it, and no other task is
/// about to part from it, or about to be connected.
fn is_at_rest(context: &Context, core: &mut Core) -> bool {
    let handlers = !context.completions.is_idle() || core.keeps_messages() || core.to_self() != 0;
    if handlers
        || core.collectives.busy()
        || core.membership.is_any_held()
        || core.inbox.assemblies().next().is_some()
    {
        return false;
    }
    let (outbox, mut wire) = core.out();
    outbox.ask(&mut wire, |_, _| ());
    let at_rest = |peer| is_quiet(core, peer) && core.outbox.is_confirmed(peer) && !is_joining(core, peer);
    others(core).all(|peer| core.membership.is_down(peer) || at_rest(peer))
}

/// Whether the peer is being connected. One that has ended is not: if another process takes its
/// place, that one is awaited as long as this task is away.
fn is_joining(core: &Core, peer: Task) -> bool {
    core.membership.is_joining(peer) && core.options.ends.of(peer).is_none()
}

/// Whether the peer, which this task parts from, is to rejoin when this task comes back. One that
/// has left without that stays as it is: the program gets an error when it wants something from it.
fn may_return(core: &Core, peer: Task) -> bool {
    let standing = core.transport.standing(peer);
    let is_there = matches!(standing.state, PeerState::Up | PeerState::Connecting);
    !core.membership.is_down(peer) && (is_there || standing.has_parted)
}

fn others(core: &Core) -> impl Iterator<Item = Task> + use<> {
    let me = core.options.me;
    (0..core.options.tasks).filter(move |&peer| peer != me)
}

/// Whether this task is connected with the peer: otherwise nothing is under way between them.
fn is_connected(core: &Core, peer: Task) -> bool {
    let is_up = core.membership.standing(peer) == Standing::Up;
    is_up
        && core.transport.standing(peer).state == PeerState::Up
        && core.transport.view(peer).connection.is_some()
}

/// No answer is awaited of those that have gone, or have parted already.
fn forget_the_gone(core: &mut Core) {
    let gone: Vec<Task> = core.partings.awaited().filter(|&peer| !is_connected(core, peer)).collect();
    gone.into_iter().for_each(|peer| core.partings.forget(peer));
}

/// Whether no task has connected since the others were asked.
fn all_were_asked(core: &Core) -> bool {
    others(core).all(|peer| core.partings.was_asked(peer) || !is_connected(core, peer))
}

fn send_step(core: &mut Core, peer: Task, step: u16) {
    let (count, position) = (core.inbox.delivered(peer), core.collectives.position());
    send_control(core, peer, &Head::Parting { count, position, step });
}

/// Lets all tasks rejoin from which [`before`] has parted.
///
/// # Errors
/// LAPI_ERR_CKPT: this task has not parted from the others. LAPI_ERR_SHM_SETUP: the system lacks
/// what is needed; the call may be repeated.
pub fn after(held: &mut Held<'_>) -> Result<()> {
    if held.core().partings.stage() != Stage::Parted {
        return Err(Error::new(LAPI_ERR_CKPT, "this task has not parted from the others"));
    }
    while let Some(peer) = held.core().partings.next_parted() {
        if held.core().membership.standing(peer) != Standing::Purged {
            continue;
        }
        if let Err(error) = recovery::resume(held, peer) {
            held.core().partings.part(peer);
            return Err(error);
        }
    }
    // Until then another process may still take the place of this one.
    if let Some(opening) = &held.core().options.opening {
        opening.take_back();
    }
    held.core().partings.enter(Stage::None);
    Ok(())
}
