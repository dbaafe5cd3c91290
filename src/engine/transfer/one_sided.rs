//! Puts that the origin makes alone, where it has a key of all memory of the target: a put is one
//! write. The target need not be asked, and has nothing to do for it; it learns of it in time
//! ([`crate::engine::context::one_sided`]).
//!
//! What is too long for one write of the transport goes by [`direct`]. When a write fails, the put
//! goes in packets.
//!
//! A get is not made so. What a network without a card reads arrives whenever the target sends it,
//! at the place that the read has named: also when the target was stopped, and the program has its
//! memory back. And where the target cannot send it, because the program has named an address
//! without memory, libfabric's provider for TCP gives the data of the next read to this one.

use crate::base::clock::ticks;
use crate::engine::context::direct_copy::{CopyKind, DirectCopy};
use crate::engine::context::request::{Marks, Places, Put};
use crate::engine::context::{Core, Held};
use crate::engine::transfer::send::{self, completion};
use crate::engine::transfer::{accessed, direct};
use crate::memory::bytes::Piece;
use crate::proto::content::Content;
use crate::proto::ops::Op;
use crate::proto::outbox::{Body, SendDone, Sent};
use crate::transport::{Copy, EndedWrite, Task, Transfer, Transport};
use crate::wire::packet::Head;

/// Starts a put of contiguous data whose completion the program waits for, as one write: whether it
/// was started. Data that is copied is the program's again when the call returns.
#[inline(never)]
pub fn put(held: &mut Held<'_>, put: &Put, copied: bool) -> bool {
    let Places::Contiguous { local, remote, len } = put.places else { return false };
    let (core, cmpl_cntr) = (held.core(), put.cmpl_cntr);
    let copy = Copy { local: local as *mut u8, remote, len };
    let done = SendDone { bytes: len as u64, ..put.done };
    if copied {
        let op = Op::Write { done: None, cmpl_cntr };
        // SAFETY: the caller's data is readable now.
        let started = start(core, put.tgt, op, |network, cookie| unsafe {
            network.access(put.tgt, Transfer::Write { copy, cookie, copied: true }).is_ok()
        });
        if started {
            send::finish(held, &done);
        }
        return started;
    }
    // SAFETY: the program leaves its memory alone until the put is complete, or was given up, and
    // the write recalled.
    start(core, put.tgt, Op::Write { done: Some(done), cmpl_cntr }, |network, cookie| unsafe {
        network.access(put.tgt, Transfer::Write { copy, cookie, copied: false }).is_ok()
    })
}

/// Starts the write of an operation, which a fence waits for here.
#[inline]
fn start(core: &mut Core, tgt: Task, op: Op, write: impl FnOnce(&mut dyn Transport, u64) -> bool) -> bool {
    let cookie = core.ops.insert(tgt, op, true);
    let started = write(&mut *core.transport, cookie);
    if started {
        core.one_sided.begin();
    } else {
        core.ops.remove(tgt, cookie);
    }
    started
}

/// Ends the operations whose writes have ended, and informs targets when it is time. Whether an
/// operation has ended.
#[inline(never)]
pub fn advance(held: &mut Held<'_>) -> bool {
    let core = held.core();
    let some = core.one_sided.have_ended() && take_ended(held);
    let core = held.core();
    if core.one_sided.announcement_is_due(ticks()) && !core.is_closing() {
        accessed::announce_where_room(core);
    }
    some
}

fn take_ended(held: &mut Held<'_>) -> bool {
    let mut some = false;
    while !held.core().is_closing() {
        let Some(ended) = held.core().one_sided.next_ended() else { break };
        some = true;
        match ended.outcome {
            Ok(()) => written(held, &ended),
            Err(_) => refused(held, &ended),
        }
    }
    some
}

/// A put is in place.
#[inline]
fn written(held: &mut Held<'_>, ended: &EndedWrite) {
    let (peer, core) = (ended.peer, held.core());
    core.path_to(peer).packets_sent += 1;
    let Some(Op::Write { done, cmpl_cntr }) = core.ops.remove(peer, ended.cookie) else { return };
    core.one_sided.end();
    if let Some(done) = done {
        send::finish(held, &done);
    }
    let core = held.core();
    accessed::note(core, peer, ended.copy.len as u64);
    // SAFETY: the program's counter.
    unsafe { core.raise(cmpl_cntr, peer) };
}

/// A write has failed: the put goes in packets.
#[cold]
fn refused(held: &mut Held<'_>, ended: &EndedWrite) {
    let EndedWrite { peer, cookie, copy, .. } = *ended;
    let core = held.core();
    core.path_to(peer).refused += 1;
    let Some(Op::Write { done, cmpl_cntr }) = core.ops.remove(peer, cookie) else { return };
    core.one_sided.end();
    let done = done.unwrap_or_else(|| SendDone::nothing(peer));
    let id = core.outbox.number(peer);
    let cookie = completion(held, peer, cmpl_cntr);
    let Some(data) = &ended.data else {
        let places = Places::Contiguous { local: copy.local as usize, remote: copy.remote, len: copy.len };
        let marks = Marks { id, tgt_cntr: 0, cookie };
        return direct::put_in_packets(held, peer, marks, &places, done);
    };
    let head = Head::Put { id, addr: copy.remote, tgt_cntr: 0, cookie, total: 0 };
    let content = Content::Piece(Piece::of(data));
    // SAFETY: the data is copied when it has to wait.
    let sent = unsafe { send::send(held, peer, &head, Body::data(&content), true, done) };
    if sent == Sent::NoMemory {
        held.core().end_without_memory(peer);
    }
}

/// Whether such operations are under way, or their targets do not know of them yet.
pub fn is_active(core: &Core) -> bool {
    let alone = |copy: &DirectCopy| matches!(copy.kind, CopyKind::Write { .. });
    core.one_sided.are_active() || core.copies.iter().any(alone)
}
