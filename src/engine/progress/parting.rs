//! The end of the connection with a peer that may come back: what is under way is abandoned, and
//! the peer may rejoin.
//!
//! A task that prepares a checkpoint ([`super::checkpoint`]) *parts* from its peers without a loss.
//! It asks a peer when everything that it has sent there is confirmed, and says how many messages
//! of the peer are delivered, with no handler left to run. If that is all that the peer has sent,
//! and none of its operations waits for the other task, then nothing is under way between the two,
//! in either direction: the peer *grants* the parting, and what it sends from then on waits.
//! Otherwise it refuses, and is asked again later. When all have granted it the task says so, and
//! its peers let it rejoin; or it puts it off, and what has waited is sent.

use crate::abi::INT_ERR;
use crate::engine::context::core::flow;
use crate::engine::context::counter_status::Handled;
use crate::engine::context::membership::Standing;
use crate::engine::context::{Core, Held};
use crate::engine::progress::reports;
use crate::engine::transfer::accessed;
use crate::engine::transfer::send::send_control;
use crate::error::Result;
use crate::memory::bytes::Piece;
use crate::proto::Transmit;
use crate::proto::before;
use crate::proto::ops::Op;
use crate::transport::{Outgoing, SendOutcome, Task, Withdrawal};
use crate::wire::packet::Head;

/// The transport has parted from the task, and everything that was under way with it was abandoned:
/// it may connect again. It is sent this epoch.
///
/// # Errors
/// LAPI_ERR_SHM_SETUP: the system lacks what is needed; nothing has changed.
pub fn let_rejoin(core: &mut Core, task: Task, epoch: u64) -> Result<()> {
    core.outbox.renew(task);
    may_rejoin(core, task, epoch)
}

/// [`let_rejoin`] of a task for which something waits.
fn may_rejoin(core: &mut Core, task: Task, epoch: u64) -> Result<()> {
    core.transport.rejoin(task, epoch)?;
    core.membership.resume(task);
    core.inbox.forget(task);
    core.collectives.allow_rejoin(task);
    reports::take(core);
    Ok(())
}

/// Ends everything that goes to `peer`, comes from it or waits for it; send operations among it
/// report `code`. Returns how many operations waited for a reply.
pub fn abandon(core: &mut Core, peer: Task, code: i32) -> usize {
    core.transport.withdraw(peer, Withdrawal::Traffic);
    flow::release(core, peer);
    let mut finished = Vec::new();
    core.outbox.abandon(peer, code, &mut finished);
    core.inbox.abandon(peer);
    core.partings.forget(peer);
    core.forget_kept(peer);
    let copies = core.copies.abandon(peer);
    let ended = core.ops.abandon(peer);
    let without_reply = ended.iter().filter_map(|op| match op {
        Op::Rendezvous { done, fetched: false, .. } | Op::Rmw { done, .. } => Some(*done),
        Op::Write { done, .. } => *done,
        _ => None,
    });
    let handled = core.watched.abandon(peer);
    let from = finished.len();
    finished.extend(copies.into_iter().chain(without_reply).chain(handled.iter().map(Handled::done)));
    finished[from..].iter_mut().for_each(|done| done.error = code);
    let writes = ended.iter().filter(|op| matches!(op, Op::Write { .. })).count();
    core.one_sided.abandon(peer, writes);
    core.finish_later(finished);
    core.waiters.note_news();
    ended.len()
}

/// Another task asks this one to send nothing more to it: `count` messages of this task are
/// delivered there, and the collective operation `position` comes next.
#[cold]
pub fn asked(held: &mut Held<'_>, peer: Task, count: u32, position: u32) {
    let core = held.core();
    core.partings.want(peer);
    core.defer();
    // A message about that would go to a task that has gone.
    accessed::announce(core);
    let behind = core.collectives.busy() && before(core.collectives.turn(), position);
    let granted = !core.partings.refuses(core.options.me, peer)
        && core.membership.standing(peer) == Standing::Up
        && is_quiet(core, peer)
        && core.outbox.count(peer) == count
        && !core.outbox.asks(peer)
        && !behind;
    // A reply that waited for room would be forgotten with what waits for the next connection.
    if granted && reply_now(core, peer) {
        // What is sent from now on belongs to the next connection, or is sent as if it did.
        core.outbox.renew(peer);
        core.membership.end_incarnation(peer);
        core.membership.hold(peer, true);
    } else {
        send_control(core, peer, &Head::PartingReply { granted: false });
    }
}

/// Grants what the peer has asked, or confirms that it has parted. Returns whether the packet was
/// accepted: it never waits for room.
fn reply_now(core: &mut Core, peer: Task) -> bool {
    let head = Head::PartingReply { granted: true }.encode();
    let nothing = Piece::EMPTY;
    let packet =
        Outgoing { head: head.as_bytes(), first: nothing, second: nothing.into(), copy_limit: usize::MAX };
    // SAFETY: the packet has no body.
    let sent = unsafe { core.out().1.send(peer, &packet) };
    !matches!(sent, SendOutcome::NoRoom | SendOutcome::Gone)
}

/// The other task goes on for now: what has waited is sent.
pub fn put_off(held: &mut Held<'_>, peer: Task) {
    held.core().membership.hold(peer, false);
    held.wake_waiters();
}

/// The other task parts: it may rejoin.
#[cold]
pub fn done(held: &mut Held<'_>, peer: Task) {
    let core = held.core();
    if !core.membership.is_held(peer) {
        return;
    }
    // The number of the operation that the peer has not completed.
    let epoch = reports::FIRST_POSITION + u64::from(core.collectives.turn());
    // Before what waits, which is for the next connection.
    core.membership.hold(peer, false);
    // If it finds no room, the peer sees that this task has parted.
    reply_now(core, peer);
    core.transport.withdraw(peer, Withdrawal::Connection);
    core.partings.forget(peer);
    flow::release(core, peer);
    if let Err(error) = may_rejoin(core, peer, epoch) {
        let ended = abandon(core, peer, error.code);
        core.membership.lose(peer);
        return held.context().report_loss(held, (INT_ERR, peer), ended != 0, &error);
    }
    core.membership.note_away(peer);
    // What it has got of the operation that is under way went with the connection.
    let (collectives, outbox, mut wire) = core.collective();
    collectives.send_again(peer, outbox, &mut wire);
    core.advance_collective();
    held.wake_waiters();
}

/// Whether nothing of this task waits for the peer, and no message of the peer waits here.
/// Messages that have arrived there and are not confirmed do not count.
pub fn is_quiet(core: &Core, peer: Task) -> bool {
    let mut copies = core.copies.iter().chain(core.copies.awaiting_parts());
    !core.outbox.waits(peer)
        && !core.ops.wait_for(peer)
        && core.one_sided.announces_nothing()
        && core.membership.kept(peer).0 == 0
        && !copies.any(|copy| copy.peer == peer)
}
