//! Peers that have left: what waits for them ends, and the program is told once. And peers that come back.

use super::context::{Core, Held};
use super::dispatcher::turn;
use super::transfer::Transfer;
use crate::abi::{INT_ERR, LAPI_ERR_NO_CONNECTIVITY};
use crate::error::Error;
use crate::proto::ops::Op;
use crate::transport::{PeerState, Task};

/// How many rounds are enough to take in what one peer can have left in its ring, whatever the others send.
const DRAIN: u32 = 1000;

/// Ends what waits for peers that have left: they died, or ended LAPI while they owed an answer. Makes system calls: for
/// threads that have slept.
pub fn look_after_peers(held: &mut Held<'_>) {
    let core = held.core();
    welcome(core);
    let me = core.options.me;
    let mut concerned: Vec<Task> = core.outbox.waiting_for().to_vec();
    concerned.extend(core.ops.peers());
    concerned.extend(core.outbox.unconfirmed());
    // Of a collective operation only the task whose packet is next: others that have left may have done their part.
    concerned.extend(core.collectives.awaited());
    concerned.sort_unstable();
    concerned.dedup();
    for peer in concerned {
        if peer != me && held.core().transport.peer_state(peer) != PeerState::Up {
            lose(held, peer);
        }
    }
}

/// Takes note of tasks that have come back.
pub fn welcome(core: &mut Core) {
    if core.awaited.is_empty() {
        return;
    }
    while let Some((task, greeting)) = core.transport.rejoined() {
        core.awaited.remove(&task);
        core.collectives.catch_up(greeting as u32);
        // A frame further up some stack may have been in the middle of a message of before.
        core.inbox.forget(task);
        core.news = true;
    }
}

/// The peer has left: whatever waits for it ends with an error. It is reported once.
#[cold]
fn lose(held: &mut Held<'_>, peer: Task) {
    // What it had sent before it left is still to be had; it may have owed nothing else.
    for _ in 0..DRAIN {
        if !turn(held) {
            break;
        }
    }
    let core = held.core();
    let closed = core.transport.peer_state(peer) == PeerState::Closed;
    let awaited = core.collectives.awaited() == Some(peer);
    if !core.ops.wait_for(peer) && !core.outbox.waits(peer) && !awaited {
        if closed {
            // It has served everything before it ended LAPI; only its word is missing, and will be for ever.
            core.outbox.abandon(peer, 0, &mut Vec::new());
            return;
        }
        if !core.outbox.owes(peer) {
            return;
        }
    }
    if awaited {
        core.collectives.fail();
        core.collected = Some(None);
    }
    let count = abandon(core, peer, LAPI_ERR_NO_CONNECTIVITY);
    if !core.lost.insert(peer) {
        return;
    }
    let (me, how) = (core.options.me, if closed { "has ended LAPI" } else { "has died" });
    let error = Error::new(
        LAPI_ERR_NO_CONNECTIVITY,
        format!("task {peer} {how}; task {me} waits for it, and {count} operations cannot complete"),
    );
    held.context().report(held, INT_ERR, peer, &error);
}

/// Ends everything that goes to `peer`, comes from it or waits for it; send operations among it report `code`. Answers how
/// many operations waited for an answer.
pub fn abandon(core: &mut Core, peer: Task, code: i32) -> usize {
    let mut finished = std::mem::take(&mut core.finished);
    core.outbox.abandon(peer, code, &mut finished);
    core.inbox.abandon(peer);
    let copies =
        core.transfers.iter().filter(|transfer| transfer.peer == peer).filter_map(Transfer::abandoned);
    let ended = core.ops.abandon(peer);
    let answers = ended.iter().filter_map(|op| match op {
        Op::Exposed { done, pulled: false, .. } | Op::Rmw { done, .. } => Some(*done),
        _ => None,
    });
    let from = finished.len();
    finished.extend(copies.chain(answers));
    finished[from..].iter_mut().for_each(|done| done.error = code);
    core.transfers.retain(|transfer| transfer.peer != peer);
    core.finished = finished;
    core.news = true;
    ended.len()
}
