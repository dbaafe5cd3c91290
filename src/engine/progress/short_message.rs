//! Active messages of one packet that have come through a door: what the dispatcher and
//! [`receive`] do with them, without what only other messages and
//! other states need.
//!
//! The header handler runs as in a round of the dispatcher. If it has made no call that uses the
//! core, the word of what is known ([`Clear`]) is as it was; if it has answered with contiguous
//! memory or with none as well, and the message has no completion counter, little is left to be
//! done. In all other cases the packet was the only one of a round, which ends as every round does.

use super::dispatcher;
use crate::abi::{LAPI_RECV_COMPLETE, hdr_hndlr_t};
use crate::base::handler_runs::{self, Handler, HandlerKind};
use crate::base::known_threads::this_thread;
use crate::engine::context::Core;
use crate::engine::context::clear::Clear;
use crate::engine::context::incoming::{ActiveMessage, Data};
use crate::engine::context::unhindered::Unhindered;
use crate::engine::transfer::header_handler::{self, Answer};
use crate::engine::transfer::receive;
use crate::engine::transfer::send::send_control;
use crate::memory::bytes::{self, Piece};
use crate::memory::counter;
use crate::transport::Inbound;
use crate::wire::packet::Head;
use std::ptr;

/// Takes the message. `false`: nothing was done; it is for the dispatcher.
#[inline(always)]
pub(super) fn take(
    way: &mut Unhindered<'_>,
    packet: Inbound,
    body: Piece,
    uhdr_len: u16,
    message: ActiveMessage,
) -> bool {
    let Some((header, data)) = Data::parts_of(body, uhdr_len) else { return false };
    let Some(handler) = handler(way.core(), message.handler) else { return false };
    let context = way.context();
    let core = way.core();
    core.stats.peers.packets_received += 1;
    let incarnation = core.incarnation(message.src);
    let bytes = (header.len + data.len) as u64;
    let run = Handler { kind: HandlerKind::Header, address: handler as usize, peer: message.src, bytes };
    let began = context.activity.begin(this_thread());
    debug_assert!(began, "a round would hinder this");
    context.activity.handles(&packet);
    // SAFETY: the program's own header handler; no reference into the core is out.
    let answer = context
        .run_unwatched(run, || unsafe { header_handler::call(context, handler, message.src, header, data) });
    way.renew();
    match answer.plain_place() {
        Some(place) if message.cookie == 0 && way.includes(Clear::TO_TAKE) => {
            if !place.is_null() {
                // SAFETY: the header handler has given this place for the message.
                unsafe { bytes::copy(data, place) };
            }
            deliver(way, &packet, &message, data.len);
        }
        _ => go_beyond(way, packet, message, (header, data), &answer, incarnation),
    }
    true
}

/// The rest of a round in which the packet is the only one.
#[cold]
#[inline(never)]
fn go_beyond(
    way: &mut Unhindered<'_>,
    packet: Inbound,
    message: ActiveMessage,
    parts: (Piece, Piece),
    answer: &Answer,
    incarnation: u32,
) {
    let context = way.context();
    way.go_beyond(|held| {
        context.activity.handles(&packet);
        receive::answered(held, &message, parts, answer, incarnation);
        context.activity.handles(ptr::null());
        held.core().transport.release(packet);
        dispatcher::end_round(held, true);
        held.wake_waiters();
    });
}

/// The header handler that a message names, if it can be called at once.
#[inline(always)]
fn handler(core: &mut Core, named: u64) -> Option<hdr_hndlr_t> {
    if handler_runs::watched() || core.is_holding_back() || core.partings.keep_messages() {
        return None;
    }
    // SAFETY: the address of a header handler, by the contract of LAPI_Amsend and LAPI_Addr_set.
    unsafe { header_handler::at(core.resolve_function(named)) }
}

/// All data of the message is where it belongs, and nothing else follows.
#[inline(always)]
fn deliver(way: &mut Unhindered<'_>, packet: &Inbound, message: &ActiveMessage, bytes: usize) {
    let core = way.core();
    core.note_completed(LAPI_RECV_COMPLETE);
    core.stats.peers.bytes_received += bytes as u64;
    let asked = core.inbox.deliver(packet.src, message.id.unwrap_or_default());
    // SAFETY: a counter of this task, by the contract of the call that sent the message.
    unsafe { counter::bump(message.tgt_cntr as usize) };
    // The counter is the peer's choice: a report of a crash names the packet.
    let activity = &way.context().activity;
    activity.handles(ptr::null());
    activity.end();
    let core = way.core();
    if let Some(door) = core.transport.door(packet.src) {
        door.give_back(packet);
    }
    if let Some(count) = asked {
        // The sender's fence has waited for this message.
        way.forget();
        send_control(way.core(), packet.src, &Head::FenceAck { count });
    }
}
