//! What follows when data is where it belongs: counters, completion handlers, and the report
//! to the sender.

use crate::abi::{LAPI_NORMAL, LAPI_RECV_COMPLETE, LAPI_SEND_REPLY, compl_hndlr_t};
use crate::base::handler_runs::{Handler, HandlerKind};
use crate::engine::context::completion_queue::Completion;
use crate::engine::context::core::flow;
use crate::engine::context::incoming::Delivery;
use crate::engine::context::{Context, Held};
use crate::engine::transfer::beyond;
use crate::engine::transfer::send::send_control;
use crate::memory::bytes::Piece;
use crate::proto::content::Sink;
use crate::transport::Task;
use crate::wire::packet::{Head, VECTOR_ALONE};
use libc::c_void;

/// Bytes of a body from which on its copy takes time that peers notice.
const LONG: usize = 4096;

/// Copies a packet's bytes to where they belong.
///
/// # Safety
/// The body must be readable, and its places in `sink` writable.
#[inline(always)]
pub unsafe fn take(held: &mut Held<'_>, sink: &Sink, offset: u64, body: Piece) {
    if body.len >= LONG {
        held.core().note_copying();
    }
    // SAFETY: the caller's promise.
    scatter(held, sink, || unsafe { sink.take(offset, body) });
}

/// Runs `copy`, which writes to `sink`. A data distribution function of the program may run in it
/// and call LAPI, so no reference into the core may be out.
#[inline(always)]
pub fn scatter<R>(held: &mut Held<'_>, sink: &Sink, copy: impl FnOnce() -> R) -> R {
    match sink.function() {
        None => copy(),
        Some(function) => {
            let handler = Handler { kind: HandlerKind::Distribution, address: function, peer: 0, bytes: 0 };
            held.run_handler(handler, copy)
        }
    }
}

/// A message needs nothing more: the sender's fence may have waited for it.
#[inline(always)]
pub fn confirm(held: &mut Held<'_>, src: Task, id: u32) {
    let core = held.core();
    if let Some(count) = core.inbox.deliver(src, id) {
        send_control(core, src, &Head::FenceAck { count });
    }
}

/// The description of a vector is complete: its message needs nothing more, if that has a number.
pub fn described(held: &mut Held<'_>, src: Task, id: u32, op: u16) {
    if op & VECTOR_ALONE == 0 {
        confirm(held, src, id);
    }
}

/// All data of a message is where it belongs.
#[inline(always)]
pub fn delivered(held: &mut Held<'_>, delivery: Delivery) {
    let core = held.core();
    core.note_completed(LAPI_RECV_COMPLETE);
    match delivery.id {
        Some(id) => {
            core.path_to(delivery.src).bytes_received += delivery.bytes;
            confirm(held, delivery.src, id);
        }
        None => core.stats.local.bytes_received += delivery.bytes,
    }
    match delivery.handler {
        None => conclude(held, &delivery),
        Some(handler) => complete_by_handler(held, delivery, handler),
    }
}

#[inline(never)]
fn complete_by_handler(held: &mut Held<'_>, delivery: Delivery, handler: compl_hndlr_t) {
    let context: &Context = held.context();
    let incarnation = held.core().incarnation(delivery.src);
    let no_token = delivery.ret_flags == LAPI_SEND_REPLY && !flow::has_send_token(held.core());
    if (delivery.ret_flags == LAPI_NORMAL || no_token) && context.completions.has_threads() {
        let completion =
            Completion { handler, parameter: delivery.parameter, then: Some((delivery, incarnation)) };
        let queued = context.completions.push(completion);
        return flow::queued(held, delivery.src, queued);
    }
    run_completion(held, handler, delivery.parameter);
    conclude_since(held, delivery, incarnation);
}

/// Runs a completion handler in the dispatcher.
pub fn run_completion(held: &mut Held<'_>, handler: compl_hndlr_t, parameter: usize) {
    let context = held.context();
    let run = Handler { kind: HandlerKind::Completion, address: handler as usize, peer: 0, bytes: 0 };
    held.run_handler(run, || {
        // SAFETY: the program's own completion handler, with the parameter that it gave for it; no
        // reference into the core is out.
        unsafe { handler(context.handle_ptr(), parameter as *mut c_void) }
    });
}

/// [`conclude`] after a completion handler has run: the sender may have been given up meanwhile,
/// and the task that has its place now did not send this.
pub fn conclude_since(held: &mut Held<'_>, delivery: Delivery, incarnation: u32) {
    let same = held.core().incarnation(delivery.src) == incarnation;
    conclude(held, &Delivery { cookie: if same { delivery.cookie } else { 0 }, ..delivery });
}

/// The message is complete, its completion handler has returned: target counter first, then the
/// report to the origin.
#[inline(always)]
pub fn conclude(held: &mut Held<'_>, delivery: &Delivery) {
    // SAFETY: a counter of this task, by the contract of the call that sent the message.
    unsafe { held.core().raise(beyond::counter(delivery.tgt_cntr), delivery.src) };
    if delivery.cookie != 0 {
        match delivery.id {
            Some(_) => {
                send_control(held.core(), delivery.src, &Head::Done { cookie: delivery.cookie });
            }
            // SAFETY: of a message to oneself the completion counter's address stands here.
            None => unsafe { held.core().raise(delivery.cookie as usize, delivery.src) },
        }
    }
    beyond::report_counter(held, delivery.src, delivery.tgt_cntr);
}
