//! How anything leaves this task, and what follows when the memory that it was sent from is free.

use crate::abi::{
    INT_ERR, LAPI_ERR_MEMORY_EXHAUSTED, LAPI_ERR_NO_CONNECTIVITY, LAPI_ERR_TGT_PURGED, LAPI_ERR_UNKNOWN,
    LAPI_SEND_COMPLETE, lapi_sh_info_t, scompl_hndlr_t,
};
use crate::base::handler_runs::{Handler, HandlerKind};
use crate::engine::context::membership::Standing;
use crate::engine::context::{Core, Held};
use crate::engine::transfer::registration;
use crate::error::{Error, Result};
use crate::memory::bytes::Piece;
use crate::proto::content::Content;
use crate::proto::ops::Op;
use crate::proto::outbox::{Body, Continuation, SendDone, Sent, Streaming};
use crate::transport::{PeerState, Task};
use crate::wire::packet::Head;
use libc::c_void;

/// Sends a packet that carries no data of the program.
#[inline]
pub fn send_request(core: &mut Core, peer: Task, head: &Head) -> Sent {
    let (outbox, mut wire) = core.out();
    // SAFETY: the packet has no body.
    unsafe { outbox.send(&mut wire, peer, head, Body::EMPTY, usize::MAX, SendDone::nothing(peer)) }
}

/// Sends a control packet that another task waits for: no call of the program can return that
/// memory is exhausted.
#[inline]
pub fn send_control(core: &mut Core, peer: Task, head: &Head) {
    if send_request(core, peer, head) == Sent::NoMemory {
        core.end_without_memory(peer);
    }
}

/// Drops a packet that no correct task sends, and reports it to the program.
#[cold]
pub fn broken(held: &mut Held<'_>, src: Task) {
    if held.core().membership.is_down(src) {
        // On its way when the peer was given up, with everything that waited for it.
        return;
    }
    let error = Error::new(LAPI_ERR_UNKNOWN, format!("dropped a malformed packet from task {src}"));
    held.context().report(held, INT_ERR, src, &error);
}

/// The first packet of a message is malformed: what follows of it is dropped, too.
#[cold]
pub fn refuse(held: &mut Held<'_>, src: Task, id: u32) {
    held.core().inbox.refuse(src, id);
    broken(held, src);
}

/// An error when the target is known to take no packets.
#[inline]
pub(in crate::engine) fn reachable(held: &mut Held<'_>, tgt: Task) -> Result<()> {
    let core = held.core();
    if core.transport.is_open(tgt) && !core.membership.is_down(tgt) {
        return Ok(());
    }
    Err(refusal(core, tgt))
}

/// Why a message to the target is refused. A death that was not reported yet is reported: the task
/// has wanted something from it.
#[cold]
fn refusal(core: &mut Core, tgt: Task) -> Error {
    if core.membership.standing(tgt) == Standing::Purged {
        return purged(tgt);
    }
    note_death(core, tgt);
    gone(tgt)
}

/// The next thread that may do so reports a death: a program whose calls fail may wait for nothing
/// from that task any more.
#[cold]
fn note_death(core: &mut Core, tgt: Task) {
    if !core.membership.is_down(tgt) && core.transport.standing(tgt).state == PeerState::Dead {
        core.membership.note_gone(tgt, PeerState::Dead);
    }
}

#[cold]
fn purged(tgt: Task) -> Error {
    Error::new(
        LAPI_ERR_TGT_PURGED,
        format!("task {tgt} was purged: no message can go to it until it is resumed"),
    )
}

#[cold]
pub(in crate::engine) fn gone(tgt: Task) -> Error {
    Error::new(
        LAPI_ERR_NO_CONNECTIVITY,
        format!("task {tgt} has ended LAPI, has died, or was given up: no message can go to it"),
    )
}

/// Why a message was not sent.
#[cold]
pub(in crate::engine) fn not_sent(core: &mut Core, tgt: Task, sent: Sent) -> Error {
    if sent == Sent::NoMemory {
        Error::new(LAPI_ERR_MEMORY_EXHAUSTED, "a message that must wait for room")
    } else {
        note_death(core, tgt);
        gone(tgt)
    }
}

/// The cookie of an operation whose completion the program waits for, or 0.
#[inline]
pub(in crate::engine) fn completion(held: &mut Held<'_>, tgt: Task, cmpl_cntr: usize) -> u64 {
    if cmpl_cntr == 0 { 0 } else { held.core().ops.insert(tgt, Op::Completion { cmpl_cntr }, false) }
}

/// Sends a message of one packet, or lets it wait for room.
///
/// # Safety
/// The conditions of [`crate::proto::outbox::Outbox::send`] hold.
#[inline]
pub(in crate::engine) unsafe fn send(
    held: &mut Held<'_>,
    tgt: Task,
    head: &Head,
    body: Body<'_>,
    copied: bool,
    done: SendDone,
) -> Sent {
    let core = held.core();
    let limit = if copied { usize::MAX } else { core.options.copy_limit };
    let (outbox, mut wire) = core.out();
    // SAFETY: the caller's promise.
    unsafe { outbox.send(&mut wire, tgt, head, body, limit, done) }
}

/// Queues a message of several packets, and sends as much of it as there is room for.
///
/// # Safety
/// The conditions of [`crate::proto::outbox::Outbox::send_stream`] hold.
pub unsafe fn stream(
    held: &mut Held<'_>,
    tgt: Task,
    first: Option<(&Head, Piece)>,
    next: Continuation,
    data: &Content,
    how: Streaming,
    done: SendDone,
) -> Sent {
    let core = held.core();
    core.note_copying();
    // SAFETY: the caller's promise.
    let sent = unsafe { core.outbox.send_stream(tgt, first, next, data, how, done) };
    core.pump();
    sent
}

/// What a call returns for a message that was sent, and what follows when its memory
/// is free already.
#[inline]
pub(in crate::engine) fn started(
    held: &mut Held<'_>,
    tgt: Task,
    cookie: u64,
    sent: Sent,
    done: &SendDone,
) -> Result<()> {
    match sent {
        Sent::Free => finish(held, done),
        Sent::Queued => {}
        Sent::Gone | Sent::NoMemory => {
            let core = held.core();
            core.ops.remove(tgt, cookie);
            core.outbox.take_back(tgt);
            return Err(not_sent(core, tgt, sent));
        }
    }
    Ok(())
}

/// What a call returns that has asked the target for something for which operation `cookie` waits;
/// `numbered`: under a number, which counts only if the request was sent.
pub(in crate::engine) fn requested(
    core: &mut Core,
    tgt: Task,
    cookie: u64,
    numbered: bool,
    sent: Sent,
) -> Result<()> {
    if matches!(sent, Sent::Gone | Sent::NoMemory) {
        registration::give_up(core, tgt, cookie);
        if numbered {
            core.outbox.take_back(tgt);
        }
        return Err(not_sent(core, tgt, sent));
    }
    Ok(())
}

/// A send operation is done with the program's memory. Its counter goes up now. Its send completion
/// handler is called later in this round of the dispatcher, or in the next one (each call that
/// sends ends with one): never in the middle of a call, so that a handler that sends does not run
/// inside of itself.
#[inline]
pub fn finish(held: &mut Held<'_>, done: &SendDone) {
    let core = held.core();
    account(core, done);
    if done.handler != 0 {
        queue_send_handler(core, done);
    }
}

/// The counters of a send operation that is done.
#[inline]
pub fn account(core: &mut Core, done: &SendDone) {
    if done.user {
        core.note_completed(LAPI_SEND_COMPLETE);
    }
    // A thread may sleep in a call that waits for the counter.
    core.waiters.note_news_if_waiting();
    if done.error == 0 {
        let to_self = done.peer == core.options.me;
        let path = if to_self { &mut core.stats.local } else { core.path_to(done.peer) };
        path.bytes_sent += done.bytes;
        // SAFETY: the program's counter.
        unsafe { core.raise(done.org_cntr, done.peer) };
    }
}

/// Only the handler is still to be called: everything else is done.
#[cold]
fn queue_send_handler(core: &mut Core, done: &SendDone) {
    let SendDone { handler, info, error, peer, .. } = *done;
    core.finish_later([SendDone { handler, info, error, ..SendDone::nothing(peer) }]);
}

/// Calls the send completion handler, if there is one, from a round of the dispatcher.
pub fn call_send_handler(held: &mut Held<'_>, done: &SendDone) {
    if done.handler == 0 {
        return;
    }
    // SAFETY: the address of the program's send completion handler, which was a function pointer
    // when it came in.
    let handler = unsafe { std::mem::transmute::<usize, scompl_hndlr_t>(done.handler) };
    let mut info = lapi_sh_info_t { src: done.peer, reason: done.error as u32, reserve: [0; 6] };
    let context = held.context();
    let run = Handler { kind: HandlerKind::SendCompletion, address: done.handler, peer: done.peer, bytes: 0 };
    held.run_handler(run, || {
        // SAFETY: the program's own function, with pointers that live during the call; no reference
        // into the core is out.
        unsafe { handler(context.handle_ptr(), done.info as *mut c_void, &mut info) }
    });
}
