//! Puts and gets that the origin makes alone, where it has a key of all memory of the target: a put is one write, a get is one read. The
//! target need not be asked, and has nothing to do for them; it hears of them in time ([`Accessed`](crate::engine::context::accessed)).
//!
//! What is too long for one copy of the transport goes by [`direct`]. When a copy fails, the operation goes in packets.

use crate::base::clock::ticks;
use crate::engine::context::direct_copy::{DirectCopy, Kind};
use crate::engine::context::request::{Get, Hint, Marks, Places, Preference};
use crate::engine::context::{Core, Held};
use crate::engine::transfer::send::{self, completion};
use crate::engine::transfer::{accessed, direct, packets, reply};
use crate::proto::ops::Op;
use crate::proto::outbox::Sent;
use crate::transport::{Access, Copy, EndedCopy, Task};

/// Starts a get of contiguous data: whether it was started.
#[inline]
pub fn get(held: &mut Held<'_>, get: &Get) -> bool {
    let Places::Contiguous { local, remote, len } = get.places else { return false };
    if get.tgt_cntr != 0 || !is_possible(held.core(), get.tgt, len, get.hint) {
        return false;
    }
    let op = Op::Get {
        sink: get.places.local_sink(),
        len: len as u64,
        arrived: 0,
        org_cntr: get.org_cntr,
        handler: get.handler.map_or(0, |handler| handler as usize),
        info: get.parameter,
        registered: None,
    };
    start(held.core(), Access::Read, get.tgt, Copy { local: local as *mut u8, remote, len }, op)
}

/// Whether there is a key, and data to be moved, and the program lets it go otherwise than in packets.
#[inline]
fn is_possible(core: &mut Core, tgt: Task, len: usize, hint: Hint) -> bool {
    len != 0
        && hint.path() != Hint::Packets
        && core.options.bulk.preference != Preference::Packets
        && core.transport.remote().is_some_and(|remote| remote.standing_key(tgt).is_some())
}

/// Starts one copy for an operation, which a fence waits for here.
#[inline]
fn start(core: &mut Core, access: Access, tgt: Task, copy: Copy, op: Op) -> bool {
    let cookie = core.ops.insert(tgt, op, true);
    // SAFETY: the program leaves its memory here alone until the operation is complete, or was given up, and the copy recalled.
    let started =
        core.transport.remote().is_some_and(|remote| unsafe { remote.start_copy(access, tgt, copy, cookie) });
    if started {
        core.one_sided += 1;
    } else {
        core.ops.remove(tgt, cookie);
    }
    started
}

/// Ends the operations whose copies have ended, and informs targets when it is time. Whether an operation has ended.
#[inline]
pub fn advance(held: &mut Held<'_>) -> bool {
    let core = held.core();
    let some = core.one_sided != 0 && take_ended(held);
    let core = held.core();
    if !core.accessed.is_empty() && core.accessed.is_due(ticks()) && !core.closing {
        accessed::announce(core);
    }
    some
}

fn take_ended(held: &mut Held<'_>) -> bool {
    let mut some = false;
    while held.core().one_sided != 0 && !held.core().closing {
        let core = held.core();
        let Some(ended) = core.transport.remote().and_then(|remote| remote.ended_copy()) else { break };
        core.one_sided -= 1;
        some = true;
        match (&ended.outcome, ended.access) {
            (Ok(()), Access::Read) => {
                core.path_to(ended.peer).packets_received += 1;
                accessed::note(core, ended.peer, (0, ended.copy.len as u64));
                reply::got(held, ended.peer, ended.cookie);
            }
            (Ok(()), Access::Write) => written(held, &ended),
            (Err(_), _) => refused(held, &ended),
        }
    }
    some
}

/// A put is in place.
#[inline]
fn written(held: &mut Held<'_>, ended: &EndedCopy) {
    let (peer, core) = (ended.peer, held.core());
    core.path_to(peer).packets_sent += 1;
    let Some(Op::Write { done, cmpl_cntr }) = core.ops.remove(peer, ended.cookie) else { return };
    accessed::note(core, peer, (done.bytes, 0));
    send::finish(held, &done);
    // SAFETY: the program's counter.
    unsafe { held.core().raise(cmpl_cntr, peer) };
}

/// A copy was not made: the operation goes in packets, from its beginning.
#[cold]
fn refused(held: &mut Held<'_>, ended: &EndedCopy) {
    let EndedCopy { peer, cookie, access, copy, .. } = *ended;
    let core = held.core();
    core.path_to(peer).refused += 1;
    let places = Places::Contiguous { local: copy.local as usize, remote: copy.remote, len: copy.len };
    match access {
        Access::Read => {
            // A peer that has gone meanwhile is reported when a call waits for the reply.
            if core.ops.get_mut(peer, cookie).is_some()
                && packets::get(held, peer, 0, cookie, &places) == Sent::NoMemory
            {
                send::out_of_memory(peer);
            }
        }
        Access::Write => {
            let Some(Op::Write { done, cmpl_cntr }) = core.ops.remove(peer, cookie) else { return };
            let id = core.outbox.number(peer);
            let marks = Marks { id, tgt_cntr: 0, cookie: completion(held, peer, cmpl_cntr) };
            direct::put_in_packets(held, peer, marks, &places, done);
        }
    }
}

/// Whether such operations are under way, or their targets do not know of them yet.
pub fn is_active(core: &Core) -> bool {
    let alone = |copy: &DirectCopy| {
        copy.keyed.is_some() && matches!(copy.kind, Kind::Write { .. } | Kind::Fetch { .. })
    };
    core.one_sided != 0 || !core.accessed.is_empty() || core.direct_copies.iter().any(alone)
}
